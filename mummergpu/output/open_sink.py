"""Open the sink for a target: what makes its bytes is imported only if it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mummergpu.input.reference import Reference
from mummergpu.output.block_format import BlockFormat
from mummergpu.output.compression import compressor_of
from mummergpu.output.mummer import MummerFormatter, TextStyle
from mummergpu.output.sink import ByteSink, MatchSink, SeveralSinks
from mummergpu.output.targets import OutputTarget
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats


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
    """

    reference: Reference
    query_paths: tuple[str, ...]
    style: TextStyle
    most_rows: int
    threads: int
    command: str = ""


def open_sink(
    targets: Sequence[OutputTarget], files: Sequence[OutputFile], facts: RunFacts, stats: Stats
) -> MatchSink[Any]:
    """Return the sink that writes matches to all targets.

    Parameters
    ----------
    targets : sequence of OutputTarget
        At least one.
    files : sequence of OutputFile
        The open file of each target; the caller completes them.
    facts : RunFacts
        What formats may say about the run.
    stats : Stats
        Collects the bytes and the times.

    Returns
    -------
    MatchSink
        The sink; it has written what comes before the first match.

    Raises
    ------
    MummergpuError
        If a format cannot be made of this input, or its library is missing.
    """
    sinks = [
        _open_one(target, file, facts, stats) for target, file in zip(targets, files, strict=True)
    ]
    return sinks[0] if len(sinks) == 1 else SeveralSinks(sinks)


def _open_one(
    target: OutputTarget, file: OutputFile, facts: RunFacts, stats: Stats
) -> MatchSink[Any]:
    """Return the sink of one target. A format of bytes is a `BlockFormat`."""
    if target.format in ("arrow", "parquet"):
        from mummergpu.output.arrow import ArrowSink

        return ArrowSink(target.format, facts.reference, file, stats, facts.most_rows)
    made = _block_format(target.format, facts)
    return ByteSink(made, file, stats, facts.most_rows, compressor_of(target.compression))


def _block_format(name: str, facts: RunFacts) -> BlockFormat:
    if name == "mummer":
        return MummerFormatter(facts.reference, facts.style)
    raise NotImplementedError(name)
