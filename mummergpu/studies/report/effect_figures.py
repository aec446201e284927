"""Figures of what policies do: effects, interactions, and the model of both."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from mummergpu.drawing.colours import BLUE, FAINT, INK, ORANGE
from mummergpu.index.tree.policy import LETTERS
from mummergpu.studies.analysis.effects import flag_name, policy_effects
from mummergpu.studies.analysis.interactions import interactions
from mummergpu.studies.analysis.linear_model import LinearModel, linear_model
from mummergpu.studies.analysis.paper import STAGES_OF_PAPER
from mummergpu.studies.report.blocks import Drawing
from mummergpu.studies.report.layout_figures import in_panels
from mummergpu.studies.report.study import Study, captioned
from mummergpu.studies.report.style import MARKERS, SERIES, drawn
from mummergpu.studies.report.words import letters_text, stage_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ALL_LETTERS: Final = tuple(LETTERS.values())
_WORST: Final = 3


def effects_figure(studies: Sequence[Study]) -> Drawing | None:
    """Draw the effect of each policy on the stages of note."""
    shown = [
        study
        for study in studies
        if any(policy_effects(study.timings, stage) for stage in STAGES_OF_PAPER)
    ]
    if not shown:
        return None
    caption = captioned(
        "What each policy does to the time of a stage when it is switched on and all others stay "
        "as they are. A mark is the mean over all pairs of layouts, a thin line its 95% confidence "
        "interval (Student's t), a thick line the middle half of the pairs. The grey band is the "
        "noise: the coefficient of variation of the control's runs in the stage by which layouts "
        "are compared.",
        shown,
    )
    return drawn(
        "effects",
        caption,
        "Points with intervals: change of the time in percent for each policy and stage",
        lambda: in_panels(shown, 3.0, _draw_effects, max_columns=1),
    )


def interactions_figure(studies: Sequence[Study]) -> Drawing | None:
    """Draw a heat map of the interactions of every two policies."""
    shown = [study for study in studies if interactions(study.timings, study.stage)]
    if not shown:
        return None
    caption = captioned(
        "How the effect of one policy changes with another, in percent of the time: what both do "
        "beyond the product of their effects (geometric mean over all settings of the other "
        "five). Positive: together they are slower than their single effects foretell. Numbers in "
        "brackets are within the noise of four runs.",
        shown,
    )
    return drawn(
        "interactions",
        caption,
        "Heat map: the interaction of every two policies in percent",
        lambda: in_panels(shown, 3.0, _draw_interactions),
    )


def model_figure(studies: Sequence[Study]) -> Drawing | None:
    """Draw measured times against those of the linear models."""
    shown = [study for study in studies if linear_model(study.timings, study.stage, False)]
    if not shown:
        return None
    caption = captioned(
        "Measured times of all layouts against those of two linear models of the logarithm of the "
        "time: one with the seven policies alone, one with every two of them besides. Points on "
        "the line are explained; the codes stand at the layouts that the larger model explains "
        "worst.",
        shown,
    )
    return drawn(
        "model",
        caption,
        "Points: measured times against modelled times of all layouts",
        lambda: in_panels(shown, 3.0, _draw_model),
    )


def _draw_effects(axes: Axes, study: Study) -> None:
    stages = [stage for stage in STAGES_OF_PAPER if policy_effects(study.timings, stage)]
    letters = [
        letter
        for letter in _ALL_LETTERS
        if any(one.letter == letter for one in policy_effects(study.timings, stages[0]))
    ]
    if study.noise_percent:
        axes.axvspan(-study.noise_percent, study.noise_percent, color=FAINT, alpha=0.3, lw=0)
    edges: list[float] = []
    for number, stage in enumerate(stages):
        shift = 0.19 * (number - (len(stages) - 1) / 2)
        for effect in policy_effects(study.timings, stage):
            row, colour = letters.index(effect.letter) + shift, SERIES[number]
            axes.hlines(
                row, effect.lower_quartile, effect.upper_quartile, colors=colour, lw=4, alpha=0.45
            )
            edges += [abs(effect.lower_quartile), abs(effect.upper_quartile), abs(effect.mean)]
            if effect.low is not None and effect.high is not None:
                axes.hlines(row, effect.low, effect.high, colors=INK, linewidth=0.9)
            first = letters[0] == effect.letter
            axes.plot(
                effect.mean,
                row,
                linestyle="none",
                marker=MARKERS[number],
                markersize=4.5,
                color=colour,
                markeredgecolor=INK,
                markeredgewidth=0.5,
                label=stage_words(stage) if first else None,
            )
    axes.axvline(0, color=INK, linewidth=0.7)
    axes.set_yticks(range(len(letters)), [f"{flag_name(one)} ({one})" for one in letters])
    axes.set_ylim(len(letters) - 0.4, -0.6)
    # The interval of an effect that is not known well may leave the figure; the effects do not.
    reach, (low, high) = 1.1 * max(edges, default=inf), axes.get_xlim()
    axes.set_xlim(max(low, -reach), min(high, reach))
    axes.set_xlabel("change of the time (%)")
    axes.grid(axis="x")
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), ncols=len(stages))


def _draw_interactions(axes: Axes, study: Study) -> None:
    found = interactions(study.timings, study.stage)
    letters = [one for one in _ALL_LETTERS if any(one in (i.first, i.second) for i in found)]
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
        strong = abs(one.percent) > 0.6 * limit
        text = f"({one.percent:+.1f})" if one.is_within_noise else f"{one.percent:+.1f}"
        axes.text(
            letters.index(one.first) + 0.5,
            letters.index(one.second) - 0.5,
            text,
            ha="center",
            va="center",
            fontsize=6.5,
            color="#ffffff" if strong else "#000000",
        )
    places = [place + 0.5 for place in range(len(letters) - 1)]
    axes.set_xticks(places, letters[:-1])
    axes.set_yticks(places, letters[1:])
    axes.invert_yaxis()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(f"interaction in the time, {stage_words(study.stage)} (%)")


def _draw_model(axes: Axes, study: Study) -> None:
    alone = linear_model(study.timings, study.stage, False)
    both = linear_model(study.timings, study.stage, True)
    models: list[tuple[LinearModel, str]] = [(alone, "policies alone")] if alone else []
    models += [(both, "with interactions")] if both else []
    for number, (model, label) in enumerate(models):
        axes.plot(
            [1000 * fit.modelled for fit in model.fits],
            [1000 * fit.measured for fit in model.fits],
            linestyle="none",
            marker=MARKERS[number],
            markersize=3.5,
            markerfacecolor="none" if number == 0 else BLUE,
            markeredgecolor=ORANGE if number == 0 else BLUE,
            label=f"{label}: R² {model.r_squared:.3f}",
        )
    worst = models[-1][0].fits[:_WORST]
    for fit in worst:
        axes.annotate(
            letters_text(fit.policy),
            (1000 * fit.modelled, 1000 * fit.measured),
            xytext=(5, -7),
            textcoords="offset points",
            fontsize=6.5,
        )
    every = [1000 * fit.measured for fit in models[0][0].fits]
    axes.plot([min(every), max(every)], [min(every), max(every)], color=INK, linewidth=0.7)
    axes.set_xlabel("modelled (ms)")
    axes.set_ylabel("measured (ms)")
    axes.legend(loc="upper left")
    axes.grid()
