"""The formats of output, each in one place: its name, its rows, its files, and what writes it.

What makes the bytes of a format is imported only when a file of it is opened, so that the command
line can read this table as it starts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from mummergpu.errors import OptionError
from mummergpu.output.targets import BGZF, DEFAULT_FORMAT, OutputTarget
from mummergpu.runtime.frozen import frozen

if TYPE_CHECKING:
    from mummergpu.drawing.picture import PictureStyle
    from mummergpu.output.records.rows import RowMaker
    from mummergpu.output.sink import Emit, OpenRequest, Sink

    Opener = Callable[[OpenRequest, "RowKind"], Sink[Any, Any, Any]]
    Check = Callable[[OutputTarget, PictureStyle | None], None]

COMPRESSIONS: Final = {".gz": BGZF, ".bgz": BGZF, ".zst": "zstd"}
"""The compression that a suffix stands for. Gzip is written in the blocks of bgzf, which every
program that reads gzip can read, and others can read from the middle."""

PICTURES: Final = (".png", ".svg", ".pdf", ".html")
"""How the names of pictures end, which are of the format ``plot``."""

_PICTURE_LIST: Final = f"{', '.join(PICTURES[:-1])} or {PICTURES[-1]}"


class RowKind(Enum):
    """What the rows of a file are; the value says it in errors."""

    MATCHES = "matches"
    READS = "alignments"
    GENOMES = "genome alignments"


@frozen
class OutputFormat:
    """A format of output.

    `name` is what ``--format`` calls it; the names of its files end so, after a dot, or in one of
    `ends`. It can have some kinds of `rows`, which a sink that it opens writes. A file that
    `holds_compression` is compressed inside, or cannot be read if it is compressed as a whole.
    `check` refuses a file that cannot be made here.
    """

    name: str
    rows: tuple[RowKind, ...]
    open: Opener
    ends: tuple[str, ...] = field(default=())
    holds_compression: bool = False
    check: Check | None = None

    @property
    def suffixes(self) -> tuple[str, ...]:
        """How the names of its files end."""
        return self.ends or (f".{self.name}",)


def _open_mummer(request: OpenRequest, _rows: RowKind) -> Sink[Any, Any, Any]:
    from mummergpu.output.matches.mummer import MummerFormatter
    from mummergpu.output.options import TextStyle

    style = request.facts.style or TextStyle()
    return request.byte_sink(MummerFormatter(request.facts.reference, style))


def _open_lines(request: OpenRequest, _rows: RowKind) -> Sink[Any, Any, Any]:
    from mummergpu.output.matches import lines

    kind = {"paf": lines.PAF, "bed": lines.BED, "tsv": lines.TSV}[request.target.format]
    return request.byte_sink(lines.LineFormat(kind, request.facts.reference))


def _open_table(request: OpenRequest, _rows: RowKind) -> Sink[Any, Any, Any]:
    from mummergpu.output.matches.arrow import ArrowSink

    facts, name = request.facts, request.target.format
    return ArrowSink(name, facts.reference, request.emit, request.stats, facts.max_match_rows)


def _open_picture(request: OpenRequest, _rows: RowKind) -> Sink[Any, Any, Any]:
    from mummergpu.output.matches.picture_sink import PictureSink

    facts = request.facts
    return PictureSink(
        *(request.target.path, request.emit, facts.reference, facts.query_paths),
        *(facts.picture, request.stats, facts.max_match_rows),
    )


def _record_source(request: OpenRequest, rows: RowKind) -> RowMaker:
    """Return the maker of rows of SAM, BAM, CRAM and PAF."""
    facts, name = request.facts, request.target.format
    if rows is RowKind.MATCHES:
        from mummergpu.output.matches.match_rows import MatchRows

        return MatchRows(facts.reference, facts.sam)
    if rows is RowKind.READS:
        from mummergpu.output.alignments.read_rows import ReadRows

        return ReadRows(facts.reference, facts.records)
    from mummergpu.output.genomes.genome_rows import GenomeRows

    with_bases = name != "paf" and (facts.with_bases or name != "sam")
    return GenomeRows(
        *(facts.reference, facts.qualities, with_bases, name == "paf" and facts.with_changes),
        equal_bases=facts.records.equal_bases,
    )


def _open_sam(request: OpenRequest, rows: RowKind) -> Sink[Any, Any, Any]:
    from mummergpu.output.records.sam import AlignmentSam

    facts, source = request.facts, _record_source(request, rows)
    return request.byte_sink(AlignmentSam(facts.reference, source, facts.head, facts.files))


def _open_bam(request: OpenRequest, rows: RowKind) -> Sink[Any, Any, Any]:
    from mummergpu.output.records.bam import AlignmentBam

    facts, source = request.facts, _record_source(request, rows)
    made = AlignmentBam(facts.reference, source, facts.head, facts.files)
    if facts.sort is None:
        return request.byte_sink(made)
    from mummergpu.output.sorting.sorted_bam import SortedBamSink

    return SortedBamSink(
        *(made, facts.reference, request.emit, request.stats),
        *(facts.sort, request.index, facts.compressor),
    )


def _open_cram(request: OpenRequest, rows: RowKind) -> Sink[Any, Any, Any]:
    from mummergpu.output.records.cram import CramSink

    def keep_in(emit: Emit) -> Sink[Any, Any, Any]:
        return _open_bam(request.of_bam(emit), rows)

    return CramSink(keep_in, request.emit, request.stats, request.index)


def _open_paf(request: OpenRequest, rows: RowKind) -> Sink[Any, Any, Any]:
    if rows is RowKind.MATCHES:
        return _open_lines(request, rows)
    from mummergpu.output.records.paf import AlignmentPaf

    no_name = b"" if rows is RowKind.GENOMES else b"*"
    source = _record_source(request, rows)
    return request.byte_sink(AlignmentPaf(request.facts.reference, source, no_name=no_name))


def _open_delta(request: OpenRequest, _rows: RowKind) -> Sink[Any, Any, Any]:
    from mummergpu.output.genomes.delta import GenomeDelta

    facts = request.facts
    if len(facts.query_paths) > 1:
        raise OptionError("format", "a .delta is of one file of queries: write PAF, or join them")
    return request.byte_sink(GenomeDelta(facts.reference, facts.query_paths[0], facts.warn))


def _open_vcf(request: OpenRequest, _rows: RowKind) -> Sink[Any, Any, Any]:
    from mummergpu.output.genomes.vcf import GenomeVcf

    return request.byte_sink(GenomeVcf(request.facts.reference, request.facts.query_paths))


def _check_pyarrow(target: OutputTarget, _picture: PictureStyle | None) -> None:
    from mummergpu.output.matches.arrow import import_pyarrow

    import_pyarrow(target.format)


def _check_picture(target: OutputTarget, picture: PictureStyle | None) -> None:
    from mummergpu.output.matches.picture_sink import check_picture

    check_picture(target.path, picture)


_MATCHES: Final = (RowKind.MATCHES,)
_GENOMES: Final = (RowKind.GENOMES,)
_ALIGNMENTS: Final = (RowKind.READS, RowKind.GENOMES)

FORMATS: Final = {
    made.name: made
    for made in (
        OutputFormat("mummer", _MATCHES, _open_mummer),
        OutputFormat("paf", tuple(RowKind), _open_paf),
        OutputFormat("bed", _MATCHES, _open_lines),
        OutputFormat("tsv", _MATCHES, _open_lines),
        OutputFormat("sam", tuple(RowKind), _open_sam),
        OutputFormat("bam", tuple(RowKind), _open_bam, (), True),
        OutputFormat("cram", _ALIGNMENTS, _open_cram, (), True),
        OutputFormat("parquet", _MATCHES, _open_table, (), True, _check_pyarrow),
        OutputFormat("arrow", _MATCHES, _open_table, (".arrow", ".feather"), True, _check_pyarrow),
        OutputFormat("delta", _GENOMES, _open_delta),
        OutputFormat("plot", _MATCHES, _open_picture, PICTURES, True, _check_picture),
        OutputFormat("vcf", _GENOMES, _open_vcf),
    )
}
"""The formats, by their names."""

USUAL: Final = {RowKind.MATCHES: DEFAULT_FORMAT, RowKind.READS: "sam", RowKind.GENOMES: "delta"}
"""The format of a file whose name says nothing else."""

SAM_FORMATS: Final = frozenset({"sam", "bam", "cram"})
"""The formats with the records of SAM."""


def names_of(rows: RowKind) -> tuple[str, ...]:
    """Return the names of the formats that such rows can be written in, the usual one first."""
    usual = USUAL[rows]
    others = [one.name for one in FORMATS.values() if rows in one.rows and one.name != usual]
    return usual, *others


def target_of(
    path: str,
    format_name: str | None = None,
    option: str = "output",
    rows: RowKind = RowKind.MATCHES,
) -> OutputTarget:
    """Return the target that a path stands for, "-" being standard output.

    The end of the name decides on the compression, and on the format if that is None. `option` is
    the parameter that names the file, for errors: `OptionError` if the rows cannot be written in
    the format; or the name asks to compress a format that is compressed already, is to be a picture
    and does not say of which kind, or ends as that of no format does. Matches are text then.
    """
    compression = COMPRESSIONS.get(os.path.splitext(path)[1].lower())
    suffix = _suffix_of(path)
    found = format_name or _format_of_suffix(suffix, rows, option)
    if compression is not None and FORMATS[found].holds_compression:
        raise OptionError(option, f"'{path}' would compress {found} once more; leave the end out")
    if rows not in FORMATS[found].rows:
        *others, last = names_of(rows)
        known = f"{', '.join(others)} or {last}"
        raise OptionError(option, f"{rows.value} are written as {known}, and not as {found}")
    if found == "plot" and suffix not in PICTURES:
        raise OptionError(option, f"'{path}' names no picture: let it end in {_PICTURE_LIST}")
    return OutputTarget(path, found, compression)


def targets_of(
    paths: Sequence[str], format_name: str | None, rows: RowKind
) -> tuple[OutputTarget, ...]:
    """Return the targets of some paths; a format is for one whose name does not matter."""
    if format_name is not None and len(paths) > 1:
        raise OptionError("format", "several outputs take their formats from their names")
    return tuple(target_of(path, format_name, rows=rows) for path in paths)


def fastq_targets(paths: Sequence[str]) -> tuple[OutputTarget, ...]:
    """Return files for reads as FASTQ, compressed as their names say."""
    ends = [os.path.splitext(path)[1].lower() for path in paths]
    return tuple(
        OutputTarget(path, "fastq", COMPRESSIONS.get(end))
        for path, end in zip(paths, ends, strict=True)
    )


def _format_of_suffix(suffix: str, rows: RowKind, option: str) -> str:
    """Return the format of files that end so, also one that such rows cannot be written in."""
    for one in FORMATS.values():
        if suffix in one.suffixes and one.name != DEFAULT_FORMAT:
            return one.name
    if suffix and rows is not RowKind.MATCHES:
        known = ", ".join(f".{name}" for name in names_of(rows))
        text = f"no format has names that end in '{suffix}': choose {known}, or one with --format"
        raise OptionError(option, text)
    return USUAL[rows]


def _suffix_of(path: str) -> str:
    """Return how the name of a file ends, in small letters and without the end of a compression."""
    stem, suffix = os.path.splitext(path)
    if suffix.lower() in COMPRESSIONS:
        suffix = os.path.splitext(stem)[1]
    return suffix.lower()
