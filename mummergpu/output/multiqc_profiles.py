"""Files for MultiQC about searches with profiles: columns, and a plot of E-values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mummergpu.hmm.hit_lists import HitCounts
from mummergpu.output.multiqc import (
    PARENT,
    PLOT_SUFFIX,
    SUFFIX,
    line_plot_file,
    statistics_file,
)
from mummergpu.runtime.stats import Stats

_COUNT: Final = {"min": 0, "format": "{:,.0f}"}

_COLUMNS: Final[dict[str, dict[str, Any]]] = {
    "profiles": {"title": "Profiles", "description": "Profile HMMs", "scale": "Blues", **_COUNT},
    "sequences": {
        "title": "Sequences",
        "description": "Proteins, or open reading frames",
        "scale": "Blues",
        **_COUNT,
    },
    "profile_hits": {
        "title": "Hits",
        "description": "Pairs of a profile and a sequence that are reported",
        "scale": "Purples",
        **_COUNT,
    },
    "included_hits": {
        "title": "Significant",
        "description": "Hits that are significant: at the thresholds of inclusion",
        "scale": "Greens",
        **_COUNT,
    },
    "queries_with_hit_percent": {
        "title": "% With hit",
        "description": "Share of the profiles with a hit; of hmmscan, of the sequences",
        "scale": "YlGn",
        "min": 0,
        "max": 100,
        "suffix": "%",
        "format": "{:,.1f}",
    },
}


def files(path: str) -> dict[str, Callable[[str, Stats], bytes]]:
    """Return the files that MultiQC shows, each with the function that makes it."""
    return {
        path: general_statistics,
        f"{path.removesuffix(SUFFIX)}_e_values{PLOT_SUFFIX}": e_value_plot,
    }


def general_statistics(sample: str, stats: Stats) -> bytes:
    """Return the columns of a run for the general statistics of MultiQC."""
    found = _counts_of(stats)
    values: dict[str, float] = {
        "profiles": stats.counts.get("profiles", 0),
        "sequences": stats.counts.get("sequences", 0),
        "profile_hits": found.hits,
        "included_hits": found.included_hits,
    }
    if found.queries:
        values["queries_with_hit_percent"] = 100 * found.queries_with_hit / found.queries
    return statistics_file(sample, _COLUMNS, values)


def e_value_plot(sample: str, stats: Stats) -> bytes:
    """Return a plot of the E-values of a run's hits for MultiQC."""
    found = _counts_of(stats).exponents
    # Exponents without a hit are drawn, too, between those with one.
    places = range(min(found), max(found) + 1) if found else range(1)
    return line_plot_file(
        {
            "id": "mummergpu_e_values",
            **PARENT,
            "parent_id": "mummergpu_profiles",
            "parent_name": "mummergpu hmmsearch and hmmscan",
            "parent_description": "search profile HMMs among proteins.",
            "section_name": "E-values",
            "description": "How many hits have E-values of each power of ten.",
        },
        {
            "id": "mummergpu_e_values_plot",
            "title": "mummergpu hmmsearch and hmmscan: E-values of hits",
            "xlab": "-log10 of the E-value, rounded up",
            "ylab": "Hits",
            "logswitch": True,
            "tt_label": "<b>1e-{point.x}</b>: {point.y:,.0f} hits",
        },
        sample,
        [(float(place), float(found[place])) for place in places],
    )


def _counts_of(stats: Stats) -> HitCounts:
    assert isinstance(stats.profiles, HitCounts)
    return stats.profiles
