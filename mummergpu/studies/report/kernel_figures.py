"""Figures of the kernels on a GPU: registers and occupancy, visits against the gather limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from mummergpu.drawing.colours import BLUE, INK, ORANGE
from mummergpu.drawing.style import short_title
from mummergpu.studies.analysis.kernel_facts import TREE_KERNELS, KernelFacts, facts_of
from mummergpu.studies.report.blocks import Drawing
from mummergpu.studies.report.study import Study, captioned
from mummergpu.studies.report.style import drawn, new_figure, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHOWN_VISITS: Final = TREE_KERNELS[:2]
"""The kernels whose visits are drawn; the last pass visits few nodes."""


def resources_figure(study: Study, name: str) -> Drawing | None:
    """Draw the time of each kernel against its occupancy and its registers, for one study."""
    kernels = [kernel for kernel in TREE_KERNELS if _resourceful(study, kernel)]
    if not kernels:
        return None
    caption = captioned(
        "The time of each kernel that walks the tree against its occupancy (the resident threads "
        "of a multiprocessor as a share of the most it supports) and against the registers of a "
        "thread, as the driver reports them. Each point is a layout; 'count_mems' and 'write_mems' "
        "are the two passes of the print kernel.",
        [study],
    )
    return drawn(
        name,
        caption,
        "Points: the time of each layout against occupancy and registers, kernel by kernel",
        lambda: _draw_resources(study, kernels),
    )


def gathers_figure(studies: Sequence[Study]) -> Drawing | None:
    """Draw the node visits of each layout in a second beside the limit of the device."""
    shown = [
        (study, kernel)
        for study in studies
        for kernel in _SHOWN_VISITS
        if any(one.visits_per_second for one in facts_of(study.facts, kernel))
    ]
    if not shown:
        return None
    caption = captioned(
        "Nodes that a kernel visits in a second (counted in a profiled run, over the median time "
        "of the others), for every layout from the slowest to the fastest. Lines are the limits of "
        "the device: how many records at random addresses it reads in a second when each is named "
        "by the one before it, in a table of the tree's size, as whole nodes (merged) or "
        "as halves in two tables (split). Visits that caches serve can exceed it.",
        [study for study in studies if any(study is one for one, _ in shown)],
    )
    return drawn(
        "gathers",
        caption,
        "Points: node visits in a second for each layout; lines: the device's limits",
        lambda: _draw_gathers(shown),
    )


def _resourceful(study: Study, kernel: str) -> bool:
    return any(
        one.milliseconds is not None and (one.registers is not None or one.occupancy is not None)
        for one in facts_of(study.facts, kernel)
    )


def _draw_resources(study: Study, kernels: Sequence[str]) -> Figure:
    figure = new_figure(0.5 + 1.7 * len(kernels))
    flat = panels(figure, 2 * len(kernels), columns=2, share=False)
    for number, kernel in enumerate(kernels):
        left, right = flat[2 * number], flat[2 * number + 1]
        facts = facts_of(study.facts, kernel)
        _scatter(left, facts, [_percent(one.occupancy) for one in facts])
        _scatter(right, facts, [_number(one.registers) for one in facts])
        left.set_title(kernel)
        left.set_ylabel("time (ms)")
        left.set_xlabel("occupancy (%)")
        right.set_xlabel("registers of a thread")
        right.locator_params(axis="x", integer=True)
    handles, labels = flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4)
    return figure


def _scatter(axes: Axes, facts: Sequence[KernelFacts], places: Sequence[float]) -> None:
    for texture, colour, memory in ((False, BLUE, "global memory"), (True, ORANGE, "a texture")):
        for merged, marker, halves in ((True, "s", "merged"), (False, "o", "split")):
            chosen = [
                (place, _number(one.milliseconds))
                for place, one in zip(places, facts, strict=True)
                if (one.policy.tree_texture, one.policy.merged_tree) == (texture, merged)
            ]
            axes.plot(
                [place for place, _ in chosen],
                [time for _, time in chosen],
                linestyle="none",
                marker=marker,
                markersize=4,
                markerfacecolor=colour if merged else "none",
                markeredgecolor=colour,
                label=f"{halves} tree in {memory}",
            )
    axes.margins(x=0.08)
    axes.grid()


def _draw_gathers(shown: Sequence[tuple[Study, str]]) -> Figure:
    columns = min(2, len(shown))
    figure = new_figure(0.4 + 2.1 * -(-len(shown) // columns))
    flat = panels(figure, len(shown), columns, share=False)
    for axes, (study, kernel) in zip(flat, shown, strict=True):
        axes.set_title(short_title(f"{kernel}: {study.title}"), fontsize=7)
        _draw_visits(axes, study, kernel)
    handles, labels = flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4)
    return figure


def _draw_visits(axes: Axes, study: Study, kernel: str) -> None:
    facts = [one for one in facts_of(study.facts, kernel) if one.visits_per_second]
    facts.sort(key=lambda one: one.visits_per_second or 0.0)
    for merged, marker, colour, halves in (
        (True, "s", BLUE, "merged"),
        (False, "o", ORANGE, "split"),
    ):
        rows = [row for row, one in enumerate(facts) if one.policy.merged_tree == merged]
        axes.plot(
            [row + 1 for row in rows],
            [(facts[row].visits_per_second or 0.0) / 1e9 for row in rows],
            linestyle="none",
            marker=marker,
            markersize=3,
            markerfacecolor=colour if merged else "none",
            markeredgecolor=colour,
            label=f"{halves} tree",
        )
        limit = study.sweep.setup.machine.gathers_per_second.get(halves)
        if limit:
            axes.axhline(
                limit / 1e9,
                color=colour,
                linestyle="--" if merged else ":",
                linewidth=1.2,
                label=f"limit, {halves}",
            )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("layouts, slowest first")
    axes.set_ylabel("visits (1e9 / s)")
    axes.tick_params(colors=INK)
    axes.grid(axis="y")


def _percent(share: float | None) -> float:
    return math.nan if share is None else 100 * share


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
