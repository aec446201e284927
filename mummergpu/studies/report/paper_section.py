"""The paper's findings, tables and Figures 4 to 9 beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from mummergpu.drawing.colours import BLUE, FAINT, INK, ORANGE, VERMILION
from mummergpu.drawing.style import shortened
from mummergpu.index.tree.policy import Policy
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.analysis.clusters import Bar, bars_of, texture_name
from mummergpu.studies.analysis.effects import (
    MIXED,
    NOISE,
    UNCLEAR,
    PolicyEffect,
    flag_name,
    policy_effect,
)
from mummergpu.studies.analysis.kernel_facts import registers_of_print
from mummergpu.studies.analysis.paper import (
    DEFAULT_CODE,
    DEVICE,
    FIGURES,
    FINDINGS,
    FIRST_VERSION_CODE,
    TABLE_1,
    TABLE_2,
    WORKLOAD,
    PaperFigure,
)
from mummergpu.studies.report.blocks import Block, Drawing, Paragraph, Section, Table
from mummergpu.studies.report.study import Study, captioned
from mummergpu.studies.report.style import drawn, new_figure, panels
from mummergpu.studies.report.words import (
    ABSENT,
    letters_text,
    listed,
    percent_text,
    stage_words,
    time_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def paper_section(studies: Sequence[Study]) -> Section:
    """Return the section that compares our sweeps with the paper."""
    intro = (
        f"Trapnell and Schatz measured 128 layouts on a {DEVICE} in 2009. Their figures are of "
        f"{WORKLOAD} and carry no numbers; what the text and the tables print stands here beside "
        "our own values."
    )
    blocks: list[Block] = [Paragraph(intro), _findings_table(studies)]
    drawings = [paper_figure(figure, studies) for figure in FIGURES]
    absent = [
        str(figure.number) for figure, drawing in zip(FIGURES, drawings, strict=True) if not drawing
    ]
    blocks += [drawing for drawing in drawings if drawing]
    if absent:
        noun = "Figure" if len(absent) == 1 else "Figures"
        words = "is" if len(absent) == 1 else "are"
        why = (
            "no two layouts of these sweeps differ in that policy alone"
            if any(study.is_gpu for study in studies)
            else "the cpu backend has no textures"
        )
        blocks.append(Paragraph(f"{noun} {listed(absent)} {words} missing: {why}."))
    blocks += [_times_table(studies), _workloads_table(studies)]
    return Section("paper", "The paper, and our data", tuple(blocks))


def _findings_table(studies: Sequence[Study]) -> Table:
    rows = []
    for finding in FINDINGS:
        effects = [policy_effect(one.timings, finding.letter, finding.stage) for one in studies]
        name = f"{flag_name(finding.letter)} ({finding.letter}), {stage_words(finding.stage)}"
        cells = [_effect_cell(effect) for effect in effects]
        rows.append((name, f"{finding.words} (section {finding.place})", *cells))
    caption = captioned(
        "The effect of each policy as the paper printed it, and as our data show it: mean (least "
        "to greatest change) over all pairs of layouts. 'kernels' is match, print and ordering "
        "here, and the total computation time in the paper.",
        studies,
    )
    columns = ("policy and stage", f"paper, {WORKLOAD}", *(study.title for study in studies))
    return Table(caption, columns, tuple(rows))


def _effect_cell(effect: PolicyEffect | None) -> str:
    if effect is None:
        return ABSENT
    noise = f" {effect.verdict}" if effect.verdict in (NOISE, MIXED, UNCLEAR) else ""
    spread = f"({percent_text(effect.least)} to {percent_text(effect.most)})"
    return f"{percent_text(effect.mean)} {spread}{noise}"


def _times_table(studies: Sequence[Study]) -> Table:
    rows = [
        (
            f"paper: {row.workload}, {DEVICE}",
            "MUMmerGPU 1.0",
            f"{row.first_match:,} ms",
            f"{row.first_print:,} ms",
            "1.00",
        )
        for row in TABLE_2
    ]
    rows += [
        (
            f"paper: {row.workload}, {DEVICE}",
            "MUMmerGPU 2.0",
            f"{row.second_match:,} ms",
            f"{row.second_print:,} ms",
            f"{row.speedup:.2f}",
        )
        for row in TABLE_2
    ]
    rows.sort(key=lambda row: [one.workload in row[0] for one in TABLE_2], reverse=True)
    for study in studies:
        rows += _own_times(study)
    caption = captioned(
        "Table 2 of the paper, and our times under the layouts of its two versions. Version 1.0 "
        f"used {FIRST_VERSION_CODE} and printed on the processor; version 2.0 used {DEFAULT_CODE}. "
        "Both kernels are ours here, so that only the layouts differ. Speedup: match and print "
        "together, against the first row of the same sweep.",
        studies,
    )
    return Table(caption, ("workload, device", "layout", "match", "print", "speedup"), tuple(rows))


def _own_times(study: Study) -> list[tuple[str, str, str, str, str]]:
    """Return the rows of a study; the layouts of the paper, and its own fastest."""
    codes = [FIRST_VERSION_CODE, DEFAULT_CODE] if study.is_gpu else ["rtn", "n"]
    policies = [Policy.from_code(code) for code in codes] + list(study.ranking.policies[:1])
    rows = []
    base = None
    for policy in policies:
        match, printing = (study.timings.of(policy, stage) for stage in ("match", "print"))
        both = match + printing
        if not both > 0:
            continue
        base = base or both
        fastest = ", the fastest" if policy is policies[-1] else ""
        rows.append(
            (
                study.title,
                letters_text(policy) + fastest,
                time_text(match),
                time_text(printing),
                f"{base / both:.2f}",
            )
        )
    return rows


def _workloads_table(studies: Sequence[Study]) -> Table:
    rows = [
        (
            f"paper: {row.name}",
            f"{row.reference_bases:,}",
            str(row.minimum_length),
            row.read_type,
            f"{row.read_count:,}",
        )
        for row in TABLE_1
    ]
    for study in studies:
        given = study.sweep.setup.input
        reads = f"median {given.median_query_length:,} bp"
        cells = (f"{given.reference_bases:,}", str(given.minimum_length), reads)
        rows.append((study.title, *cells, f"{given.query_count:,}"))
    columns = ("workload", "reference (bases)", "least match (bases)", "reads", "number of reads")
    caption = "Table 1 of the paper, and what our sweeps searched."
    return Table(caption, columns, tuple(rows))


_GAP: Final = 1.0
"""The space between two groups of bars, in bars."""

_MIN_BARS: Final = 18
"""A panel has room for so many bars, so that few bars do not become broad."""

_WIDEST: Final = 3.0
"""A panel reaches at most so many times as far as its longest bar."""

_PANEL_HEIGHT: Final = 1.65
_REGISTERS: Final = ("registers of a thread, split tree", "registers of a thread, merged tree")


@frozen
class _Panel:
    """The bars of one study."""

    study: Study
    bars: tuple[Bar, ...]
    noise: float | None

    @property
    def places(self) -> list[float]:
        """The place of each bar on the horizontal axis."""
        places, place = [], 0.0
        for number, bar in enumerate(self.bars):
            place += 1.0 + _GAP * (number > 0 and bar.textures != self.bars[number - 1].textures)
            places.append(place)
        return places

    @property
    def labels(self) -> list[str]:
        """The labels below the bars."""
        return [bar.label for bar in self.bars]


def paper_figure(figure: PaperFigure, studies: Sequence[Study]) -> Drawing | None:
    """Draw a figure of the paper from our data, a panel for each study with layouts to compare.

    It is None if there is no such study.
    """
    shown = [panel for panel in (_panel(figure, study) for study in studies) if panel]
    if not shown:
        return None
    registers = next((panel for panel in shown if _has_registers(panel)), None)
    with_registers = figure.number == 9 and registers is not None
    caption = captioned(_caption(figure, registers if with_registers else None), _studies(shown))
    alternative = (
        f"Bars: change of the time in percent when the policy {figure.letter} is switched on, "
        "for each layout"
    )
    return drawn(
        f"paper-figure-{figure.number}",
        caption,
        alternative,
        lambda: _draw(figure, shown, registers if with_registers else None),
    )


def _studies(shown: Sequence[_Panel]) -> list[Study]:
    return [panel.study for panel in shown]


def _panel(figure: PaperFigure, study: Study) -> _Panel | None:
    effect = policy_effect(study.timings, figure.letter, figure.stage)
    bars = bars_of(effect) if effect else ()
    return _Panel(study, bars, effect.noise) if effect and bars else None


def _has_registers(panel: _Panel) -> bool:
    return any(registers_of_print(panel.study.facts, bar.pair.off) for bar in panel.bars)


def _caption(figure: PaperFigure, registers: _Panel | None) -> str:
    finding = figure.finding
    printed = (
        "A dashed line is the average that the paper printed"
        if finding.average is not None
        else "Dotted lines are the range that the paper printed"
    )
    both = " and dotted lines its range" if finding.average is not None and finding.most else ""
    top = (
        "Top: registers of a thread of the print kernel (the greater of its two passes) with split "
        f"and with merged tree, on {registers.study.title}. "
        if registers
        else ""
    )
    return (
        f"Figure {figure.number} of the paper, from our data: {figure.title}. {top}Each bar is the "
        "percent change of the time when the policy is switched on and all others stay as "
        "they are; negative is faster. Bars are grouped by the textures in use and labelled by the "
        "other policies; layouts with a two-dimensional reference are left out, as in the paper. "
        f"{printed}{both} ({WORKLOAD} on a {DEVICE}; section {finding.place}: {finding.words}); "
        "its bars carry no numbers, so they are not repeated here. A line that is missing lies far "
        "beyond our own values. The paper's own caption says: "
        f"'{figure.words}'. The grey band is the noise of our machine."
    )


def _draw(figure: PaperFigure, shown: Sequence[_Panel], registers: _Panel | None) -> Figure:
    same = all(panel.labels == shown[0].labels for panel in shown)
    count = len(shown) + bool(registers)
    drawing = new_figure(0.75 + _PANEL_HEIGHT * count + (0 if same else 0.3 * count))
    axes = list(panels(drawing, count, share=same))
    if registers:
        _draw_registers(axes[0], registers)
        axes = axes[1:]
    for panel, one in zip(shown, axes, strict=True):
        _draw_bars(one, panel, figure)
    entries = {
        label: handle
        for one in axes
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True)
    }
    if entries:
        handles = list(entries.values())
        drawing.legend(handles, list(entries), loc="outside lower center", ncols=len(entries))
    return drawing


def _draw_bars(axes: Axes, panel: _Panel, figure: PaperFigure) -> None:
    percents = [bar.pair.percent for bar in panel.bars]
    finding = figure.finding
    if panel.noise:
        axes.axhspan(
            -panel.noise, panel.noise, color=FAINT, alpha=0.3, lw=0, label="noise of the control"
        )
    for faster, colour, hatch in ((True, BLUE, None), (False, ORANGE, "////")):
        chosen = [one for one in zip(panel.places, percents, strict=True) if (one[1] < 0) == faster]
        axes.bar(
            [place for place, _ in chosen],
            [percent for _, percent in chosen],
            width=0.8,
            color=colour,
            edgecolor=INK,
            linewidth=0.4,
            hatch=hatch,
        )
    axes.axhline(0, color=INK, linewidth=0.7)
    if finding.average is not None:
        label = f"the paper's average ({finding.average:+g}%)"
        axes.axhline(finding.average, color=VERMILION, linestyle="--", linewidth=1, label=label)
    if finding.least is not None and finding.most is not None:
        label = f"the paper's range ({finding.least:+g}% to {finding.most:+g}%)"
        for bound in (finding.least, finding.most):
            axes.axhline(bound, color=VERMILION, linestyle=":", linewidth=1, label=label)
            label = "_"
    # A value of the paper that is far greater than ours would make our bars too short to read.
    reach = _WIDEST * max(1.0, panel.noise or 0.0, *map(abs, percents))
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -reach), min(high, reach))
    axes.set_ylabel("change (%)")
    _finish(axes, panel)


def _draw_registers(axes: Axes, panel: _Panel) -> None:
    facts = panel.study.facts
    for number, label in enumerate(_REGISTERS):
        pairs = [bar.pair for bar in panel.bars]
        policies = [pair.on if number else pair.off for pair in pairs]
        axes.plot(
            panel.places,
            [registers_of_print(facts, policy) or float("nan") for policy in policies],
            marker="s" if number else "o",
            markersize=4,
            linestyle="none",
            color=BLUE if number else ORANGE,
            markerfacecolor=BLUE if number else "none",
            label=label,
        )
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.45 * (high - low) - 1, high + 0.5)
    axes.set_ylabel("registers")
    axes.legend(loc="lower right", ncols=2)
    axes.locator_params(axis="y", integer=True)
    _finish(axes, panel)


def _finish(axes: Axes, panel: _Panel) -> None:
    """Label the bars and the groups of a panel."""
    places = panel.places
    axes.set_title(shortened(panel.study.title), pad=14)
    axes.set_xticks(places, panel.labels, rotation=90)
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(places[0] - 1, max(places[-1] + 1, _MIN_BARS))
    axes.grid(axis="y")
    groups: dict[str, list[float]] = {}
    for place, bar in zip(places, panel.bars, strict=True):
        groups.setdefault(bar.textures, []).append(place)
    for number, (textures, of_group) in enumerate(groups.items()):
        axes.text(
            sum(of_group) / len(of_group),
            1.02,
            texture_name(textures),
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=7,
        )
        if number:
            axes.axvline(of_group[0] - 1, color=INK, linewidth=0.4, alpha=0.4)
