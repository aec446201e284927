"""Open the sink for a target of alignments: what makes its bytes is imported only if asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from mummergpu.errors import OptionError
from mummergpu.input.reference import Reference
from mummergpu.output.alignments.format import AlignmentHead
from mummergpu.output.alignments.sam import AlignmentSamFormat
from mummergpu.output.alignments.sink import AlignmentByteSink, AlignmentSink, Emit, writer_of
from mummergpu.output.bytes.compression import BgzfCompressor, Compressor, compressor_of
from mummergpu.output.records.header import BY_COORDINATE, UNSORTED
from mummergpu.output.records.sam_options import ReadGroup
from mummergpu.output.sorting.options import SortOptions
from mummergpu.output.targets import BGZF, OutputTarget
from mummergpu.runtime.output_file import STANDARD_OUTPUT, OutputFile
from mummergpu.runtime.stats import Stats

CRAI: Final = ".crai"
"""What the name of the index of a CRAM ends with, after the name of the CRAM."""

ALIGNMENT_FORMATS: Final = ("sam", "bam", "cram")
"""The names of the formats of alignments."""


@dataclass(frozen=True)
class AlignmentFacts:
    """What files of alignments may say about the run, or need to know of it.

    Attributes
    ----------
    reference : Reference
        The reference.
    read_paths : tuple of str
        The files of the reads, as the user named them.
    threads : int
        The number of threads that compress.
    command : str
        The command line of the run; empty if there is none.
    read_group : ReadGroup or None
        The read group of all reads.
    checksums : sequence of str
        The MD5 of each record (`input.records.record_checksums`); empty if they are not known.
    sort : SortOptions or None
        What is done with all alignments before they are written; None to write them as they come.
    input_groups : sequence of bytes
        The lines of the read groups that tags of reads tell of.
    compressor : Compressor or None
        Makes the blocks of bgzf of a BAM or a compressed SAM; None for a `BgzfCompressor`.
    """

    reference: Reference
    read_paths: tuple[str, ...]
    threads: int = 1
    command: str = ""
    read_group: ReadGroup | None = None
    checksums: Sequence[str] = ()
    sort: SortOptions | None = None
    compressor: Compressor | None = None
    input_groups: Sequence[bytes] = ()


def check_alignment_target(
    target: OutputTarget, sort: SortOptions | None, gpu_compression: bool = False
) -> None:
    """Refuse a target that cannot be had, before anything is read.

    Parameters
    ----------
    sort : SortOptions or None
        What is done with all alignments before they are written.
    gpu_compression : bool
        Whether a device compresses the file.

    Raises
    ------
    OptionError
        If the format is none of alignments, cannot be sorted, or is not compressed in blocks of
        bgzf; or there is no such folder for temporary files.
    LibraryError
        If the compression needs a library that is not installed.
    """
    if target.format not in ALIGNMENT_FORMATS:
        raise OptionError("--output", f"alignments are SAM, BAM or CRAM, not {target.format}")
    if sort is not None and target.format == "sam":
        option = "--sort" if sort.by_coordinate else "--mark-duplicates"
        raise OptionError(option, "needs BAM or CRAM, such as -o out.bam")
    if sort is not None and sort.folder is not None and not os.path.isdir(sort.folder):
        raise OptionError("--temporary-folder", f"there is no folder '{sort.folder}'")
    if gpu_compression and not target.has_bgzf:
        raise OptionError("--gpu-compression", "needs BAM, such as -o out.bam, or .sam.gz")
    compressor_of(target.compression)


def index_path(target: OutputTarget, reference: Reference, sort: SortOptions | None) -> str | None:
    """Return the path of the index of a target; None if it has none.

    Parameters
    ----------
    reference : Reference
        The reference; a long record needs another kind of index.
    sort : SortOptions or None
        What is done with all alignments before they are written.

    Returns
    -------
    str or None
        The path of the BAM and ``.bai`` or ``.csi``, or that of the CRAM and ``.crai``. What is
        not sorted has none, nor has standard output.
    """
    if target.format == "sam" or sort is None or not sort.by_coordinate:
        return None
    if target.path == STANDARD_OUTPUT:
        return None
    if target.format == "cram":
        return target.path + CRAI
    from mummergpu.output.sorting.bam_index import index_kind
    from mummergpu.output.sorting.places import axis_of

    return target.path + index_kind(axis_of(reference))


def open_alignment_sink(
    target: OutputTarget,
    file: OutputFile,
    facts: AlignmentFacts,
    stats: Stats,
    index: OutputFile | None = None,
) -> AlignmentSink[Any]:
    """Return the sink that writes alignments to a target.

    Parameters
    ----------
    file : OutputFile
        Its open file; the caller completes it.
    facts : AlignmentFacts
        What the file may say about the run.
    stats : Stats
        Collects the bytes and the times.
    index : OutputFile or None
        The open file of the index (`index_path`); the caller completes it. None for no index.

    Returns
    -------
    AlignmentSink
        The sink; the caller closes it.

    Raises
    ------
    MummergpuError
        If the format cannot be made of this input, or there is no room for temporary files.
    """
    check_alignment_target(target, facts.sort)
    is_sorted = facts.sort is not None and facts.sort.by_coordinate
    head = AlignmentHead(
        facts.read_group,
        facts.command,
        BY_COORDINATE if is_sorted else UNSORTED,
        facts.checksums,
        facts.input_groups,
    )
    emit = writer_of(file, stats)
    if target.format == "sam":
        made = AlignmentSamFormat(facts.reference, head, ", ".join(facts.read_paths))
        compressor = compressor_of(target.compression)
        if target.compression == BGZF:
            compressor = facts.compressor or compressor
        return AlignmentByteSink(made, emit, stats, compressor, facts.threads)
    if target.format == "bam":
        return _bam_sink(emit, facts, head, stats, index)
    from mummergpu.output.alignments.cram import AlignmentCramSink

    return AlignmentCramSink(
        lambda keep: _bam_sink(keep, facts, head, stats, None), emit, stats, index
    )


def _bam_sink(
    emit: Emit, facts: AlignmentFacts, head: AlignmentHead, stats: Stats, index: OutputFile | None
) -> AlignmentSink[Any]:
    from mummergpu.output.alignments.bam import AlignmentBamFormat

    made = AlignmentBamFormat(facts.reference, head, ", ".join(facts.read_paths))
    compressor = facts.compressor or BgzfCompressor()
    if facts.sort is None:
        return AlignmentByteSink(made, emit, stats, compressor, facts.threads)
    from mummergpu.output.sorting.sorted_bam import SortedBamSink

    return SortedBamSink(made, facts.reference, emit, stats, facts.sort, index, compressor)
