"""The sections on kernels, the limit of the device, and the machines, and their figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from mummergpu.drawing.colours import BLUE, INK, ORANGE
from mummergpu.drawing.style import shortened
from mummergpu.studies.analysis.kernel_facts import (
    TREE_KERNELS,
    KernelFacts,
    facts_of,
    gather_limit,
)
from mummergpu.studies.report.blocks import Block, Drawing, Section, Table
from mummergpu.studies.report.study import Study, captioned, named_layouts
from mummergpu.studies.report.style import drawn, new_figure, panels
from mummergpu.studies.report.words import (
    ABSENT,
    bytes_text,
    digits,
    letters_text,
    optional,
    time_text,
)
from mummergpu.studies.subject import StudySetup

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def kernels_section(studies: Sequence[Study]) -> Section | None:
    """Return the section on the resources of kernels, None if there is no GPU's sweep."""
    blocks: list[Block] = []
    for number, study in enumerate(studies, 1):
        if not study.facts:
            continue
        drawing = resources_figure(study, f"resources-{number}")
        blocks += [drawing] if drawing else []
        blocks.append(_resources_table(study))
    title = "Registers, local memory and occupancy"
    return Section("kernels", title, tuple(blocks)) if blocks else None


def gathers_section(studies: Sequence[Study]) -> Section | None:
    """Return the section on visits against the device's limit, None if they were not counted."""
    drawing = gathers_figure(studies)
    if not drawing:
        return None
    blocks: list[Block] = [drawing, *(_gathers_table(study) for study in studies if study.facts)]
    return Section("gathers", "How near the device's limit", tuple(blocks))


def machines_section(studies: Sequence[Study]) -> Section:
    """Return the section on what was searched, and where."""
    named = [(study.title, study.sweep.setup, _given(study)) for study in studies]
    return inputs_and_machines(named)


def inputs_and_machines(
    sweeps: Iterable[tuple[str, StudySetup, Sequence[tuple[str, str]]]],
) -> Section:
    """Return the section on what was searched, and where, of sweeps of whatever subject.

    Each comes with its title, what it was set up with, and facts about what it was given.
    """
    rows: list[tuple[str, str, str]] = []
    for title, setup, given in sweeps:
        facts = (*_machine_facts(setup), *given)
        rows += [("" if row else title, *fact) for row, fact in enumerate(facts)]
    caption = "What was measured, and on which machine."
    table = Table(caption, ("sweep", "fact", "value"), tuple(rows))
    return Section("machines", "Inputs and machines", (table,))


def _machine_facts(setup: StudySetup) -> tuple[tuple[str, str], ...]:
    machine = setup.machine
    clocks = (f"{name} {value:g} MHz" for name, value in machine.clocks_megahertz.items())
    versions = (f"{name} {text}" for name, text in machine.versions.items())
    return (
        ("backend, device", f"{machine.backend}, {machine.device}"),
        ("architecture, memory", f"{machine.architecture}, {bytes_text(machine.memory_bytes)}"),
        ("threads, multiprocessors", f"{machine.threads}, {machine.multiprocessors}"),
        ("highest clocks", ", ".join(clocks) or ABSENT),
        ("versions", ", ".join(versions) or ABSENT),
        ("program, day", f"{setup.program}, {setup.date}"),
    )


def _given(study: Study) -> tuple[tuple[str, str], ...]:
    given = study.sweep.setup.input
    strands = ", ".join(given.strands)
    return (
        ("pages, page size", f"{given.pages}, {given.page_size:,} bases"),
        ("node addresses, strands", f"{given.address_bits} bits, {strands}"),
        ("queries", f"{given.query_count:,} with {given.query_bases:,} bases"),
        ("digests", f"reference {given.reference_digest}, queries {given.query_digest}"),
    )


def _resources_table(study: Study) -> Table:
    rows = []
    for kernel in dict.fromkeys(one.kernel for one in study.facts):
        facts = facts_of(study.facts, kernel)
        rows.append(
            (
                kernel,
                _range_text([one.registers for one in facts]),
                _range_text([one.local_bytes for one in facts]),
                _range_text([one.shared_bytes for one in facts]),
                _range_text([_percent(one.occupancy) for one in facts]),
                _times_text(facts),
            )
        )
    columns = (
        *("kernel", "registers of a thread", "local memory of a thread (bytes)"),
        *("shared memory of a block (bytes)", "occupancy (%)", "median time"),
    )
    caption = captioned("The least and the greatest value over all layouts.", [study])
    return Table(caption, columns, tuple(rows))


def _gathers_table(study: Study) -> Table:
    rows = []
    for named in named_layouts(study):
        for one in study.facts:
            if one.policy == named.policy and one.visits_per_second:
                limit = gather_limit(study.sweep, one.policy)
                rows.append(
                    (
                        f"{named.part}: {letters_text(one.policy)}",
                        one.kernel,
                        f"{digits(one.visits_per_second / 1e9)}e9 / s",
                        f"{digits(limit / 1e9)}e9 / s" if limit else ABSENT,
                        optional(one.gather_share, ".0%"),
                    )
                )
    caption = captioned(
        "Nodes visited in a second by the layouts of note, and the random reads that the device "
        "makes in a second.",
        [study],
    )
    columns = ("layout", "kernel", "visits", "limit", "share")
    return Table(caption, columns, tuple(rows))


def _range_text(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ABSENT
    least, most = min(known), max(known)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _times_text(facts: Sequence[KernelFacts]) -> str:
    times = [one.milliseconds / 1000 for one in facts if one.milliseconds is not None]
    return f"{time_text(min(times))} to {time_text(max(times))}" if times else ABSENT


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


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
        _scatter(left, facts, [_number(_percent(one.occupancy)) for one in facts])
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
        axes.set_title(shortened(f"{kernel}: {study.title}"), fontsize=7)
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


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
