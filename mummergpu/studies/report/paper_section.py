"""The paper's findings, tables and Figures 4 to 9 compared with ours."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

from mummergpu.drawing.colours import BLUE, FAINT, INK, ORANGE, VERMILION
from mummergpu.drawing.style import shortened
from mummergpu.index.tree.policy import Policy
from mummergpu.studies.report import page
from mummergpu.studies.report.effects import (
    MIXED,
    NOISE,
    UNCLEAR,
    Pair,
    PolicyEffect,
    flag_name,
    policy_effect,
)
from mummergpu.studies.report.figures import new_figure, panels
from mummergpu.studies.report.paper import (
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
from mummergpu.studies.report.study import Study, captioned
from mummergpu.studies.report.timings import letters_of, policy_order, registers_of_print

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TEXTURES: Final = "QRT"
_TEXTURE_SETS: Final = [
    "".join(letters) for count in range(4) for letters in combinations(_TEXTURES, count)
]


class Bar(NamedTuple):
    """A bar of a figure of the paper: the layout's other textures, its other policies, a pair."""

    textures: str
    label: str
    pair: Pair


class _Panel(NamedTuple):
    """The bars of one study, their places on the axis, and the noise of the stage in percent."""

    study: Study
    bars: Sequence[Bar]
    places: Sequence[float]
    noise: float | None


def paper_section(studies: Sequence[Study]) -> page.Section:
    """Return the section that compares our sweeps with the paper."""
    intro = (
        f"Trapnell and Schatz measured 128 layouts on a {DEVICE} in 2009. Their figures are of "
        f"{WORKLOAD} and carry no numbers; what the text and the tables print stands here beside "
        "our own values."
    )
    blocks: list[page.Block] = [page.Paragraph(intro), _findings_table(studies)]
    drawings = [_paper_figure(figure, studies) for figure in FIGURES]
    blocks += [drawing for drawing in drawings if drawing]
    absent = [
        str(figure.number) for figure, drawing in zip(FIGURES, drawings, strict=True) if not drawing
    ]
    if absent:
        noun = "Figure" if len(absent) == 1 else "Figures"
        why = (
            "no two layouts of these sweeps differ in that policy alone"
            if any(study.is_gpu for study in studies)
            else "the cpu backend has no textures"
        )
        blocks.append(page.Paragraph(f"Without {noun} {page.listed(absent)}: {why}."))
    blocks += [_times_table(studies), _workloads_table(studies)]
    return page.Section("paper", "The paper, and our data", tuple(blocks))


def _findings_table(studies: Sequence[Study]) -> page.Table:
    rows = []
    for finding in FINDINGS:
        effects = [policy_effect(one.timings, finding.letter, finding.stage) for one in studies]
        name = f"{flag_name(finding.letter)} ({finding.letter}), {page.stage_words(finding.stage)}"
        words = f"{finding.words} (section {finding.place})"
        rows.append((name, words, *map(_effect_cell, effects)))
    caption = captioned(
        "The effect of each policy as the paper printed it, and as our data show it: mean (least "
        "to greatest change) over all pairs of layouts. 'kernels' is match, print and ordering "
        "here, and the total computation time in the paper.",
        studies,
    )
    columns = ("policy and stage", f"paper, {WORKLOAD}", *(study.title for study in studies))
    return page.Table(caption, columns, tuple(rows))


def _effect_cell(effect: PolicyEffect | None) -> str:
    if effect is None:
        return page.ABSENT
    noise = f" {effect.verdict}" if effect.verdict in (NOISE, MIXED, UNCLEAR) else ""
    spread = f"({page.percent_text(effect.least)} to {page.percent_text(effect.most)})"
    return f"{page.percent_text(effect.mean)} {spread}{noise}"


def _times_table(studies: Sequence[Study]) -> page.Table:
    rows = []
    for row in TABLE_2:
        name = f"paper: {row.workload}, {DEVICE}"
        first = f"{row.first_match:,} ms", f"{row.first_print:,} ms"
        second = f"{row.second_match:,} ms", f"{row.second_print:,} ms"
        rows.append((name, "MUMmerGPU 1.0", *first, "1.00"))
        rows.append((name, "MUMmerGPU 2.0", *second, f"{row.speedup:.2f}"))
    for study in studies:
        rows += _own_times(study)
    caption = captioned(
        "Table 2 of the paper, and our times under the layouts of its two versions. Version 1.0 "
        f"used {FIRST_VERSION_CODE} and printed on the processor; version 2.0 used {DEFAULT_CODE}. "
        "Both kernels are ours here, so that only the layouts differ. Speedup: match and print "
        "together, against the first row of the same sweep.",
        studies,
    )
    return page.Table(
        caption, ("workload, device", "layout", "match", "print", "speedup"), tuple(rows)
    )


def _own_times(study: Study) -> list[tuple[str, str, str, str, str]]:
    """Return the rows of a study: the layouts of the paper, and its own fastest."""
    codes = [FIRST_VERSION_CODE, DEFAULT_CODE] if study.is_gpu else ["rtn", "n"]
    policies = [Policy.from_code(code) for code in codes] + list(study.ranking.policies[:1])
    rows = []
    base = None
    for policy in policies:
        match, printing = (study.timings.of(policy, stage) for stage in ("match", "print"))
        both = match + printing
        if both > 0:
            base = base or both
            layout = page.letters_text(policy) + (", the fastest" if policy is policies[-1] else "")
            times = page.time_text(match), page.time_text(printing)
            rows.append((study.title, layout, *times, f"{base / both:.2f}"))
    return rows


