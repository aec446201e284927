"""BAM is, byte for byte, what htslib makes of the same alignments in SAM."""

import gzip
import random
from dataclasses import replace

import numpy as np
import pysam
import pytest
from helpers.loops import each
from helpers.match_cases import MatchCase, match_cases, text_of
from helpers.match_records import match_bam, match_sam
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.output.bytes.compression import BgzfCompressor
from mummergpu.output.options import ReadGroup, SamOptions
from mummergpu.output.records.bam import PIECE_BYTES
from mummergpu.sequence.strand import Strand

GROUPS = [None, ReadGroup("@RG\tID:lane 1\tSM:x", "lane 1"), ReadGroup("@RG\tID:x", "x" * 300)]
OPTIONS = st.builds(
    SamOptions, st.sampled_from(GROUPS), st.sampled_from([None, 1, 2, 5]), st.booleans()
)


def sam_of(case, options):
    return text_of(match_sam(case.reference, options), case)


def bam_of_htslib(text, folder):
    """What htslib makes of SAM, without the compression."""
    source, target = folder / "x.sam", folder / "x.bam"
    source.write_bytes(text)
    with (
        pysam.AlignmentFile(str(source), "r") as alignments,
        pysam.AlignmentFile(str(target), "wbu", template=alignments) as copy,
    ):
        for alignment in alignments.fetch(until_eof=True):
            copy.write(alignment)
    return gzip.decompress(target.read_bytes())


def bam_of(case, options, piece_bytes):
    made = match_bam(case.reference, options, piece_bytes)
    return text_of(made, case)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(match_cases(), OPTIONS, st.integers(1, 2000))
def test_records_are_those_of_htslib(tmp_path, case, options, piece_bytes):
    expected = bam_of_htslib(sam_of(case, options), tmp_path)
    assert bam_of(case, options, piece_bytes) == expected


@each("length", [*range(1, 70), 127, 128, 129, 1000])
@pytest.mark.parametrize("strand", list(Strand))
def test_bases_of_every_length_are_packed(length, strand, tmp_path):
    made = random.Random(length)
    bases = [bytes(made.choices(b"ACGTN", k=size)) for size in (3, length, 2)]
    rows = {strand: [[(0, (0, 0, 1))]] * 3}
    case = MatchCase([(b"r", b"ACGT" * 300)], [(b"q", one) for one in bases], rows)
    expected = bam_of_htslib(sam_of(case, SamOptions()), tmp_path)
    assert bam_of(case, SamOptions(), PIECE_BYTES) == expected


def test_numbers_of_every_size(tmp_path):
    """Tags of one, two and four bytes; CIGARs with long clips."""
    bases = bytes(random.Random(3).choices(b"ACGT", k=70_000))
    rows = [(0, (n % 60_000, n, 20 + n % 300)) for n in range(69_000)]
    rows.append((0, (1, 0, 69_990)))
    case = MatchCase([(b"r", bases)], [(b"q", bases)], {Strand.FORWARD: [rows]})
    expected = bam_of_htslib(sam_of(case, SamOptions()), tmp_path)
    assert bam_of(case, SamOptions(), PIECE_BYTES) == expected


def test_rows_without_bases_share_a_piece_however_long_their_query_is():
    """A genome has very many: a text with room for all its bases for each would fill the memory."""
    bases = b"ACGT" * 50_000
    rows = [(0, (n, n, 20 + (n == 0))) for n in range(1000)]
    case = MatchCase([(b"r", bases)], [(b"q", bases)], {Strand.FORWARD: [rows]})
    for made in (
        match_bam(case.reference, SamOptions(), piece_bytes=1 << 16),
        match_sam(case.reference, SamOptions(), piece_bytes=1 << 16),
    ):
        sizes = [len(piece) for piece in made.format_block(case.block, case.columns)]
        # Those of the primary row, and of the thousand others.
        assert len(sizes) <= 10 and sum(sizes) > 1000 * 60


def far_reference(case, base_count):
    """The reference of a case with a longer record, which takes no memory."""
    codes = np.broadcast_to(np.uint8(0), (base_count,))
    lengths = np.array([base_count], dtype=np.int64)
    return replace(case.reference, codes=codes, record_lengths=lengths)


def test_bins_at_every_border(tmp_path):
    """Where each of the levels of bins ends, to the end of the longest record."""
    borders = [1 << level for level in range(14, 31)] + [3 << 14, 5 << 17, 7 << 20, 3 << 26]
    rows = [
        (0, (0, border + shift, length))
        for border in borders
        for shift in (-20_000, -20, -11, -10, -9, -1, 0, 1)
        for length in (1, 10, 15_000)
        if border + shift >= 0
    ]
    query = b"A" * 15_000
    case = MatchCase([(b"r", b"A")], [(b"q", query)], {Strand.FORWARD: [rows]})
    reference = far_reference(case, (1 << 31) - 1)
    text = text_of(match_sam(reference, SamOptions()), case)
    made = match_bam(reference, SamOptions())
    assert text_of(made, case) == bam_of_htslib(text, tmp_path)


def test_a_longer_record_or_query_is_refused():
    case = MatchCase([(b"r", b"A")], [(b"q" * 255, b"A")], {})
    with pytest.raises(InputError, match="2,147,483,647"):
        match_bam(far_reference(case, 1 << 31), SamOptions())
    with pytest.raises(InputError, match="254 bytes"):
        text_of(match_bam(case.reference, SamOptions()), case)


def test_a_compressed_file_is_what_htslib_reads(tmp_path):
    made = random.Random(6)
    bases = bytes(made.choices(b"ACGT", k=200))
    queries = [(b"q%d" % number, bases[number % 100 :]) for number in range(3000)]
    rows = {Strand.FORWARD: [[(0, (0, number % 100, 90))] for number in range(3000)]}
    case = MatchCase([(b"r", bases)], queries, rows)
    compressor = BgzfCompressor()
    text = bam_of(case, SamOptions(), PIECE_BYTES)
    path = tmp_path / "x.bam"
    path.write_bytes(compressor.compress(text) + compressor.end())
    with pysam.AlignmentFile(str(path)) as alignments:
        found = [(one.query_name, one.reference_start) for one in alignments.fetch(until_eof=True)]
    assert found == [(f"q{number}", number % 100) for number in range(3000)]
