"""What formats may say about a run, or need to know of it, and of the file that they go to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from mummergpu.input.reference import Reference
from mummergpu.output.bytes.compression import Compressor, compressor_of
from mummergpu.output.records.record_style import RecordStyle
from mummergpu.output.records.sam_options import SamOptions
from mummergpu.output.sink import ByteSink, Emit, Format
from mummergpu.output.targets import BGZF, OutputTarget
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.words import say_nothing

if TYPE_CHECKING:
    from mummergpu.drawing.picture import PictureStyle
    from mummergpu.mapping.genomes.mapping_quality import MappingQualities
    from mummergpu.output.matches.mummer import TextStyle
    from mummergpu.output.records.header import AlignmentHead
    from mummergpu.output.sorting.options import SortOptions


@frozen
class OutputContext:
    """What formats may say about the run, or need to know of it.

    Attributes
    ----------
    query_paths : tuple of str
        The files of the queries or reads, as the user named them.
    threads : int
        The number of threads that compress.
    command : str
        The command line of the run; empty if there is none.
    sam : SamOptions
        The options of SAM and BAM of matches.
    style : TextStyle or None
        The options of MUMmer's text.
    picture : PictureStyle or None
        What pictures show, and how.
    max_rows : int or None
        The matches of a block up to which its output may be prepared before it is written; None
        for rows that are no matches.
    checksums : sequence of str
        The MD5 of each record of the reference (`input.reference.record_checksums`); empty if they
        are not known.
    input_groups : sequence of bytes
        The lines of the read groups that tags of reads tell of.
    sort : SortOptions or None
        What is done with all alignments of reads before they are written; None to write them as
        they come.
    compressor : Compressor or None
        Makes the blocks of bgzf; None for a `BgzfCompressor`.
    with_changes, with_bases : bool
        Whether PAF of genomes has cs:Z, and SAM of genomes the bases of the queries, and MD.
    records : RecordStyle
        How alignments of reads are told, and of genomes whether = and X are.
    qualities : MappingQualities or None
        Those of alignments of genomes; None to find them.
    warn : callable
        Receives warnings.
    circular : sequence of int
        The circular records of the reference.
    """

    reference: Reference
    query_paths: tuple[str, ...]
    threads: int = 1
    command: str = ""
    sam: SamOptions = field(default_factory=SamOptions)
    style: TextStyle | None = None
    picture: PictureStyle | None = None
    max_rows: int | None = None
    checksums: Sequence[str] = ()
    input_groups: Sequence[bytes] = ()
    sort: SortOptions | None = None
    compressor: Compressor | None = None
    with_changes: bool = False
    with_bases: bool = True
    records: RecordStyle = field(default_factory=RecordStyle)
    qualities: MappingQualities | None = None
    warn: Callable[[str], None] = say_nothing
    circular: Sequence[int] = ()

    @property
    def files(self) -> str:
        """The files of the queries, for errors."""
        return ", ".join(self.query_paths)

    @property
    def max_match_rows(self) -> int:
        """`max_rows` of matches."""
        assert self.max_rows is not None
        return self.max_rows

    @property
    def head(self) -> AlignmentHead:
        """What the header of alignments of reads tells."""
        from mummergpu.output.records.header import BY_COORDINATE, UNSORTED, AlignmentHead

        is_sorted = self.sort is not None and self.sort.by_coordinate
        return AlignmentHead(
            *(self.sam.read_group, self.command, BY_COORDINATE if is_sorted else UNSORTED),
            *(self.checksums, self.input_groups, self.circular),
        )


@frozen
class OpenRequest:
    """What a sink is opened with.

    Attributes
    ----------
    emit : callable
        Receives the bytes of the file (`sink.writer_of`).
    index : OutputFile or None
        The open file of the index of sorted BAM or CRAM.
    is_raw : bool
        Whether who takes the bytes compresses them.
    """

    target: OutputTarget
    facts: OutputContext
    emit: Emit
    stats: Stats
    index: OutputFile | None = None
    is_raw: bool = False

    def byte_sink(self, made: Format[Any, Any]) -> ByteSink[Any, Any]:
        """Return what writes the bytes of a format, compressed as the target says."""
        facts = self.facts
        compressor = None if self.is_raw else self.compressor()
        return ByteSink(made, self.emit, self.stats, compressor, facts.threads, facts.max_rows)

    def compressor(self) -> Compressor | None:
        """Return what compresses the file as the target says."""
        if self.target.has_bgzf:
            return self.facts.compressor or compressor_of(BGZF)
        return compressor_of(self.target.compression)

    def of_bam(self, emit: Emit) -> OpenRequest:
        """Return the same for a BAM that goes elsewhere, without an index."""
        target = replace(self.target, format="bam")
        return replace(self, target=target, emit=emit, index=None, is_raw=False)
