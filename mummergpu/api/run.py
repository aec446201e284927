"""The command from Python: from files to files, with the same output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO

from mummergpu.api.log import LOG, tell_of_compiling
from mummergpu.api.requests import (
    PathLike,
    device_options,
    instance,
    meaning,
    memory_asked,
    path_asked,
    paths_asked,
    positive,
    refuse_single_mates,
    search_options,
    thread_count,
    truth,
)
from mummergpu.errors import OptionError
from mummergpu.index.file import kind_for_reference
from mummergpu.index.options import DEFAULT_MINIMUM_LENGTH, IndexOptions
from mummergpu.output.matches.mummer import TextStyle
from mummergpu.output.records.sam_options import SamOptions, usual_read_group
from mummergpu.output.targets import FORMATS, OutputTarget, target_of
from mummergpu.pipeline import match as pipeline
from mummergpu.pipeline.options import MatchOptions
from mummergpu.pipeline.purposes import NEEDS, TEXT_FORMAT
from mummergpu.runtime.progress import NullProgress
from mummergpu.runtime.stats import Stats


@dataclass(frozen=True)
class RunStats:
    """What a run did and what it cost.

    Attributes
    ----------
    queries, query_bases, matches : int
        Counts; matches are 0 for a run that maps reads, and those that alignments begin with for a
        run that aligns genomes.
    seconds : float
        The time of the whole run.
    stage_seconds : mapping of str to float
        The seconds of each stage, summed over threads (``--stats`` has the same names).
    output_bytes : int
        The bytes written.
    backend : str
        ``cpu`` or ``cuda``.
    mapped, properly_paired : int
        The reads that are mapped, and those in proper pairs; 0 for a run that does not map.
    alignments : int
        The alignments that are written; 0 for a run that does not align genomes.
    """

    queries: int
    query_bases: int
    matches: int
    seconds: float
    stage_seconds: Mapping[str, float]
    output_bytes: int
    backend: str
    mapped: int = 0
    properly_paired: int = 0
    alignments: int = 0

    @classmethod
    def of(cls, stats: Stats) -> RunStats:
        """Return the figures of a run that has ended."""
        seconds = {name: stage.seconds for name, stage in stats.stages.items() if stage.count}
        return cls(
            stats.counts.get("queries", 0),
            stats.counts.get("query_bases", 0),
            stats.counts.get("matches", 0),
            seconds.pop("end_to_end", 0.0),
            seconds,
            stats.bytes.get("output", 0),
            str(stats.settings.get("backend", "")),
            stats.counts.get("mapped_reads", 0),
            stats.counts.get("properly_paired_reads", 0),
            stats.counts.get("alignments", 0),
        )


def match(
    reference: PathLike,
    queries: PathLike | Iterable[PathLike],
    output: PathLike | Iterable[PathLike],
    min_length: int = DEFAULT_MINIMUM_LENGTH,
    strands: str = "both",
    mode: str = "all",
    backend: str = "auto",
    threads: int | None = None,
    *,
    format: str | None = None,
    style: TextStyle | None = None,
    sam: SamOptions | None = None,
    max_memory: int | None = None,
    any_letters: bool = False,
    no_empty: bool = False,
    pair: bool = False,
    purpose: str | None = None,
) -> RunStats:
    """Find the matches of all queries in files, and write them to files.

    Parameters
    ----------
    reference : path
        A FASTA file or an index file.
    queries : path, or iterable of paths
        Files of queries, in the order of the output.
    output : path, or iterable of paths
        The files for the matches; the name of each decides on its format and compression.
    min_length : int, default 20
        The fewest bases of a match.
    strands : str, default "both"
        ``both``, ``forward`` (the command's default) or ``reverse``.
    mode : str, default "all"
        ``all`` (or ``maxmatch``), ``mumreference`` or ``mum``.
    backend : str, default "auto"
        ``cpu``, ``cuda``, or the one that is expected to be faster.
    threads : int, optional
        The number of working threads; by default one for each processor.
    format : str, optional
        The format of a single output, whatever its name.
    style : TextStyle, optional
        The options of MUMmer's text.
    sam : SamOptions, optional
        The options of SAM, BAM and CRAM (`mummergpu.output.records.sam_options`); by default all
        matches are written, in a read group with the name of the first file of queries.
    max_memory : int, optional
        The most bytes for the reference and its index; by default half of what is free.
    any_letters : bool, default False
        Accept records whose letters are mostly not DNA or RNA.
    no_empty : bool, default False
        Treat a query file without reads as an error.
    pair : bool, default False
        The queries are pairs of reads, as for ``--pair``: first and second mates from two files in
        turn, or one after the other from one file. Names end in ``/1`` and ``/2``.
    purpose : str, optional
        The program that reads the text, as for ``--for``: ``mgaps``, ``nucmer`` (which takes
        ``mumreference`` unless `mode` is ``mum`` or ``maxmatch``) or ``mummerplot``.

    Returns
    -------
    RunStats
        Counts and times.

    Raises
    ------
    MummergpuError
        If the input, an argument or the machine is at fault. No file is left then.
    """
    count, pair = thread_count(threads), truth("pair", pair)
    name = path_asked("reference", reference)
    paths, targets = paths_asked("queries", queries), _targets_of(output, format)
    refuse_single_mates(paths, pair)
    style = instance("style", TextStyle() if style is None else style, TextStyle)
    sam = SamOptions(usual_read_group(paths)) if sam is None else sam
    strands, mode, style = _with_purpose(
        purpose, strands, mode, style, [target.format for target in targets]
    )
    length = positive("min_length", min_length)
    stats = Stats()
    options = MatchOptions(
        name,
        paths,
        targets,
        threads=count,
        index=IndexOptions(length, kind_for_reference(name), memory_asked(max_memory)),
        search=search_options(length, strands, mode),
        device=device_options(backend, count),
        style=style,
        sam=instance("sam", sam, SamOptions),
        any_letters=truth("any_letters", any_letters),
        no_empty=truth("no_empty", no_empty),
        paired=pair,
    )
    tell_of_compiling()
    pipeline.run(options, stats, NullProgress(StringIO()), LOG.info, LOG.warning)
    return RunStats.of(stats)


def _targets_of(
    output: PathLike | Iterable[PathLike], format_name: str | None
) -> tuple[OutputTarget, ...]:
    names = paths_asked("output", output)
    if format_name is not None:
        format_name = meaning("format", format_name, {name: name for name in FORMATS})
        if len(names) > 1:
            raise OptionError("format", "several outputs take their formats from their names")
    return tuple(target_of(name, format_name, "output") for name in names)


def _with_purpose(
    purpose: str | None, strands: str, mode: str, style: TextStyle, formats: Sequence[str]
) -> tuple[str, str, TextStyle]:
    """Return the strands, the mode and the style of a run, with what its purpose needs.

    Parameters
    ----------
    purpose : str or None
        ``mgaps``, ``nucmer`` or ``mummerplot``; None changes nothing.
    strands, mode, style
        As for `match`; the mode ``maxmatch`` stands for all matches in spite of the purpose.
    formats : sequence of str
        The formats of the outputs.

    Raises
    ------
    OptionError
        If there is no such purpose, or something else makes no sense for it.
    """
    if purpose is None:
        return strands, mode, style
    needs = meaning("purpose", purpose, NEEDS)
    clashes = [name for name in needs.refused if getattr(style, name)]
    if needs.both_strands and strands == "forward":
        clashes.append("strands='forward'")
    if TEXT_FORMAT not in formats:
        clashes.append(f"output as {formats[0]}")
    if clashes:
        raise OptionError("purpose", f"{purpose!r} and {clashes[0]} exclude each other")
    if needs.unique_in_reference and mode == "all":
        mode = "mumreference"
    style = replace(
        style,
        forward_coordinates=style.forward_coordinates or needs.forward_coordinates,
        three_columns_for=purpose if needs.three_columns else "",
    )
    return strands, mode, style
