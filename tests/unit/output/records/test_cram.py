"""CRAM has the same alignments as BAM, sorted or in the order of the reads."""

import gzip
import random
import tempfile
from pathlib import Path

import pytest
from helpers.alignment_tools import GROUP, samtools
from helpers.made_alignments import random_alignments, random_reference
from helpers.written_alignments import pass_through, rows_of, write_bam, write_sorted

from mummergpu.errors import OutputError
from mummergpu.output.alignments.read_rows import ReadRows
from mummergpu.output.bytes.compression import BgzfCompressor
from mummergpu.output.options import SortOptions
from mummergpu.output.records.bam import AlignmentBam
from mummergpu.output.records.cram import CramSink, index_cram
from mummergpu.output.records.header import BY_COORDINATE, UNSORTED, AlignmentHead
from mummergpu.output.sink import ByteSink, writer_of
from mummergpu.output.sorting.sorted_bam import SortedBamSink
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats


def fields_of(row):
    """The fields, and the tags in any order: CRAM puts the read group last."""
    fields = row.to_string().split("\t")
    return fields[:11] + sorted(fields[11:])


@pytest.mark.parametrize("by_coordinate", [False, True])
def test_alignments_are_those_of_bam(tmp_path, by_coordinate):
    made = random.Random(9)
    reference = random_reference(made)
    case = random_alignments(made, reference, 200)
    path, stats = tmp_path / "x.cram", Stats()
    head = AlignmentHead(GROUP, order=BY_COORDINATE if by_coordinate else UNSORTED)
    records = AlignmentBam(reference, ReadRows(reference), head, "r.fq")

    def sorted_sink(emit):
        return SortedBamSink(records, reference, emit, stats, SortOptions())

    def plain_sink(emit):
        return ByteSink(records, emit, stats, BgzfCompressor())

    with OutputFile(str(path)) as output, OutputFile(f"{path}.crai") as index:
        emit = writer_of(output, stats)
        if by_coordinate:
            pass_through(CramSink(sorted_sink, emit, stats, index), [case])
            write_sorted(tmp_path / "x.bam", reference, [case], SortOptions(), GROUP)
        else:
            pass_through(CramSink(plain_sink, emit, stats), [case])
            write_bam(tmp_path / "x.bam", reference, [case], GROUP)
    samtools("quickcheck", path)
    assert len(rows_of(path)) == case.columns.row_count
    if by_coordinate:
        ours = Path(f"{path}.crai").read_bytes()
        samtools("index", path)
        assert gzip.decompress(Path(f"{path}.crai").read_bytes()) == gzip.decompress(ours)
    found, expected = rows_of(path), rows_of(tmp_path / "x.bam")
    assert [fields_of(row) for row in found] == [fields_of(row) for row in expected]


def test_a_missing_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")

    def sink_of(emit):
        raise AssertionError

    with pytest.raises(OutputError, match="/nowhere"):
        CramSink(sink_of, lambda piece: None, Stats())


def test_what_htslib_cannot_index_is_an_error():
    with (
        tempfile.TemporaryFile() as cram,
        tempfile.TemporaryFile() as index,
        pytest.raises(OutputError, match="temporary data"),
    ):
        cram.write(b"CRAM, but not really")
        index_cram(cram, index)
