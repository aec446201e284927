"""Files for MultiQC: columns of its general statistics, and a plot of the lengths of matches.

MultiQC takes one table or plot from a file, so there are two. It puts the files of many runs into
the same table and the same plot, where each run is a sample.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mummergpu.matching.match_counts import LengthCount, MatchCounts, with_gaps
from mummergpu.runtime.stats import Stats

SUFFIX: Final = "_mqc.json"
"""How the names of files end that MultiQC takes for this."""

PLOT_SUFFIX: Final = "_mqc.yaml"
"""How the name of the file of a plot ends. Only YAML can have numbers as keys: MultiQC sorts keys
that are text as text, and not all of its versions take pairs of numbers."""

EXACT_BELOW: Final = 512
"""Shorter lengths are drawn one by one, so that the peak at the length of reads is seen."""

RANGES_OF_OCTAVE: Final = 16
"""The number of ranges from one power of two to the next above that; a divisor of those counted."""

MOST_POINTS: Final = 4000
"""MultiQC leaves out points of a line that has more."""

PARENT: Final = {
    "parent_id": "mummergpu",
    "parent_name": "mummergpu",
    "parent_description": "finds every maximal exact match of queries in a reference.",
}
"""The part of the page that has the plots of this program."""

_COLUMNS: Final[dict[str, dict[str, Any]]] = {
    "queries": {
        "title": "Queries",
        "description": "Queries that were searched",
        "scale": "Blues",
        "format": "{:,.0f}",
    },
    "queries_with_match": {
        "title": "With match",
        "description": "Queries with a match on any strand",
        "scale": "Greens",
        "format": "{:,.0f}",
    },
    "queries_with_match_percent": {
        "title": "% With match",
        "description": "Share of the queries with a match on any strand",
        "scale": "RdYlGn",
        "suffix": "%",
        "max": 100,
        "format": "{:,.1f}",
    },
    "matches": {
        "title": "Matches",
        "description": "Maximal exact matches",
        "scale": "Purples",
        "format": "{:,.0f}",
    },
    "bases_covered": {
        "title": "Covered",
        "description": "Bases of the reference in a match on any strand",
        "scale": "Oranges",
        "suffix": " bp",
        "format": "{:,.0f}",
    },
    "bases_covered_percent": {
        "title": "% Covered",
        "description": "Share of the bases of the reference in a match on any strand",
        "scale": "YlGnBu",
        "suffix": "%",
        "max": 100,
        "format": "{:,.1f}",
    },
}


def sample_of(path: str) -> str:
    """Return the name of the sample in MultiQC."""
    return os.path.basename(path).removesuffix(SUFFIX)


def lengths_path(path: str) -> str:
    """Return the name of the file of the plot."""
    return f"{path.removesuffix(SUFFIX)}_lengths{PLOT_SUFFIX}"


def general_statistics(sample: str, stats: Stats) -> bytes:
    """Return the columns of a run for the general statistics of MultiQC."""
    counts = stats.counts
    values: dict[str, float] = {name: counts[name] for name in _COLUMNS if name in counts}
    for part, whole in (("queries_with_match", "queries"), ("bases_covered", "reference_bases")):
        if counts.get(whole):
            values[f"{part}_percent"] = 100 * counts[part] / counts[whole]
    headers = {name: {"min": 0, **column} for name, column in _COLUMNS.items()}
    return statistics_file(sample, headers, values)


def statistics_file(
    sample: str, headers: Mapping[str, Mapping[str, Any]], values: Mapping[str, float]
) -> bytes:
    """Return columns of the general statistics of MultiQC."""
    content = {
        "id": "mummergpu_general_statistics",
        "plot_type": "generalstats",
        "namespace": "mummergpu",
        "headers": headers,
        "data": {sample: values},
    }
    return json.dumps(content).encode() + b"\n"


def length_plot(sample: str, stats: Stats) -> bytes:
    """Return a plot of the lengths of a run's matches for MultiQC."""
    assert isinstance(stats.match_counts, MatchCounts)
    points: list[tuple[float, float]] = []
    for some in with_gaps(in_plot_ranges(stats.match_counts.lengths)):
        height = some.matches / (some.last + 1 - some.first)
        # A range that has matches is a point, and a range that has none is a line.
        places = {(some.first + some.last) / 2} if some.matches else {some.first, some.last}
        points += [(place, height) for place in sorted(places)]
    if not points:
        points = [(stats.settings["minimum_length"], 0.0)]
    return line_plot_file(
        {
            "id": "mummergpu_match_lengths",
            **PARENT,
            "section_name": "Lengths of matches",
            "description": "How many maximal exact matches have each length. From "
            f"{EXACT_BELOW} bases on, this is the mean of a range of lengths.",
        },
        {
            "id": "mummergpu_match_lengths_plot",
            "title": "mummergpu: lengths of matches",
            "xlab": "Length of a match (bases)",
            "ylab": "Matches of one length",
            "xlog": True,
            "logswitch": True,
            "logswitch_active": True,
            "tt_label": "<b>{point.x} bp</b>: {point.y:,.2f} matches",
        },
        sample,
        points,
    )


def line_plot_file(
    section: Mapping[str, Any],
    plot: Mapping[str, Any],
    sample: str,
    points: Sequence[tuple[float, float]],
) -> bytes:
    """Return a plot with a line for a run, for MultiQC."""
    head = json.dumps(
        {
            **section,
            "plot_type": "linegraph",
            "pconfig": {**plot, "smooth_points": MOST_POINTS},
        }
    )
    values = ", ".join(f"{_number(x)}: {_number(y)}" for x, y in points)
    return f'{head[:-1]}, "data": {{{json.dumps(sample)}: {{{values}}}}}}}\n'.encode()


def bar_plot_file(
    section: Mapping[str, Any], plot: Mapping[str, Any], sample: str, parts: Mapping[str, int]
) -> bytes:
    """Return a plot with a bar for a run, for MultiQC; its parts are in the order of `parts`."""
    content = {**section, "plot_type": "bargraph", "pconfig": plot, "data": {sample: parts}}
    return json.dumps(content).encode() + b"\n"


def _number(value: float) -> str:
    """Return a number as YAML has it, which takes 1e-05 for text."""
    return f"{value:.12f}".rstrip("0").rstrip(".")


def in_plot_ranges(lengths: Sequence[LengthCount]) -> list[LengthCount]:
    """Return numbers of matches in wider ranges, so that the few long matches make a calm line."""
    counts: Counter[tuple[int, int]] = Counter()
    for some in lengths:
        width = 1
        if some.first >= EXACT_BELOW:
            width = (1 << some.first.bit_length() - 1) // RANGES_OF_OCTAVE
        first = some.first // width * width
        counts[first, first + width - 1] += some.matches
    return [LengthCount(first, last, matches) for (first, last), matches in counts.items()]
