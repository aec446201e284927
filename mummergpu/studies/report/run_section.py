"""The section on one ordinary run, from its ``--stats`` file: times, matches, mapped reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mummergpu.drawing.colours import BLUE, INK, ORANGE
from mummergpu.drawing.style import number_plainly
from mummergpu.matching.match_counts import LengthCount, with_gaps
from mummergpu.runtime.words import counted
from mummergpu.studies.analysis.run_stats import (
    WHOLE_RUN,
    InsertSizeCounts,
    MappingCounts,
    RunStats,
)
from mummergpu.studies.report.blocks import Block, Drawing, Paragraph, Section, Table
from mummergpu.studies.report.style import drawn, new_figure
from mummergpu.studies.report.words import ABSENT, bytes_text, optional, time_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SETTINGS = ("backend", "device", "search", "mode", "policy", "threads", "minimum_length")


def run_section(stats: RunStats, number: int) -> Section:
    """Return the section on a run; `number` makes the names of its parts unique."""
    name = f"run-{number}"
    drawing = _stages_drawing(stats, name, _caption(stats))
    blocks: list[Block] = [Paragraph(_first_words(stats))]
    blocks += [drawing] if drawing else []
    blocks.append(_stages_table(stats))
    if stats.kernels:
        blocks.append(_kernels_table(stats))
    blocks += _match_blocks(stats, name)
    if stats.mapping is not None:
        blocks += _mapping_blocks(stats.mapping, name)
    blocks.append(_facts_table(stats))
    return Section(name, f"Where the time of a run went: {Path(stats.path).name}", tuple(blocks))


def _whole_seconds(stats: RunStats) -> float | None:
    return next((stage.seconds for stage in stats.stages if stage.name == WHOLE_RUN), None)


def _settings_text(stats: RunStats) -> str:
    known = ((name.replace("_", " "), stats.setting(name)) for name in _SETTINGS)
    return ", ".join(f"{name} {text}" for name, text in known if text is not None)


def _caption(stats: RunStats) -> str:
    return (
        "Seconds of each stage of one run, summed over the threads that worked on it. Stages that "
        f"overlap can add up to more than '{WHOLE_RUN}', which is wall-clock time; the kernels of "
        f"a GPU are the device's own time. One run, no median: {_settings_text(stats)}."
    )


def _first_words(stats: RunStats) -> str:
    whole = _whole_seconds(stats)
    parts = sorted(
        (stage for stage in stats.stages if stage.name != WHOLE_RUN), key=lambda one: -one.seconds
    )
    text = f"The run took {time_text(whole)}." if whole is not None else "The run did not end."
    if parts:
        most = ", ".join(f"{stage.name} ({time_text(stage.seconds)})" for stage in parts[:3])
        text += f" Most went to {most}; seconds are summed over threads."
    return f"{text} Its memory peaked at {bytes_text(stats.peak_memory_bytes)}."


def _stages_table(stats: RunStats) -> Table:
    whole = _whole_seconds(stats)
    rows = tuple(
        (
            stage.name,
            time_text(stage.seconds),
            f"{stage.seconds / whole:.1%}" if whole else ABSENT,
            f"{stage.count:,}",
            bytes_text(stage.peak_memory_bytes) if stage.peak_memory_bytes else ABSENT,
        )
        for stage in stats.stages
    )
    columns = ("stage", "seconds, all threads", f"of {WHOLE_RUN}", "times", "peak memory then")
    caption = f"The stages of one run: {_settings_text(stats)}."
    return Table(caption, columns, rows)


def _kernels_table(stats: RunStats) -> Table:
    rows = tuple(
        (
            kernel.name,
            time_text(kernel.milliseconds / 1000),
            f"{kernel.launches:,}",
            optional(kernel.registers, ".0f"),
            optional(kernel.local_bytes, ".0f"),
            optional(kernel.occupancy, ".0%"),
            optional(kernel.node_visits),
        )
        for kernel in stats.kernels
    )
    columns = (
        *("kernel", "device time", "launches", "registers of a thread"),
        *("local memory of a thread (bytes)", "occupancy", "node visits"),
    )
    return Table(f"The kernels of one run: {_settings_text(stats)}.", columns, rows)


def _facts_table(stats: RunStats) -> Table:
    rows = [(one.name, f"{one.number:,}") for one in stats.counts]
    rows += [(f"bytes, {one.name}", bytes_text(one.number)) for one in stats.bytes]
    rows += [(one.name, one.text) for one in stats.settings]
    return Table("What the run counted, and how it was set.", ("name", "value"), tuple(rows))


def _stages_drawing(stats: RunStats, name: str, caption: str) -> Drawing | None:
    """Draw the seconds of each stage of a run."""
    if not stats.stages:
        return None
    alternative = "Bars: the seconds of each stage of the run"
    return drawn(name, caption, alternative, lambda: _draw_stages(stats))


def _draw_stages(stats: RunStats) -> Figure:
    figure = new_figure(0.8 + 0.24 * len(stats.stages))
    axes = figure.subplots()
    for row, stage in enumerate(stats.stages):
        whole = stage.name == WHOLE_RUN
        axes.barh(
            row,
            stage.seconds,
            height=0.7,
            color=ORANGE if whole else BLUE,
            edgecolor=INK,
            linewidth=0.4,
            hatch="////" if whole else None,
        )
        axes.annotate(
            time_text(stage.seconds),
            (stage.seconds, row),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )
    axes.set_yticks(range(len(stats.stages)), [stage.name for stage in stats.stages])
    axes.set_ylim(len(stats.stages) - 0.4, -0.6)
    axes.margins(x=0.12)
    axes.set_xlabel("seconds, summed over threads")
    axes.grid(axis="x")
    return figure


WIDE: Final = 20
"""Lengths that differ by more than this factor are drawn on a logarithmic axis."""


def _match_blocks(stats: RunStats, name: str) -> list[Block]:
    """Return what is told about the matches of a run; nothing if they were not counted."""
    if not stats.files:
        return []
    blocks: list[Block] = [Paragraph(_match_words(stats))]
    if stats.match_lengths:
        blocks.append(_lengths_drawing(stats.match_lengths, f"{name}-lengths"))
    return [*blocks, _files_table(stats), _strands_table(stats)]


def _match_words(stats: RunStats) -> str:
    matches, queries = stats.count("matches"), stats.count("queries")
    with_match, covered = stats.count("queries_with_match"), stats.count("bases_covered")
    reference = stats.count("reference_bases")
    return (
        f"The run found {matches:,} {'match' if matches == 1 else 'matches'}. Of "
        f"{counted(queries, 'query', 'queries')}, {with_match:,} "
        f"({_share(with_match, queries)}) have one. The matches cover {covered:,} of "
        f"{counted(reference, 'base')} of the reference ({_share(covered, reference)})."
    )


def _share(part: int, whole: int, digits: int = 1) -> str:
    return f"{part / whole:.{digits}%}" if whole else ABSENT


def _lengths_drawing(lengths: tuple[LengthCount, ...], name: str) -> Drawing:
    total = sum(one.matches for one in lengths)
    caption = (
        f"The lengths of {total:,} matches: how many have each length in bases. From 1,024 bases "
        "on, ranges of lengths were counted, and the mean of a range is shown. The axis of the "
        "numbers is logarithmic."
    )
    first, last = lengths[0].first, lengths[-1].last
    alternative = f"A histogram of lengths from {first:,} to {last:,} bases"
    return drawn(name, caption, alternative, lambda: _draw_lengths(lengths))


def _draw_lengths(lengths: tuple[LengthCount, ...]) -> Figure:
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


_DEVIATIONS_SHOWN: Final = 6
"""The figure of insert sizes ends so many standard deviations above the mean."""


def _mapping_blocks(found: MappingCounts, name: str) -> list[Block]:
    """Return what is told about the reads of a run that mapped them."""
    blocks: list[Block] = [Paragraph(_mapping_words(found)), _reads_table(found)]
    if found.mapped:
        blocks.append(_qualities_drawing(found.mapping_qualities, f"{name}-qualities"))
    if found.insert_size.mean is not None:
        blocks.append(_sizes_drawing(found.insert_size, f"{name}-insert-sizes"))
    return blocks


def _mapping_words(found: MappingCounts) -> str:
    text = f"Of {counted(found.reads, 'read')}, {found.mapped:,} "
    text += f"({_share(found.mapped, found.reads, 2)}) are mapped."
    sizes = found.insert_size
    if sizes.mean is not None and sizes.standard_deviation is not None:
        text += (
            f" The insert size of {counted(sizes.pairs, 'proper pair')} is {sizes.mean:,.1f} bases "
            f"in the mean, with a standard deviation of {sizes.standard_deviation:,.1f}."
        )
    return text


def _reads_table(found: MappingCounts) -> Table:
    numbers = (
        ("mapped", found.mapped, found.reads),
        ("with a mate", found.paired, found.reads),
        ("in proper pairs", found.properly_paired, found.paired),
        ("mapped as their mates are", found.mapped_with_mate, found.paired),
        ("mapped, and their mates are not", found.singletons, found.paired),
        ("with the mate on another record", found.mate_on_other_record, found.paired),
    )
    rows = [("all", f"{found.reads:,}", ABSENT)]
    rows += [(name, f"{number:,}", _share(number, whole, 2)) for name, number, whole in numbers]
    rows += [
        ("secondary alignments besides", f"{found.secondary:,}", ABSENT),
        ("supplementary alignments besides", f"{found.supplementary:,}", ABSENT),
    ]
    columns = ("reads", "number", "share (of pairs: of reads with a mate)")
    return Table("What became of the reads.", columns, tuple(rows))


def _qualities_drawing(counts: Sequence[int], name: str) -> Drawing:
    caption = (
        "The mapping qualities of the mapped reads: how many reads have each. The axis of the "
        "numbers is logarithmic."
    )
    alternative = f"A histogram of mapping qualities from 0 to {len(counts) - 1}"
    return drawn(
        name,
        caption,
        alternative,
        lambda: _draw_histogram(counts, 0, "mapping quality", "reads", log=True),
    )


def _sizes_drawing(sizes: InsertSizeCounts, name: str) -> Drawing:
    assert sizes.mean is not None and sizes.standard_deviation is not None
    far = _DEVIATIONS_SHOWN * sizes.standard_deviation + 1
    first = max(0, int(sizes.mean - far))
    counts = sizes.counts[first : int(sizes.mean + far) + 1]
    others = sizes.pairs - sum(counts)
    caption = f"The insert sizes of {sizes.pairs:,} proper pairs: how many have each."
    if others:
        caption += f" {others:,} are outside of the figure."
    alternative = f"A histogram of insert sizes from {first:,} bases on"
    return drawn(
        name,
        caption,
        alternative,
        lambda: _draw_histogram(counts, first, "insert size (bases)", "pairs"),
    )


def _draw_histogram(
    counts: Sequence[int], first: int, what: str, unit: str, log: bool = False
) -> Figure:
    figure = new_figure(2.6)
    axes = figure.subplots()
    edges = [first + place - 0.5 for place in range(len(counts) + 1)]
    baseline = 0.0
    if log:
        axes.set_yscale("log")
        baseline = 0.5
    axes.stairs(counts, edges, baseline=baseline, fill=True, color=BLUE)
    axes.set_ylim(bottom=baseline)
    axes.set_xlabel(what)
    axes.set_ylabel(unit)
    axes.grid(axis="y")
    return figure
