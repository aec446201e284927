"""BAM is, byte for byte, what htslib makes of the same alignments in SAM."""

import gzip
import random

import numpy as np
import pysam
import pytest
from helpers.alignment_tools import GROUP
from helpers.loops import each
from helpers.made_alignments import random_alignments, random_reference
from helpers.match_cases import MatchCase, match_cases, text_of
from helpers.match_records import far_reference, match_bam, match_sam
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.output.alignments.read_rows import ReadRows
from mummergpu.output.options import ReadGroup, SamOptions
from mummergpu.output.records.bam import PIECE_BYTES, AlignmentBam
from mummergpu.output.records.header import AlignmentHead
from mummergpu.output.records.sam import AlignmentSam
from mummergpu.sequence.strand import Strand

GROUPS = [None, ReadGroup("@RG\tID:lane 1\tSM:x", "lane 1"), ReadGroup("@RG\tID:x", "x" * 300)]
OPTIONS = st.builds(
    SamOptions, st.sampled_from(GROUPS), st.sampled_from([None, 1, 2, 5]), st.booleans()
)
USUAL = SamOptions()
with_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


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


def check_matches(case, folder, options=USUAL, piece_bytes=PIECE_BYTES, reference=None):
    """Compare the BAM of matches with that of htslib."""
    reference = reference or case.reference
    text = text_of(match_sam(reference, options), case)
    made = match_bam(reference, options, piece_bytes)
    assert text_of(made, case) == bam_of_htslib(text, folder)


@with_folder
@given(match_cases(), OPTIONS, st.integers(1, 2000))
def test_records_of_matches(tmp_path, case, options, piece_bytes):
    check_matches(case, tmp_path, options, piece_bytes)


@each("length", [*range(1, 70), 127, 128, 129, 1000])
@pytest.mark.parametrize("strand", list(Strand))
def test_bases_of_every_length_are_packed(length, strand, tmp_path):
    made = random.Random(length)
    bases = [bytes(made.choices(b"ACGTN", k=size)) for size in (3, length, 2)]
    rows = {strand: [[(0, (0, 0, 1))]] * 3}
    case = MatchCase([(b"r", b"ACGT" * 300)], [(b"q", one) for one in bases], rows)
    check_matches(case, tmp_path)


def test_numbers_of_every_size(tmp_path):
    """Tags of one, two and four bytes; CIGARs with long clips."""
    bases = bytes(random.Random(3).choices(b"ACGT", k=70_000))
    rows = [(0, (n % 60_000, n, 20 + n % 300)) for n in range(69_000)]
    rows.append((0, (1, 0, 69_990)))
    case = MatchCase([(b"r", bases)], [(b"q", bases)], {Strand.FORWARD: [rows]})
    check_matches(case, tmp_path)


def test_rows_without_bases_share_a_piece_however_long_their_query_is():
    """A genome has very many: a text with room for all its bases for each would fill the memory."""
    bases = b"ACGT" * 50_000
    rows = [(0, (n, n, 20 + (n == 0))) for n in range(1000)]
    case = MatchCase([(b"r", bases)], [(b"q", bases)], {Strand.FORWARD: [rows]})
    for make in (match_bam, match_sam):
        made = make(case.reference, SamOptions(), piece_bytes=1 << 16)
        sizes = [len(piece) for piece in made.format_block(case.block, case.columns)]
        # Those of the primary row, and of the thousand others.
        assert len(sizes) <= 10 and sum(sizes) > 1000 * 60


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
    case = MatchCase([(b"r", b"A")], [(b"q", b"A" * 15_000)], {Strand.FORWARD: [rows]})
    check_matches(case, tmp_path, reference=far_reference((1 << 31) - 1))


def test_a_longer_record_or_query_is_refused():
    case = MatchCase([(b"r", b"A")], [(b"q" * 255, b"A")], {})
    with pytest.raises(InputError, match="2,147,483,647"):
        match_bam(far_reference(1 << 31), SamOptions())
    with pytest.raises(InputError, match="254 bytes"):
        text_of(match_bam(case.reference, SamOptions()), case)


def content(made, case):
    text = made.head()
    for piece in made.format_block(case.reads, case.columns):
        text += piece.tobytes()
        made.take_back(piece)
    return text


@with_folder
@given(st.integers(), st.integers(1, 40), st.booleans(), st.sampled_from([1, 999, PIECE_BYTES]))
def test_records_of_reads(tmp_path, seed, templates, with_group, piece_bytes):
    made = random.Random(seed)
    reference = random_reference(made)
    case = random_alignments(made, reference, templates)
    head, rows = AlignmentHead(GROUP if with_group else None, "test"), ReadRows(reference)
    expected = bam_of_htslib(content(AlignmentSam(reference, rows, head, "r.fq"), case), tmp_path)
    assert content(AlignmentBam(reference, rows, head, "r.fq", piece_bytes), case) == expected


def test_the_ends_of_records_are_told():
    made = random.Random(7)
    reference = random_reference(made)
    case = random_alignments(made, reference, 50)
    rows = 0
    bam = AlignmentBam(reference, ReadRows(reference), AlignmentHead(), "r.fq", 4000)
    for piece in bam.records(case.reads, case.columns):
        assert piece.first_row == rows
        rows += piece.ends.size
        begins = np.concatenate([[0], piece.ends[:-1]])
        sizes = [int(piece.text[at : at + 4].view("<u4")[0]) for at in begins]
        assert (begins + sizes + 4).tolist() == piece.ends.tolist()
        assert piece.ends[-1] == piece.text.size
    assert rows == case.columns.row_count
