"""The figure of one ordinary run: where its time went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mummergpu.drawing.colours import BLUE, INK, ORANGE
from mummergpu.studies.analysis.run_stats import WHOLE_RUN, RunStats
from mummergpu.studies.report.blocks import Drawing
from mummergpu.studies.report.style import drawn, new_figure
from mummergpu.studies.report.words import time_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run_figure(stats: RunStats, name: str, caption: str) -> Drawing | None:
    """Draw the seconds of each stage of a run."""
    if not stats.stages:
        return None
    alternative = "Bars: the seconds of each stage of the run"
    return drawn(name, caption, alternative, lambda: _draw(stats))


def _draw(stats: RunStats) -> Figure:
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
