"""What the section on one ordinary run says about its matches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mummergpu.drawing.colours import BLUE
from mummergpu.drawing.style import number_plainly
from mummergpu.matching.match_counts import LengthCount, with_gaps
from mummergpu.runtime.words import counted
from mummergpu.studies.analysis.run_stats import RunStats
from mummergpu.studies.report.blocks import Block, Drawing, Paragraph, Table
from mummergpu.studies.report.style import drawn, new_figure
from mummergpu.studies.report.words import ABSENT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE: Final = 20
"""Lengths that differ by more than this factor are drawn on a logarithmic axis."""


def match_blocks(stats: RunStats, name: str) -> list[Block]:
    """Return what is told about the matches of a run; nothing if they were not counted."""
    if not stats.files:
        return []
    blocks: list[Block] = [Paragraph(_words(stats))]
    if stats.match_lengths:
        blocks.append(_lengths_drawing(stats.match_lengths, f"{name}-lengths"))
    return [*blocks, _files_table(stats), _strands_table(stats)]


def _words(stats: RunStats) -> str:
    matches, queries = stats.count("matches"), stats.count("queries")
    with_match, covered = stats.count("queries_with_match"), stats.count("bases_covered")
    reference = stats.count("reference_bases")
    return (
        f"The run found {matches:,} {'match' if matches == 1 else 'matches'}. Of "
        f"{counted(queries, 'query', 'queries')}, {with_match:,} "
        f"({_share(with_match, queries)}) have one. The matches cover {covered:,} of "
        f"{counted(reference, 'base')} of the reference ({_share(covered, reference)})."
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ABSENT


def _lengths_drawing(lengths: tuple[LengthCount, ...], name: str) -> Drawing:
    total = sum(one.matches for one in lengths)
    caption = (
        f"The lengths of {total:,} matches: how many have each length in bases. From 1,024 bases "
        "on, ranges of lengths were counted, and the mean of a range is shown. The axis of the "
        "numbers is logarithmic."
    )
    first, last = lengths[0].first, lengths[-1].last
    alternative = f"A histogram of lengths from {first:,} to {last:,} bases"
    return drawn(name, caption, alternative, lambda: _draw(lengths))


def _draw(lengths: tuple[LengthCount, ...]) -> Figure:
    ranges = list(with_gaps(lengths))
    edges = [ranges[0].first, *(one.last + 1 for one in ranges)]
    heights = [one.matches / (one.last + 1 - one.first) for one in ranges]
    figure = new_figure(2.6)
    axes = figure.subplots()
    lowest = min(height for height in heights if height)
    axes.set_yscale("log")
    axes.stairs(heights, edges, baseline=lowest / 2, fill=True, color=BLUE)
    axes.set_ylim(bottom=lowest / 2)
    number_plainly(axes.yaxis)
    if edges[-1] > WIDE * max(1, edges[0]):
        axes.set_xscale("log")
        number_plainly(axes.xaxis, (1.0, 2.0, 5.0))
    axes.set_xlabel("length of a match (bases)")
    axes.set_ylabel("matches of one length")
    axes.grid(axis="y")
    return figure


def _files_table(stats: RunStats) -> Table:
    rows = tuple(
        (
            file.path,
            f"{file.queries:,}",
            f"{file.query_bases:,}",
            f"{file.queries_with_match:,}",
            _share(file.queries_with_match, file.queries),
            f"{file.matches:,}",
        )
        for file in stats.files
    )
    columns = ("file", "queries", "bases", "queries with a match", "of all", "matches")
    return Table("The files of queries of one run.", columns, rows)


def _strands_table(stats: RunStats) -> Table:
    queries = stats.count("queries")
    rows = tuple(
        (
            one.strand,
            f"{one.queries_with_match:,}",
            _share(one.queries_with_match, queries),
            f"{one.matches:,}",
        )
        for one in stats.strands
    )
    columns = ("strand", "queries with a match", "of all", "matches")
    return Table("The strands of the queries that were searched.", columns, rows)
