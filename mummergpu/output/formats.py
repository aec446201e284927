"""The formats of output, each in one place: its name, its words, its files, and what writes it.

What makes the bytes of a format is imported only when a file of it is opened, so that the command
line can read this table as it starts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from mummergpu.errors import OptionError
from mummergpu.output.targets import BGZF, DEFAULT_FORMAT, OutputTarget
from mummergpu.runtime.frozen import frozen

if TYPE_CHECKING:
    from mummergpu.drawing.picture import PictureStyle
    from mummergpu.output.records.rows import RecordSource
    from mummergpu.output.run_facts import Opening
    from mummergpu.output.sink import Emit, Sink

    Opener = Callable[[Opening], Sink[Any, Any, Any]]
    Check = Callable[[OutputTarget, PictureStyle | None], None]

COMPRESSIONS: Final = {".gz": BGZF, ".bgz": BGZF, ".zst": "zstd"}
"""The compression that a suffix stands for. Gzip is written in the blocks of bgzf, which every
program that reads gzip can read, and others can read from the middle."""

PICTURES: Final = (".png", ".svg", ".pdf", ".html")
"""How the names of pictures end, which are of the format ``plot``."""

_PICTURE_LIST: Final = f"{', '.join(PICTURES[:-1])} or {PICTURES[-1]}"


class Rows(Enum):
    """What the rows of a file are; the value says it in errors."""

    MATCHES = "matches"
    READS = "alignments"
    GENOMES = "genome alignments"


@frozen
class OutputFormat:
    """A format of output.

    Attributes
    ----------
    name : str
        What ``--format`` calls it; the names of its files end so, after a dot.
    words : str
        What the help calls it.
    openers : mapping of Rows to callable
        What opens a sink that writes such rows.
    ends : tuple of str
        How the names of its files end, in place of a dot and its name.
    holds_compression : bool
        Whether it is compressed inside, or cannot be read if the file is compressed as a whole.
    check : callable, optional
        Refuses a file that cannot be made here.
    """

    name: str
    words: str
    openers: Mapping[Rows, Opener]
    ends: tuple[str, ...] = field(default=())
    holds_compression: bool = False
    check: Check | None = None

    @property
    def suffixes(self) -> tuple[str, ...]:
        """How the names of its files end."""
        return self.ends or (f".{self.name}",)


def _match_mummer(opening: Opening) -> Sink[Any, Any, Any]:
    from mummergpu.output.matches.mummer import MummerFormatter, TextStyle

    style = opening.facts.style or TextStyle()
    return opening.byte_sink(MummerFormatter(opening.facts.reference, style))


def _match_paf(opening: Opening) -> Sink[Any, Any, Any]:
    from mummergpu.output.matches.lines import PafFormat

    return opening.byte_sink(PafFormat(opening.facts.reference))


def _match_bed(opening: Opening) -> Sink[Any, Any, Any]:
    from mummergpu.output.matches.lines import BedFormat

    return opening.byte_sink(BedFormat(opening.facts.reference))


def _match_tsv(opening: Opening) -> Sink[Any, Any, Any]:
    from mummergpu.output.matches.lines import TsvFormat

    return opening.byte_sink(TsvFormat(opening.facts.reference))


def _match_delta(opening: Opening) -> Sink[Any, Any, Any]:
    from mummergpu.output.matches.delta import DeltaFormat

    facts = opening.facts
    return opening.byte_sink(DeltaFormat(facts.reference, facts.query_paths))


def _match_table(opening: Opening) -> Sink[Any, Any, Any]:
    from mummergpu.output.matches.arrow import ArrowSink

    facts, name = opening.facts, opening.target.format
    return ArrowSink(name, facts.reference, opening.emit, opening.stats, facts.max_match_rows)


def _match_picture(opening: Opening) -> Sink[Any, Any, Any]:
    from mummergpu.output.matches.picture_sink import PictureSink

    facts = opening.facts
    return PictureSink(
        *(opening.target.path, opening.emit, facts.reference, facts.query_paths),
        *(facts.picture, opening.stats, facts.max_match_rows),
    )


def _match_rows(opening: Opening) -> RecordSource:
    from mummergpu.output.matches.match_rows import MatchRows

    return MatchRows(opening.facts.reference, opening.facts.sam)


def _read_rows(opening: Opening) -> RecordSource:
    from mummergpu.output.alignments.read_rows import ReadRows

    return ReadRows(opening.facts.reference, opening.facts.records)


def _genome_rows(opening: Opening) -> RecordSource:
    from mummergpu.output.genomes.genome_rows import GenomeRows

    facts = opening.facts
    with_bases = facts.with_bases or opening.target.format != "sam"
    return GenomeRows(
        *(facts.reference, facts.qualities, with_bases),
        equal_bases=facts.records.equal_bases,
    )


_SOURCES: Final = {
    Rows.MATCHES: _match_rows,
    Rows.READS: _read_rows,
    Rows.GENOMES: _genome_rows,
}
"""What turns each kind of rows into the records of SAM, BAM and CRAM."""


def _sam_of(source_of: Callable[[Opening], RecordSource]) -> Opener:
    """Return what opens a SAM of the records of a source."""

    def open_sam(opening: Opening) -> Sink[Any, Any, Any]:
        from mummergpu.output.records.sam import AlignmentSam

        facts, source = opening.facts, source_of(opening)
        return opening.byte_sink(AlignmentSam(facts.reference, source, facts.head, facts.files))

    return open_sam


def _bam_of(source_of: Callable[[Opening], RecordSource]) -> Opener:
    """Return what opens a BAM of the records of a source."""

    def open_bam(opening: Opening) -> Sink[Any, Any, Any]:
        from mummergpu.output.records.bam import AlignmentBam

        facts, source = opening.facts, source_of(opening)
        made = AlignmentBam(facts.reference, source, facts.head, facts.files)
        if facts.sort is None:
            return opening.byte_sink(made)
        from mummergpu.output.sorting.sorted_bam import SortedBamSink

        return SortedBamSink(
            *(made, facts.reference, opening.emit, opening.stats),
            *(facts.sort, opening.index, facts.compressor),
        )

    return open_bam


def _read_paf(opening: Opening) -> Sink[Any, Any, Any]:
    from mummergpu.output.records.paf import AlignmentPaf

    return opening.byte_sink(AlignmentPaf(opening.facts.reference, _read_rows(opening)))


def _genome_delta(opening: Opening) -> Sink[Any, Any, Any]:
    from mummergpu.output.genomes.delta import GenomeDelta

    facts = opening.facts
    if len(facts.query_paths) > 1:
        raise OptionError("format", "a .delta is of one file of queries: write PAF, or join them")
    return opening.byte_sink(GenomeDelta(facts.reference, facts.query_paths[0], facts.warn))


def _genome_paf(opening: Opening) -> Sink[Any, Any, Any]:
    from mummergpu.output.genomes.genome_rows import GenomeRows
    from mummergpu.output.records.paf import AlignmentPaf

    facts = opening.facts
    source = GenomeRows(
        *(facts.reference, facts.qualities, False, facts.with_changes),
        equal_bases=facts.records.equal_bases,
    )
    return opening.byte_sink(AlignmentPaf(facts.reference, source, no_name=b""))


def _genome_vcf(opening: Opening) -> Sink[Any, Any, Any]:
    from mummergpu.output.genomes.vcf import GenomeVcf

    return opening.byte_sink(GenomeVcf(opening.facts.reference, opening.facts.query_paths))


def _cram_of(open_bam: Opener) -> Opener:
    """Return what opens a CRAM that is made of the BAM that `open_bam` opens a sink of."""

    def open_cram(opening: Opening) -> Sink[Any, Any, Any]:
        from mummergpu.output.records.cram import CramSink

        def keep_in(emit: Emit) -> Sink[Any, Any, Any]:
            return open_bam(opening.of_bam(emit))

        return CramSink(keep_in, opening.emit, opening.stats, opening.index)

    return open_cram


def _check_pyarrow(target: OutputTarget, _picture: PictureStyle | None) -> None:
    from mummergpu.output.matches.arrow import import_pyarrow

    import_pyarrow(target.format)


def _check_picture(target: OutputTarget, picture: PictureStyle | None) -> None:
    from mummergpu.output.matches.picture_sink import check_picture

    check_picture(target.path, picture)


_ALL_BAM: Final = {rows: _bam_of(source_of) for rows, source_of in _SOURCES.items()}

FORMATS: Final = {
    made.name: made
    for made in (
        OutputFormat("mummer", "MUMmer's text", {Rows.MATCHES: _match_mummer}),
        OutputFormat(
            "paf",
            "PAF, minimap2's table",
            {Rows.MATCHES: _match_paf, Rows.READS: _read_paf, Rows.GENOMES: _genome_paf},
        ),
        OutputFormat("bed", "BED, the matches on the reference", {Rows.MATCHES: _match_bed}),
        OutputFormat("tsv", "a table with a line of column names", {Rows.MATCHES: _match_tsv}),
        OutputFormat(
            "sam",
            "SAM",
            {rows: _sam_of(source_of) for rows, source_of in _SOURCES.items()},
        ),
        OutputFormat("bam", "BAM", _ALL_BAM, holds_compression=True),
        OutputFormat(
            "cram",
            "CRAM",
            {rows: _cram_of(open_bam) for rows, open_bam in _ALL_BAM.items()},
            holds_compression=True,
        ),
        OutputFormat(
            "parquet",
            "Parquet",
            {Rows.MATCHES: _match_table},
            holds_compression=True,
            check=_check_pyarrow,
        ),
        OutputFormat(
            "arrow",
            "Arrow's file format",
            {Rows.MATCHES: _match_table},
            ends=(".arrow", ".feather"),
            holds_compression=True,
            check=_check_pyarrow,
        ),
        OutputFormat(
            "delta",
            "nucmer's .delta",
            {Rows.MATCHES: _match_delta, Rows.GENOMES: _genome_delta},
        ),
        OutputFormat(
            "plot",
            f"a dot plot, whose name ends in {_PICTURE_LIST}",
            {Rows.MATCHES: _match_picture},
            ends=PICTURES,
            holds_compression=True,
            check=_check_picture,
        ),
        OutputFormat("vcf", "VCF of the differences", {Rows.GENOMES: _genome_vcf}),
    )
}
"""The formats, by their names."""

USUAL: Final = {Rows.MATCHES: DEFAULT_FORMAT, Rows.READS: "sam", Rows.GENOMES: "delta"}
"""The format of a file whose name says nothing else."""

SAM_FORMATS: Final = frozenset({"sam", "bam", "cram"})
"""The formats with the records of SAM."""


def names_of(rows: Rows) -> tuple[str, ...]:
    """Return the names of the formats that such rows can be written in, the usual one first."""
    usual = USUAL[rows]
    others = [one.name for one in FORMATS.values() if rows in one.openers and one.name != usual]
    return usual, *others


def target_of(
    path: str,
    format_name: str | None = None,
    option: str = "output",
    rows: Rows = Rows.MATCHES,
) -> OutputTarget:
    """Return the target that a path stands for.

    Parameters
    ----------
    path : str
        The file, whose name decides on the compression; "-" is standard output.
    format_name : str or None
        One of `FORMATS`; None for the one that the name of the file ends with, or else the usual
        one.
    option : str
        The parameter that names the file, for errors.

    Raises
    ------
    OptionError
        If the rows cannot be written in the format; or the name asks to compress a format that is
        compressed already, is to be a picture and does not say of which kind, or ends as that of no
        format does. Matches are text then.
    """
    compression = COMPRESSIONS.get(os.path.splitext(path)[1].lower())
    suffix = _suffix_of(path)
    found = format_name or _format_of_suffix(suffix, rows, option)
    if compression is not None and FORMATS[found].holds_compression:
        raise OptionError(option, f"'{path}' would compress {found} once more; leave the end out")
    if rows not in FORMATS[found].openers:
        *others, last = names_of(rows)
        known = f"{', '.join(others)} or {last}"
        raise OptionError(option, f"{rows.value} are written as {known}, and not as {found}")
    if found == "plot" and suffix not in PICTURES:
        raise OptionError(option, f"'{path}' names no picture: let it end in {_PICTURE_LIST}")
    return OutputTarget(path, found, compression)


def targets_of(
    paths: Sequence[str], format_name: str | None, rows: Rows
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


def _format_of_suffix(suffix: str, rows: Rows, option: str) -> str:
    """Return the format of files that end so; one that only other rows have is told of in errors.

    Matches have no differences: for them, a name in ``.vcf`` says nothing.
    """
    for one in FORMATS.values():
        is_known = rows in one.openers or Rows.MATCHES in one.openers
        if suffix in one.suffixes and is_known and one.name != DEFAULT_FORMAT:
            return one.name
    if suffix and rows is not Rows.MATCHES:
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
