"""Files for MultiQC, by their structure; `tests/cli/test_multiqc.py` gives some to MultiQC."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mummergpu.mapping.alignments.summary import MAX_INSERT, empty_summary
from mummergpu.matching.summary import FileCounts, MatchCounts
from mummergpu.output.multiqc import general_statistics, sample_of
from mummergpu.runtime.stats import Stats


def stats_of(**counts):
    stats = Stats()
    stats.add(**counts)
    stats.add(matches=778)
    file = FileCounts("a.fq", counts.get("queries", 0), 0, min(counts["queries"], 600), 778)
    stats.set_match_counts(MatchCounts(1000, (), (file,), ()))
    return stats


def written(stats):
    content = general_statistics("s", stats)
    assert content.endswith(b"}\n") and content.isascii()
    found = json.loads(content)
    assert set(found["headers"]) >= set(found["data"]["s"])
    return found


@pytest.mark.parametrize(
    ("path", "sample"),
    [("s_mqc.json", "s"), ("a/b.c/s.1_mqc.json", "s.1"), ("_mqc.json_mqc.json", "_mqc.json")],
)
def test_files_are_named_after_the_sample(path, sample):
    assert sample_of(path) == sample


def test_matches_have_a_column_for_each_count():
    found = written(stats_of(queries=800, reference_bases=4000))
    assert (found["plot_type"], found["namespace"]) == ("generalstats", "mummergpu")
    assert found["data"]["s"] == {
        **{"queries": 800, "queries_with_match": 600, "queries_with_match_percent": 75.0},
        **{"matches": 778, "bases_covered": 1000, "bases_covered_percent": 25.0},
    }
    for column in found["headers"].values():
        assert column["min"] == 0 and column["title"] and column["description"]


def test_a_share_of_nothing_is_left_out():
    found = written(stats_of(queries=0, reference_bases=4000))
    assert found["data"]["s"] == {
        **{"queries": 0, "queries_with_match": 0},
        **{"matches": 778, "bases_covered": 1000, "bases_covered_percent": 25.0},
    }


def mapped(summary):
    stats = Stats()
    stats.mapping = summary
    return stats


def test_columns_of_mapped_reads_are_shares():
    sizes = np.zeros(MAX_INSERT + 1, dtype=np.int64)
    sizes[[300, 301, 302]] = 5, 10, 5
    qualities = np.zeros(256, dtype=np.int64)
    qualities[[0, 19, 20, 60]] = 5, 4, 3, 88
    summary = replace(
        empty_summary(),
        reads=200,
        mapped=100,
        paired=160,
        proper=40,
        qualities=qualities,
        inserts=sizes,
    )
    assert written(mapped(summary))["data"]["s"] == {
        "reads": 200,
        "mapped_percent": 50.0,
        "sure_percent": 45.5,
        "proper_percent": 25.0,
        "median_insert_size": 301,
    }


def test_a_run_without_reads_has_no_shares():
    assert written(mapped(empty_summary()))["data"]["s"] == {"reads": 0}
