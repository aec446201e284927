"""Figures of layouts, of the effects of policies, and of their interactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from mummergpu.drawing.colours import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION
from mummergpu.drawing.style import shortened
from mummergpu.index.tree.policy import LETTERS
from mummergpu.studies.report.effects import flag_name, interactions, policy_effects
from mummergpu.studies.report.page import letters_text, percent_text, stage_words, time_text
from mummergpu.studies.report.paper import STAGES_OF_PAPER
from mummergpu.studies.report.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SERIES: Final = (BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, FAINT, INK)
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Series differ in their marker as well, for print in grey."""

_INCHES: Final = 7.6


def new_figure(height: float) -> Figure:
    """Return an empty figure of a height in inches, and of the width that all figures have."""
    from matplotlib.figure import Figure

    return Figure(figsize=(_INCHES, height), layout="constrained")


def panels(figure: Figure, count: int, columns: int = 1, share: bool = False) -> Sequence[Axes]:
    """Return `count` axes, row by row; those of a column share the horizontal axis if asked."""
    grid = figure.subplots(-(-count // columns), columns, squeeze=False, sharex=share)
    flat: list[Axes] = list(grid.flat)
    for unused in flat[count:]:
        unused.set_axis_off()
    return flat[:count]


def study_panels(
    studies: Sequence[Study], height: float, draw: Callable[[Axes, Study], None], columns: int = 2
) -> Figure:
    """Return a figure with a panel of a height in inches for each study."""
    columns = min(columns, len(studies))
    figure = new_figure(0.3 + height * -(-len(studies) // columns))
    for axes, study in zip(panels(figure, len(studies), columns), studies, strict=True):
        axes.set_title(shortened(study.title), fontsize=8 if columns == 1 else 7)
        draw(axes, study)
    return figure


def draw_ranking(axes: Axes, study: Study) -> None:
    """Draw the time of every layout, from the fastest to the slowest."""
    from matplotlib.ticker import LogLocator

    ranking = study.ranking
    ratios = ranking.ratios.tolist()
    for is_on, marker, colour, label in (
        (False, "o", BLUE, "tree in global memory" if study.is_gpu else "layout"),
        (True, "s", ORANGE, "tree in a texture"),
    ):
        rows = [row for row, one in enumerate(ranking.policies) if one.tree_texture == is_on]
        if rows:
            places, heights = [row + 1 for row in rows], [ratios[row] for row in rows]
            axes.plot(places, heights, marker, markersize=3, color=colour, label=label)
    for number, (part, policy) in enumerate(study.named_layouts()):
        row = ranking.policies.index(policy)
        change = f", {percent_text(100 * (ratios[row] - 1))}" if row else ""
        time = time_text(float(ranking.seconds[row]))
        axes.plot(
            row + 1,
            ratios[row],
            MARKERS[number + 2],
            markersize=9,
            markerfacecolor="none",
            markeredgecolor=INK,
            label=f"{part}: {letters_text(policy)}, {time}{change}",
        )
    axes.set_xlabel("rank")
    # A few layouts may be many times as slow as the others.
    axes.set_yscale("log")
    axes.set_ylim(0.97, max(ratios) ** 2.5 + 0.05)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.2, 1.5, 2, 3, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda _value, _: "")
    axes.set_ylabel("time / fastest")
    axes.legend(loc="upper left", fontsize=6.5, labelspacing=0.6)


def draw_effects(axes: Axes, study: Study) -> None:
    """Draw the effect of each policy on the stages of note."""
    stages = [stage for stage in STAGES_OF_PAPER if policy_effects(study.timings, stage)]
    letters = [effect.letter for effect in policy_effects(study.timings, stages[0])]
    if study.noise_percent:
        axes.axvspan(-study.noise_percent, study.noise_percent, color=FAINT, alpha=0.3, lw=0)
    edges: list[float] = []
    for number, stage in enumerate(stages):
        shift = 0.19 * (number - (len(stages) - 1) / 2)
        for effect in policy_effects(study.timings, stage):
            row, colour = letters.index(effect.letter) + shift, SERIES[number]
            quartiles = effect.lower_quartile, effect.upper_quartile
            axes.hlines(row, *quartiles, colors=colour, lw=4, alpha=0.45)
            edges += [*map(abs, quartiles), abs(effect.mean)]
            if effect.low is not None and effect.high is not None:
                axes.hlines(row, effect.low, effect.high, colors=INK, linewidth=0.9)
            axes.plot(
                effect.mean,
                row,
                MARKERS[number],
                markersize=4.5,
                color=colour,
                markeredgecolor=INK,
                markeredgewidth=0.5,
                label=stage_words(stage) if letters[0] == effect.letter else None,
            )
    axes.axvline(0, color=INK, linewidth=0.7)
    axes.set_yticks(range(len(letters)), [f"{flag_name(one)} ({one})" for one in letters])
    axes.set_ylim(len(letters) - 0.4, -0.6)
    # The interval of an uncertain effect may leave the figure; the effects do not.
    reach, (low, high) = 1.1 * max(edges, default=inf), axes.get_xlim()
    axes.set_xlim(max(low, -reach), min(high, reach))
    axes.set_xlabel("change of the time (%)")
    axes.grid(axis="x")
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), ncols=len(stages))


def draw_interactions(axes: Axes, study: Study) -> None:
    """Draw a heat map of the interactions of every two policies."""
    found = interactions(study.timings, study.stage)
    letters = [one for one in LETTERS.values() if any(one in (i.first, i.second) for i in found)]
    table = np.full((len(letters), len(letters)), np.nan)
    for one in found:
        table[letters.index(one.second), letters.index(one.first)] = one.percent
    noise = max((one.noise or 0.0 for one in found), default=0.0)
    limit = max(1.0, 2 * noise, float(np.nanmax(np.abs(table))))
    axes.pcolormesh(
        np.ma.masked_invalid(table[1:, :-1]),
        cmap="PuOr_r",
        vmin=-limit,
        vmax=limit,
        edgecolors="white",
        linewidth=1,
    )
    for one in found:
        axes.text(
            letters.index(one.first) + 0.5,
            letters.index(one.second) - 0.5,
            f"({one.percent:+.1f})" if one.is_within_noise else f"{one.percent:+.1f}",
            ha="center",
            va="center",
            fontsize=6.5,
            color="#ffffff" if abs(one.percent) > 0.6 * limit else "#000000",
        )
    places = [place + 0.5 for place in range(len(letters) - 1)]
    axes.set_xticks(places, letters[:-1])
    axes.set_yticks(places, letters[1:])
    axes.invert_yaxis()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(f"interaction in the time, {stage_words(study.stage)} (%)")
