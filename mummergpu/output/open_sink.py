"""Open the sink for a target: what makes its bytes is imported only if it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mummergpu.drawing.picture import PictureStyle
from mummergpu.input.reference import Reference
from mummergpu.output.bytes.compression import compressor_of
from mummergpu.output.matches.block_format import BlockFormat
from mummergpu.output.matches.mummer import MummerFormatter, TextStyle
from mummergpu.output.matches.sink import ByteSink, MatchSink, SeveralSinks
from mummergpu.output.records.sam_options import SamOptions
from mummergpu.output.targets import OutputTarget
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats

if TYPE_CHECKING:
    from mummergpu.output.matches.bam import BamFormat


@dataclass(frozen=True)
class RunFacts:
    """What formats may say about the run, or need to know of it.

    Attributes
    ----------
    reference : Reference
        The reference.
    query_paths : tuple of str
        The files of the queries, as the user named them.
    style : TextStyle
        The options of MUMmer's text.
    most_rows : int
        The matches of a block up to which its output may be prepared before it is written.
    threads : int
        The number of working threads.
    command : str
        The command line of the run; empty if there is none.
    sam : SamOptions
        The options of SAM, BAM and CRAM.
    picture : PictureStyle
        What pictures show, and how.
    """

    reference: Reference
    query_paths: tuple[str, ...]
    style: TextStyle
    most_rows: int
    threads: int
    command: str = ""
    sam: SamOptions = field(default_factory=SamOptions)
    picture: PictureStyle = field(default_factory=PictureStyle)


def check_targets(targets: Sequence[OutputTarget], picture: PictureStyle) -> None:
    """Refuse targets that cannot be made here, before there is a reference to open their sinks for.

    Raises
    ------
    LibraryError
        If the library for a format or a compression is missing.
    OptionError
        If there is no such picture.
    """
    for target in targets:
        if target.format == "plot":
            from mummergpu.output.matches.picture_sink import check_picture

            check_picture(target, picture)
        elif target.format in ("arrow", "parquet"):
            from mummergpu.output.matches.arrow import import_pyarrow

            import_pyarrow(target.format)
        elif target.compression is not None:
            compressor_of(target.compression)


def open_sink(
    targets: Sequence[OutputTarget], files: Sequence[OutputFile], facts: RunFacts, stats: Stats
) -> MatchSink[Any]:
    """Return the sink that writes matches to all targets.

    Parameters
    ----------
    files : sequence of OutputFile
        The open file of each target; the caller completes them.
    facts : RunFacts
        What formats may say about the run.
    stats : Stats
        Collects the bytes and the times.

    Returns
    -------
    MatchSink
        The sink; it has written what comes before the first match. The caller closes it.

    Raises
    ------
    MummergpuError
        If a format cannot be made of this input, or its library is missing.
    """
    sinks: list[MatchSink[Any]] = []
    with ExitStack() as failure:
        for target, file in zip(targets, files, strict=True):
            sinks.append(_open_one(target, file, facts, stats))
            failure.callback(sinks[-1].close)
        failure.pop_all()
    return sinks[0] if len(sinks) == 1 else SeveralSinks(sinks)


def _open_one(
    target: OutputTarget, file: OutputFile, facts: RunFacts, stats: Stats
) -> MatchSink[Any]:
    """Return the sink of one target. A format of bytes is a `BlockFormat`."""
    if target.format in BLOCK_FORMATS:
        made = BLOCK_FORMATS[target.format](facts)
        compressor = compressor_of("bgzf" if target.format == "bam" else target.compression)
        return ByteSink(made, file, stats, facts.most_rows, compressor, facts.threads)
    return SINKS[target.format](target, file, facts, stats)


def _mummer(facts: RunFacts) -> BlockFormat:
    return MummerFormatter(facts.reference, facts.style)


def _paf(facts: RunFacts) -> BlockFormat:
    from mummergpu.output.matches.lines import PafFormat

    return PafFormat(facts.reference)


def _bed(facts: RunFacts) -> BlockFormat:
    from mummergpu.output.matches.lines import BedFormat

    return BedFormat(facts.reference)


def _tsv(facts: RunFacts) -> BlockFormat:
    from mummergpu.output.matches.lines import TsvFormat

    return TsvFormat(facts.reference)


def _sam(facts: RunFacts) -> BlockFormat:
    from mummergpu.output.matches.sam import SamFormat

    return SamFormat(facts.reference, facts.sam, facts.command, ", ".join(facts.query_paths))


def _bam(facts: RunFacts) -> BamFormat:
    from mummergpu.output.matches.bam import BamFormat

    return BamFormat(facts.reference, facts.sam, facts.command, ", ".join(facts.query_paths))


def _delta(facts: RunFacts) -> BlockFormat:
    from mummergpu.output.matches.delta import DeltaFormat

    return DeltaFormat(facts.reference, facts.query_paths)


def _picture_sink(
    target: OutputTarget, file: OutputFile, facts: RunFacts, stats: Stats
) -> MatchSink[Any]:
    from mummergpu.output.matches.picture_sink import PictureSink

    return PictureSink(
        *(target, file, facts.reference, facts.query_paths),
        *(facts.picture, stats, facts.most_rows),
    )


def _cram_sink(
    _target: OutputTarget, file: OutputFile, facts: RunFacts, stats: Stats
) -> MatchSink[Any]:
    from mummergpu.output.matches.cram import CramSink

    return CramSink(_bam(facts), file, stats, facts.most_rows, facts.threads)


def _arrow_sink(
    target: OutputTarget, file: OutputFile, facts: RunFacts, stats: Stats
) -> MatchSink[Any]:
    from mummergpu.output.matches.arrow import ArrowSink

    return ArrowSink(target.format, facts.reference, file, stats, facts.most_rows)


BLOCK_FORMATS: Final[dict[str, Callable[[RunFacts], BlockFormat]]] = {
    "mummer": _mummer,
    "paf": _paf,
    "bed": _bed,
    "tsv": _tsv,
    "sam": _sam,
    "bam": _bam,
    "delta": _delta,
}
"""The formats of bytes, made block by block."""

SINKS: Final[dict[str, Callable[[OutputTarget, OutputFile, RunFacts, Stats], MatchSink[Any]]]] = {
    "cram": _cram_sink,
    "parquet": _arrow_sink,
    "arrow": _arrow_sink,
    "plot": _picture_sink,
}
"""The other formats, each with a sink of its own."""
