"""The columns of a run in the general statistics of MultiQC, which puts many runs side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final

from mummergpu.runtime.stats import Stats

SUFFIX: Final = "_mqc.json"
"""The end of the names of files that MultiQC takes for this."""

_FORMATS: Final[dict[str, dict[str, Any]]] = {
    "count": {"min": 0, "format": "{:,.0f}"},
    "bases": {"min": 0, "format": "{:,.0f}", "suffix": " bp"},
    "share": {"min": 0, "max": 100, "suffix": "%", "format": "{:,.2f}"},
}

_COLUMNS: Final = """\
queries|Queries|Queries that were searched|Blues|count
queries_with_match|With match|Queries with a match on any strand|Greens|count
queries_with_match_percent|% With match|Share of the queries with a match on any strand|RdYlGn|share
matches|Matches|Maximal exact matches|Purples|count
bases_covered|Covered|Bases of the reference in a match on any strand|Oranges|bases
bases_covered_percent|% Covered|Share of the reference in a match on any strand|YlGnBu|share
reads|Reads|Reads, mapped or not|Blues|count
mapped_percent|% Mapped|Share of the reads that are mapped|RdYlGn|share
proper_percent|% Proper pairs|Share of the paired reads in proper pairs|RdYlGn|share
sure_percent|% MAPQ >= 20|Share of the reads with a mapping quality >= 20|YlGn|share
median_insert_size|Insert size|Median insert size of proper pairs|GnBu|bases
profiles|Profiles|Profile HMMs|Blues|count
sequences|Sequences|Proteins, or open reading frames|Blues|count
profile_hits|Hits|Reported pairs of a profile and a sequence|Purples|count
included_hits|Significant|Hits at the thresholds of inclusion|Greens|count
queries_with_hit_percent|% With hit|\
Share of the queries (profiles of hmmsearch) with a hit|YlGn|share
""".splitlines()
"""Name, title, description, colours and format of each column."""


def sample_of(path: str) -> str:
    """Return the name of the sample in MultiQC."""
    return os.path.basename(path).removesuffix(SUFFIX)


def general_statistics(sample: str, stats: Stats) -> bytes:
    """Return the file of a run."""
    if stats.mapping is not None:
        values = _of_mapping(stats.mapping.as_dict())
    elif stats.profiles is not None:
        values = _of_profiles(stats.profiles.as_dict(), stats.counts)
    else:
        values = _of_matches(stats.counts)
    # MultiQC takes the headers of one file for all, and leaves out columns without values.
    headers = {
        name: {"title": title, "description": text, "scale": scale, **_FORMATS[form]}
        for name, title, text, scale, form in (line.split("|") for line in _COLUMNS)
    }
    content = {
        "id": "mummergpu_general_statistics",
        "plot_type": "generalstats",
        "namespace": "mummergpu",
        "headers": headers,
        "data": {sample: values},
    }
    return json.dumps(content).encode() + b"\n"


def _of_matches(counts: Mapping[str, int]) -> dict[str, float]:
    names = ("queries", "queries_with_match", "matches", "bases_covered")
    values: dict[str, float] = {name: counts[name] for name in names if name in counts}
    for part, whole in (("queries_with_match", "queries"), ("bases_covered", "reference_bases")):
        if counts.get(whole):
            values[f"{part}_percent"] = 100 * counts[part] / counts[whole]
    return values


def _of_mapping(found: Mapping[str, Any]) -> dict[str, float]:
    values: dict[str, float] = {"reads": found["reads"]}
    if found["reads"]:
        values["mapped_percent"] = 100 * found["mapped"] / found["reads"]
        values["sure_percent"] = 100 * sum(found["mapping_qualities"][20:]) / found["reads"]
    if found["paired"]:
        values["proper_percent"] = 100 * found["properly_paired"] / found["paired"]
    if (median := found["insert_size"]["quartiles"][1]) is not None:
        values["median_insert_size"] = median
    return values


def _of_profiles(found: Mapping[str, Any], counts: Mapping[str, int]) -> dict[str, float]:
    values: dict[str, float] = {
        "profiles": counts.get("profiles", 0),
        "sequences": counts.get("sequences", 0),
        "profile_hits": found["hits"],
        "included_hits": found["included_hits"],
    }
    if found["queries"]:
        values["queries_with_hit_percent"] = 100 * found["queries_with_hit"] / found["queries"]
    return values