def _workloads_table(studies: Sequence[Study]) -> page.Table:
    rows = [
        (
            f"paper: {row.name}",
            f"{row.reference_bases:,}",
            str(row.min_match_length),
            row.reads,
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
    return page.Table(caption, columns, tuple(rows))


def bars_of(effect: PolicyEffect) -> tuple[Bar, ...]:
    """Return the pairs of an effect in the order of the paper's figures.

    They are in groups by textures, and in a group from few letters to many. The paper's figures
    leave out layouts with the two-dimensional reference (section 4.1), and so do ours.
    """
    bars = []
    for pair in sorted(effect.pairs, key=lambda one: policy_order(one.off)):
        letters = letters_of(pair.off)
        if "r" not in letters:
            textures = "".join(letter for letter in letters if letter in _TEXTURES)
            rest = "".join(letter for letter in letters if letter not in _TEXTURES)
            bars.append(Bar(textures, rest or "control", pair))
    return tuple(sorted(bars, key=lambda bar: _TEXTURE_SETS.index(bar.textures)))


_MIN_BARS: Final = 18
"""A panel has room for this many bars, so that few bars do not become broad."""

_WIDEST: Final = 3.0
"""The reach of a panel at most, in lengths of its longest bar."""

_PANEL_HEIGHT: Final = 1.65


def _paper_figure(figure: PaperFigure, studies: Sequence[Study]) -> page.Drawing | None:
    """Draw a figure of the paper from our data, a panel for each study with layouts to compare."""
    shown = [panel for panel in (_panel(figure, study) for study in studies) if panel]
    if not shown:
        return None
    registers = None
    if figure.number == 9:
        registers = next((panel for panel in shown if _has_registers(panel)), None)
    caption = captioned(_caption(figure, registers), [panel.study for panel in shown])
    alternative = (
        f"Bars: change of the time in percent when the policy {figure.letter} is switched on, "
        "for each layout"
    )
    name = f"paper-figure-{figure.number}"
    return page.drawn(name, caption, alternative, lambda: _draw(figure, shown, registers))


def _panel(figure: PaperFigure, study: Study) -> _Panel | None:
    effect = policy_effect(study.timings, figure.letter, figure.stage)
    bars = bars_of(effect) if effect else ()
    if not effect or not bars:
        return None
    places, place = [], 0.0
    for number, bar in enumerate(bars):
        # A gap of one bar is between groups.
        place += 1 + (number > 0 and bar.textures != bars[number - 1].textures)
        places.append(place)
    return _Panel(study, bars, places, effect.noise)


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
        f"{printed}{both} ({WORKLOAD} on a {DEVICE}; section {finding.place}: {finding.words}). A "
        "line that is missing lies far beyond our own values. The paper's own caption says: "
        f"'{figure.words}'. The grey band is the noise of our machine."
    )


def _draw(figure: PaperFigure, shown: Sequence[_Panel], registers: _Panel | None) -> Figure:
    labels = [[bar.label for bar in panel.bars] for panel in shown]
    share = all(one == labels[0] for one in labels)
    count = len(shown) + bool(registers)
    drawing = new_figure(0.75 + _PANEL_HEIGHT * count + (0 if share else 0.3 * count))
    axes = list(panels(drawing, count, share=share))
    if registers:
        _draw_registers(axes[0], registers)
        axes = axes[1:]
    entries: dict[str, Artist] = {}
    for panel, one in zip(shown, axes, strict=True):
        _draw_bars(one, panel, figure)
        entries |= dict(zip(*one.get_legend_handles_labels()[::-1], strict=True))
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
    bars = axes.bar(panel.places, percents, width=0.8, edgecolor=INK, linewidth=0.4)
    for bar, percent in zip(bars, percents, strict=True):
        bar.set_facecolor(BLUE if percent < 0 else ORANGE)
        bar.set_hatch("" if percent < 0 else "////")
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
    _label_bars(axes, panel)


def _draw_registers(axes: Axes, panel: _Panel) -> None:
    pairs = [bar.pair for bar in panel.bars]
    for policies, tree, marker, colour, face in (
        ([pair.off for pair in pairs], "split", "o", ORANGE, "none"),
        ([pair.on for pair in pairs], "merged", "s", BLUE, BLUE),
    ):
        registers = [registers_of_print(panel.study.facts, one) or float("nan") for one in policies]
        label = f"registers of a thread, {tree} tree"
        axes.plot(
            panel.places, registers, marker, ms=4, color=colour, markerfacecolor=face, label=label
        )
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.45 * (high - low) - 1, high + 0.5)
    axes.set_ylabel("registers")
    axes.legend(loc="lower right", ncols=2)
    axes.locator_params(axis="y", integer=True)
    _label_bars(axes, panel)


def _label_bars(axes: Axes, panel: _Panel) -> None:
    """Label the bars and the groups of a panel."""
    places = panel.places
    axes.set_title(shortened(panel.study.title), pad=14)
    axes.set_xticks(places, [bar.label for bar in panel.bars], rotation=90)
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(places[0] - 1, max(places[-1] + 1, _MIN_BARS))
    axes.grid(axis="y")
    groups: dict[str, list[float]] = {}
    for place, bar in zip(places, panel.bars, strict=True):
        groups.setdefault(bar.textures, []).append(place)
    for textures, of_group in groups.items():
        axes.text(
            sum(of_group) / len(of_group),
            1.02,
            textures or "none",
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=7,
        )
        if of_group[0] > places[0]:
            axes.axvline(of_group[0] - 1, color=INK, linewidth=0.4, alpha=0.4)
