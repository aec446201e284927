"""Figures of whole layouts: their ranking, their textures, their stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from mummergpu.drawing.colours import BLUE, FAINT, INK, ORANGE
from mummergpu.drawing.style import shortened
from mummergpu.studies.analysis.clusters import texture_clusters, texture_name
from mummergpu.studies.records import STAGES
from mummergpu.studies.report.blocks import Drawing
from mummergpu.studies.report.study import Study, captioned, compared, named_layouts
from mummergpu.studies.report.style import (
    MARKERS,
    SERIES,
    drawn,
    mark_outliers,
    new_figure,
    panels,
    usual_limit,
)
from mummergpu.studies.report.words import letters_text, percent_text, time_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_COLUMNS: Final = 2


def layouts_figure(studies: Sequence[Study]) -> Drawing | None:
    """Draw the time of every layout, from the fastest to the slowest."""
    shown = [study for study in studies if len(study.ranking.policies) > 1]
    if not shown:
        return None
    caption = captioned(
        "Every layout from the fastest to the slowest, by the median time of "
        f"{_compared(shown)}. Large marks are the layouts that the text speaks of.",
        shown,
    )
    return drawn(
        "layouts",
        caption,
        "Points: the time of each layout as a multiple of the fastest one's",
        lambda: in_panels(shown, 2.6, _draw_ranking),
    )


def clusters_figure(studies: Sequence[Study]) -> Drawing | None:
    """Draw the layouts in groups by their textures."""
    shown = [study for study in studies if len(texture_clusters(study.timings, study.stage)) > 1]
    if not shown:
        return None
    caption = captioned(
        "Layouts in groups by the textures in use (Q queries, R reference, T tree), as in section "
        f"4 of the paper, by the median time of {_compared(shown)} as a multiple of the fastest "
        "layout's. A line is the median of a group.",
        shown,
    )
    return drawn(
        "textures",
        caption,
        "Points: the time of each layout as a multiple of the fastest one's, by textures",
        lambda: in_panels(shown, 2.4, _draw_clusters),
    )


def stages_figure(studies: Sequence[Study]) -> Drawing | None:
    """Draw the stage times of the layouts of note."""
    shown = [study for study in studies if study.ranking.policies]
    if not shown:
        return None
    caption = captioned(
        "The median time of each stage under the layouts of note, on a logarithmic scale. 'build', "
        "'order' and 'flatten' make the trees and took place once for a layout; 'search' is "
        "the wall-clock time from queries to matches in memory. On a GPU 'match', 'print' and "
        "'ordering' are device times; on the processor they are summed over threads, so that they "
        "can add up to more than 'search'.",
        shown,
    )
    return drawn(
        "stages",
        caption,
        "Points: the seconds of each stage, for the layouts of note",
        lambda: in_panels(shown, 2.7, _draw_stages),
    )


def _compared(shown: Sequence[Study]) -> str:
    words = list(dict.fromkeys(compared(study) for study in shown))
    return " or of ".join(words)


def in_panels(
    shown: Sequence[Study],
    height: float,
    draw: Callable[[Axes, Study], None],
    max_columns: int = _MAX_COLUMNS,
) -> Figure:
    """Return a figure with a panel of a height in inches for each study."""
    columns = min(max_columns, len(shown))
    figure = new_figure(0.3 + height * -(-len(shown) // columns))
    for axes, study in zip(panels(figure, len(shown), columns, share=False), shown, strict=True):
        axes.set_title(shortened(study.title), fontsize=8 if columns == 1 else 7)
        draw(axes, study)
    return figure


def _draw_ranking(axes: Axes, study: Study) -> None:
    ranking = study.ranking
    ratios = ranking.ratios.tolist()
    limit = usual_limit(ratios)
    for on, marker, colour, label in (
        (False, "o", BLUE, "tree in global memory" if study.is_gpu else "layout"),
        (True, "s", ORANGE, "tree in a texture"),
    ):
        rows = [row for row, one in enumerate(ranking.policies) if one.tree_texture == on]
        rows = [row for row in rows if ratios[row] <= limit]
        if rows:
            axes.plot(
                [row + 1 for row in rows],
                [ratios[row] for row in rows],
                linestyle="none",
                marker=marker,
                markersize=3,
                color=colour,
                label=label,
            )
    for number, named in enumerate(named_layouts(study)):
        row = ranking.policies.index(named.policy)
        change = f", {percent_text(100 * (ranking.ratios[row] - 1))}" if row else ""
        axes.plot(
            row + 1,
            min(ratios[row], limit),
            linestyle="none",
            marker=MARKERS[number + 2],
            markersize=9,
            markerfacecolor="none",
            markeredgecolor=INK,
            label=f"{named.part}: {letters_text(named.policy)}, "
            f"{time_text(float(ranking.seconds[row]))}{change}",
        )
    axes.set_xlabel("rank")
    axes.set_ylabel("time / fastest")
    axes.margins(y=0.1)
    axes.set_ylim(top=1 + (limit - 1) * 2 + 0.01)
    mark_outliers(axes, range(1, len(ratios) + 1), ratios, limit)
    axes.legend(loc="upper left", fontsize=6.5, labelspacing=0.6)


def _draw_clusters(axes: Axes, study: Study) -> None:
    clusters = texture_clusters(study.timings, study.stage)
    limit = usual_limit([ratio for cluster in clusters for ratio in cluster.ratios])
    for merged, marker, colour, shift, label in (
        (False, "o", ORANGE, 0.15, "split tree"),
        (True, "s", BLUE, -0.15, "merged tree"),
    ):
        points = [
            (place + shift, ratio)
            for place, cluster in enumerate(clusters)
            for policy, ratio in zip(cluster.policies, cluster.ratios, strict=True)
            if policy.merged_tree == merged
        ]
        places_of, values = [place for place, _ in points], [ratio for _, ratio in points]
        mark_outliers(axes, places_of, values, limit)
        axes.plot(
            [place for place, ratio in points if ratio <= limit],
            [ratio for _, ratio in points if ratio <= limit],
            linestyle="none",
            marker=marker,
            markersize=3.5,
            markerfacecolor=colour if merged else "none",
            markeredgecolor=colour,
            label=label,
        )
    medians = [cluster.median for cluster in clusters]
    places = range(len(clusters))
    axes.hlines(
        medians, [place - 0.35 for place in places], [place + 0.35 for place in places], color=INK
    )
    axes.set_xticks(list(places), [texture_name(cluster.textures) for cluster in clusters])
    axes.set_xlabel("textures in use")
    axes.set_ylabel("time / fastest")
    axes.margins(y=0.2)
    axes.legend(loc="upper right", ncols=2)
    axes.grid(axis="y")


def _draw_stages(axes: Axes, study: Study) -> None:
    stages = [stage for stage in STAGES if stage in study.timings.stages]
    layouts = list({one.policy: one for one in reversed(named_layouts(study))}.values())[::-1]
    for number, named in enumerate(layouts):
        times = [study.timings.of(named.policy, stage) for stage in stages]
        # A stage that took no time at all has no place on a logarithmic scale.
        axes.plot(
            [time if time > 0 else float("nan") for time in times],
            [row + 0.12 * (number - (len(layouts) - 1) / 2) for row in range(len(stages))],
            linestyle="none",
            marker=MARKERS[number],
            markersize=4.5,
            markerfacecolor="none" if number % 2 else SERIES[number],
            markeredgecolor=SERIES[number],
            label=f"{named.part}: {letters_text(named.policy)}",
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: _power_text(value))
    axes.xaxis.set_minor_formatter(lambda _value, _: "")
    axes.set_xlabel("time (logarithmic)")
    axes.set_yticks(range(len(stages)), stages)
    axes.set_ylim(len(stages) - 0.4, -0.6)
    for row in range(1, len(stages)):
        axes.axhline(row - 0.5, color=FAINT, linewidth=0.4)
    axes.grid(axis="x")
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.2), ncols=2, fontsize=6.5)


def _power_text(seconds: float) -> str:
    """Return a power of ten of a second with its unit."""
    factor, unit = next(
        (one for one in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")) if seconds > 0.9 * one[0]),
        (1e-9, "ns"),
    )
    return f"{seconds / factor:.0f} {unit}"
