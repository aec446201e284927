"""BAM for alignments of reads is, byte for byte, what htslib makes of their SAM."""

import gzip
import random

import numpy as np
import pysam
from helpers.alignment_tools import GROUP
from helpers.made_alignments import random_alignments, random_reference
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mummergpu.output.alignments.read_rows import ReadRows
from mummergpu.output.records.bam import PIECE_BYTES, AlignmentBam
from mummergpu.output.records.header import AlignmentHead
from mummergpu.output.records.sam import AlignmentSam


def content(made, case):
    text = made.head()
    for piece in made.format_block(case.reads, case.columns):
        text += piece.tobytes()
        made.take_back(piece)
    return text


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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(), st.integers(1, 40), st.booleans(), st.sampled_from([1, 999, PIECE_BYTES]))
def test_records_are_those_of_htslib(tmp_path, seed, templates, with_group, piece_bytes):
    made = random.Random(seed)
    reference = random_reference(made)
    case = random_alignments(made, reference, templates)
    head = AlignmentHead(GROUP if with_group else None, "test")
    expected = bam_of_htslib(
        content(AlignmentSam(reference, ReadRows(reference), head, "r.fq"), case), tmp_path
    )
    assert (
        content(AlignmentBam(reference, ReadRows(reference), head, "r.fq", piece_bytes), case)
        == expected
    )


def test_the_ends_of_records_are_told():
    made = random.Random(7)
    reference = random_reference(made)
    case = random_alignments(made, reference, 50)
    rows = 0
    for piece in AlignmentBam(
        reference, ReadRows(reference), AlignmentHead(), "r.fq", 4000
    ).records(case.reads, case.columns):
        assert piece.first_row == rows
        rows += piece.ends.size
        begins = np.concatenate([[0], piece.ends[:-1]])
        sizes = [int(piece.text[at : at + 4].view("<u4")[0]) for at in begins]
        assert (begins + sizes + 4).tolist() == piece.ends.tolist()
        assert piece.ends[-1] == piece.text.size
    assert rows == case.columns.row_count
