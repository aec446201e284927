"""The command from Python: from files to files, with the same output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mummergpu.api.log import context_of
from mummergpu.api.requests import PathLike, cluster_options, device_options, targets_asked
from mummergpu.index.file import kind_for_reference
from mummergpu.index.options import DEFAULT_MINIMUM_LENGTH, IndexOptions
from mummergpu.matching.options import MODES, STRANDS, SearchOptions
from mummergpu.output.formats import RowKind
from mummergpu.output.options import SamOptions, TextStyle, usual_read_group
from mummergpu.pipeline import match as pipeline
from mummergpu.pipeline.downstream_presets import PRESETS, TextRequest, with_preset
from mummergpu.pipeline.options import MatchOptions, refuse_single_mates
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import check_bool, instance, one_of, path, paths
from mummergpu.runtime.stats import Stats


@frozen
class RunStats:
    """The counts and times of a run.

    Attributes
    ----------
    queries, query_bases, matches : int
        Counts; `matches` is 0 for a run that maps reads, and counts the anchors of alignments for a
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
        The mapped reads, and those in proper pairs; 0 for a run that does not map.
    alignments : int
        The alignments written; 0 for a run that does not align genomes.
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
        """Return the counts and times of a finished run."""
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
    strands: str | None = None,
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
    for_program: str | None = None,
    cluster: Any = None,
) -> RunStats:
    """Find the matches of all queries in files, and write them to files.

    Parameters
    ----------
    reference : path
        A FASTA file or an index file.
    queries : path, or iterable of paths
        Files of queries, in the order of the output.
    output : path, or iterable of paths
        The files for the matches; their names choose the format and the compression.
    min_length : int, default 20
        The minimum length of a match, in bases.
    strands : str, optional
        ``forward``, the default unless `for_program` needs both; ``reverse`` or ``both``.
    mode : str, default "all"
        ``all`` (or ``maxmatch``), ``mumreference`` or ``mum``.
    backend : str, default "auto"
        ``cpu``, ``cuda``, or ``auto``: the one that is expected to be faster.
    threads : int, optional
        The number of threads; by default one for each processor.
    format : str, optional
        The format of a single output; overrides its name.
    style : TextStyle, optional
        The options of MUMmer's text.
    sam : SamOptions, optional
        The options of SAM and BAM; by default all matches are written, in a read group with the
        name of the first file of queries.
    max_memory : int, optional
        The memory limit for the reference and its index, in bytes; by default half of the free
        memory.
    any_letters : bool, default False
        Accept records whose letters are mostly not DNA or RNA.
    no_empty : bool, default False
        Treat a query file without reads as an error.
    pair : bool, default False
        The queries are pairs of reads, as for ``--pair``: first and second mates from two files in
        turn, or one after the other from one file. Names end in ``/1`` and ``/2``.
    for_program : str, optional
        The program that reads the text, as for ``--for``: ``mgaps``, ``nucmer`` (which takes both
        strands unless `strands` is ``reverse``, and ``mumreference`` unless `mode` is ``mum`` or
        ``maxmatch``) or ``mummerplot``, which takes both strands, too.
    cluster : distributed.Client or str, optional
        A Dask cluster for the work, or its address as for ``--cluster``; the output is the same.

    Returns
    -------
    RunStats
        Counts and times.

    Raises
    ------
    MummergpuError
        If the input, an argument or the machine is at fault. No file is written then.
    """
    files, targets = paths("queries", queries), targets_asked(output, format, RowKind.MATCHES)
    refuse_single_mates(files, check_bool("pair", pair))
    style = instance("style", TextStyle() if style is None else style, TextStyle)
    if for_program is not None:
        one_of("for_program", for_program, PRESETS)
    if strands is not None:
        one_of("strands", strands, STRANDS)
    asked = TextRequest(strands, None if one_of("mode", mode, MODES) == "all" else mode, style)
    asked = with_preset(for_program, asked, [target.format for target in targets])
    name, device = path("reference", reference), device_options(backend, threads)
    search = SearchOptions.of_words(min_length, asked.strands or "forward", asked.mode or "all")
    options = MatchOptions(
        name,
        files,
        targets,
        index=IndexOptions(search.minimum_length, kind_for_reference(name), max_memory),
        search=search,
        style=asked.style,
        sam=SamOptions(usual_read_group(files)) if sam is None else sam,
        paired=pair,
        threads=device.threads,
        device=device,
        any_letters=any_letters,
        no_empty=no_empty,
    )
    context = context_of(options.threads)
    if cluster is None:
        pipeline.run(options, context)
    else:
        from mummergpu.cluster.match_queries import run_match

        run_match(options, context, cluster_options(cluster, options.threads))
    return RunStats.of(context.stats)
