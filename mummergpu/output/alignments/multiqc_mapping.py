"""Files for MultiQC about mapped reads: columns, and plots of insert sizes and qualities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from mummergpu.mapping.alignments.summary import MAX_INSERT, MappingSummary
from mummergpu.output.multiqc import (
    MOST_POINTS,
    PARENT,
    PLOT_SUFFIX,
    SUFFIX,
    bar_plot_file,
    line_plot_file,
    statistics_file,
)
from mummergpu.runtime.stats import Stats

BEST_QUALITY: Final = 60
"""The largest mapping quality that a read gets."""

QUALITY_BOUNDS: Final = (0, 1, 10, 20, 30, 40, BEST_QUALITY)
"""The least quality of each part of a bar."""

_SECTION: Final = PARENT | {
    "parent_id": "mummergpu_map",
    "parent_name": "mummergpu map",
    "parent_description": "maps reads to a reference.",
}


_SHARE: Final = {"min": 0, "max": 100, "suffix": "%", "format": "{:,.2f}"}

_COLUMNS: Final[dict[str, dict[str, Any]]] = {
    "reads": {
        "title": "Reads",
        "description": "Reads, mapped or not",
        "scale": "Blues",
        "min": 0,
        "format": "{:,.0f}",
    },
    "mapped_percent": {
        "title": "% Mapped",
        "description": "Share of the reads that are mapped",
        "scale": "RdYlGn",
        **_SHARE,
    },
    "proper_percent": {
        "title": "% Proper pairs",
        "description": "Share of the paired reads in proper pairs",
        "scale": "RdYlGn",
        **_SHARE,
    },
    "sure_percent": {
        "title": "% MAPQ >= 20",
        "description": "Share of the reads with a mapping quality of at least 20",
        "scale": "YlGn",
        **_SHARE,
    },
    "median_insert_size": {
        "title": "Insert size",
        "description": "Median insert size of proper pairs",
        "scale": "GnBu",
        "min": 0,
        "suffix": " bp",
        "format": "{:,.0f}",
    },
}

_SURE: Final = 20
"""The least mapping quality of a read whose place is hardly ever wrong."""


def files(path: str) -> dict[str, Callable[[str, Stats], bytes]]:
    """Return the files that MultiQC shows, each with the function that makes it."""
    stem = path.removesuffix(SUFFIX)
    return {
        path: general_statistics,
        f"{stem}_insert_sizes{PLOT_SUFFIX}": insert_size_plot,
        f"{stem}_mapping_qualities{PLOT_SUFFIX}": quality_plot,
    }


def general_statistics(sample: str, stats: Stats) -> bytes:
    """Return the columns of a run for the general statistics of MultiQC."""
    found = _summary_of(stats)
    values: dict[str, float] = {"reads": found.reads}
    if found.reads:
        values["mapped_percent"] = 100 * found.mapped / found.reads
        values["sure_percent"] = 100 * int(found.qualities[_SURE:].sum()) / found.reads
    if found.paired:
        values["proper_percent"] = 100 * found.proper / found.paired
    if (median := found.insert_quantile(0.5)) is not None:
        values["median_insert_size"] = median
    return statistics_file(sample, _COLUMNS, values)


def insert_size_plot(sample: str, stats: Stats) -> bytes:
    """Return a plot of the insert sizes of a run's proper pairs for MultiQC."""
    counts = _summary_of(stats).inserts[:MAX_INSERT]
    sizes = np.flatnonzero(counts)
    points: list[tuple[float, float]] = [(0, 0)]
    if sizes.size:
        # Sizes without a pair are drawn, too, beside those with one.
        first, last = max(0, int(sizes[0]) - 1), min(MAX_INSERT - 1, int(sizes[-1]) + 1)
        width = -(-(last + 1 - first) // MOST_POINTS)
        points = [
            (begin + (width - 1) / 2, float(counts[begin : begin + width].mean()))
            for begin in range(first, last + 1, width)
        ]
    return line_plot_file(
        {
            "id": "mummergpu_insert_sizes",
            **_SECTION,
            "section_name": "Insert sizes",
            "description": "How many proper pairs have each insert size: from the outer end of "
            "one mate to that of the other.",
        },
        {
            "id": "mummergpu_insert_sizes_plot",
            "title": "mummergpu map: insert sizes",
            "xlab": "Insert size (bases)",
            "ylab": "Pairs",
            "tt_label": "<b>{point.x} bp</b>: {point.y:,.0f} pairs",
        },
        sample,
        points,
    )


def quality_plot(sample: str, stats: Stats) -> bytes:
    """Return a bar of the mapping qualities of a run's reads for MultiQC."""
    found = _summary_of(stats)
    counts = found.qualities[: BEST_QUALITY + 1]
    bounds = zip(QUALITY_BOUNDS, (*QUALITY_BOUNDS[1:], BEST_QUALITY + 1), strict=True)
    parts = {name_of_range(first, end - 1): int(counts[first:end].sum()) for first, end in bounds}
    # From the best on, as the bar is read; what is not mapped is its end.
    shares = {**dict(reversed(parts.items())), "not mapped": found.reads - found.mapped}
    return bar_plot_file(
        {
            "id": "mummergpu_mapping_qualities",
            **_SECTION,
            "section_name": "Mapping qualities",
            "description": "How many reads have which mapping quality: 20 stands for one wrong "
            "place in a hundred, 0 for places that are no better than others.",
        },
        {
            "id": "mummergpu_mapping_qualities_plot",
            "title": "mummergpu map: mapping qualities",
            "ylab": "Reads",
        },
        sample,
        shares,
    )


def name_of_range(first: int, last: int) -> str:
    """Return what the part of a bar with these qualities is called."""
    return f"MAPQ {first}" if first == last else f"MAPQ {first} to {last}"


def _summary_of(stats: Stats) -> MappingSummary:
    assert isinstance(stats.mapping, MappingSummary)
    return stats.mapping
