"""Writes the alignments of tests through the sinks, and reads them back."""

import pysam

from mummergpu.output.alignments.read_rows import ReadRows
from mummergpu.output.bytes.compression import BgzfCompressor
from mummergpu.output.records.bam import AlignmentBam
from mummergpu.output.records.header import BY_COORDINATE, UNSORTED, AlignmentHead
from mummergpu.output.sink import ByteSink, writer_of
from mummergpu.output.sorting.bam_index import index_kind
from mummergpu.output.sorting.row_tables import axis_of
from mummergpu.output.sorting.sorted_bam import SortedBamSink
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats


def pass_through(sink, blocks):
    """Give blocks to a sink."""
    try:
        for block in blocks:
            sink.write(sink.prepare(block.reads, block.columns))
        sink.finish()
    finally:
        sink.close()


def write_bam(path, reference, blocks, group=None, threads=2):
    """Write BAM in the order of the reads."""
    made = AlignmentBam(reference, ReadRows(reference), AlignmentHead(group), "r.fq", 1 << 16)
    stats = Stats()
    with OutputFile(str(path)) as output:
        emit = writer_of(output, stats)
        pass_through(ByteSink(made, emit, stats, BgzfCompressor(), threads), blocks)


def write_sorted(path, reference, blocks, options, group=None):
    """Write BAM at the end, with an index if it is sorted."""
    order = BY_COORDINATE if options.by_coordinate else UNSORTED
    made = AlignmentBam(
        reference, ReadRows(reference), AlignmentHead(group, order=order), "r.fq", 1 << 16
    )
    stats = Stats()
    with (
        OutputFile(str(path)) as output,
        OutputFile(f"{path}{index_kind(axis_of(reference))}") as index,
    ):
        emit = writer_of(output, stats)
        own = index if options.by_coordinate else None
        sink = SortedBamSink(made, reference, emit, stats, options, own)
        pass_through(sink, blocks)
    return sink


def rows_of(path):
    """Return the alignments of a file."""
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        return list(file.fetch(until_eof=True))
