"""Files for MultiQC, by their structure; `tests/cli/test_multiqc.py` gives some to MultiQC."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mummergpu.mapping.alignments.summary import MAX_INSERT, empty_summary
from mummergpu.matching.summary import FileCounts, MatchCounts
from mummergpu.output.multiqc import general_statistics, sample_of
from mummergpu.runtime.stats import Stats


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


@pytest.mark.parametrize("queries", [800, 0])
def test_matches_have_a_column_for_each_count(queries):
    """A share of nothing is left out."""
    stats = Stats()
    stats.add(queries=queries, reference_bases=4000, matches=778)
    with_match = min(queries, 600)
    file = FileCounts("a.fq", queries, 0, with_match, 778)
    stats.set_match_counts(MatchCounts(1000, (), (file,), ()))
    found = written(stats)
    assert (found["plot_type"], found["namespace"]) == ("generalstats", "mummergpu")
    assert found["data"]["s"] == {
        **{"queries": queries, "queries_with_match": with_match},
        **({"queries_with_match_percent": 75.0} if queries else {}),
        **{"matches": 778, "bases_covered": 1000, "bases_covered_percent": 25.0},
    }
    for column in found["headers"].values():
        assert column["min"] == 0 and column["title"] and column["description"]


def mapped(**told):
    stats = Stats()
    stats.mapping = replace(empty_summary(), **told)
    return written(stats)["data"]["s"]


def test_columns_of_mapped_reads_are_shares():
    sizes = np.zeros(MAX_INSERT + 1, dtype=np.int64)
    sizes[[300, 301, 302]] = 5, 10, 5
    qualities = np.zeros(256, dtype=np.int64)
    qualities[[0, 19, 20, 60]] = 5, 4, 3, 88
    counts = {"reads": 200, "mapped": 100, "paired": 160, "proper": 40}
    assert mapped(**counts, qualities=qualities, inserts=sizes) == {
        **{"reads": 200, "mapped_percent": 50.0, "sure_percent": 45.5, "proper_percent": 25.0},
        "median_insert_size": 301,
    }
    assert mapped() == {"reads": 0}
