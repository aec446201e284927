"""Files for MultiQC, by their structure; `tests/cli/test_multiqc.py` gives some to MultiQC."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest

from mummergpu.matching.match_counts import FileCounts, LengthCount, MatchCounts, with_gaps
from mummergpu.output.multiqc import (
    EXACT_BELOW,
    RANGES_OF_OCTAVE,
    general_statistics,
    in_plot_ranges,
    length_plot,
    lengths_path,
    sample_of,
)
from mummergpu.runtime.stats import Stats

LENGTHS = (
    LengthCount(20, 20, 700),
    LengthCount(21, 21, 70),
    LengthCount(24, 24, 5),
    LengthCount(1024, 1055, 1),
    LengthCount(1056, 1087, 2),
)


def stats_of(lengths: tuple[LengthCount, ...], **counts: int) -> Stats:
    stats = Stats()
    stats.set(minimum_length=20)
    stats.add(**counts)
    matches = sum(one.matches for one in lengths)
    stats.add(matches=matches)
    file = FileCounts("a.fq", counts.get("queries", 0), 0, min(matches, 600), matches)
    stats.set_match_counts(MatchCounts(1000, lengths, (file,), ()))
    return stats


def read_plot(content: bytes) -> tuple[dict[str, Any], list[list[float]]]:
    """Return the plot without its data, and the points of its line; they are in order."""
    text, count = re.subn(r"([{ ])([\d.]+):", r'\1"\2":', content.decode())
    found = read(text.encode())
    data = found.pop("data")
    assert list(data) == ["s"] and count == len(data["s"])
    return found, [[float(x), y] for x, y in data["s"].items()]


def read(content: bytes) -> dict[str, Any]:
    assert content.endswith(b"}\n") and content.isascii()
    found: dict[str, Any] = json.loads(content)
    return found


@pytest.mark.parametrize(
    ("path", "sample", "lengths"),
    [
        ("s_mqc.json", "s", "s_lengths_mqc.yaml"),
        ("a/b.c/s.1_mqc.json", "s.1", "a/b.c/s.1_lengths_mqc.yaml"),
        ("_mqc.json_mqc.json", "_mqc.json", "_mqc.json_lengths_mqc.yaml"),
    ],
)
def test_files_are_named_after_the_sample(path: str, sample: str, lengths: str) -> None:
    assert (sample_of(path), lengths_path(path)) == (sample, lengths)


def test_the_general_statistics_have_a_column_for_each_count() -> None:
    stats = stats_of(LENGTHS, queries=800, reference_bases=4000)
    found = read(general_statistics("s", stats))
    assert (found["plot_type"], found["namespace"]) == ("generalstats", "mummergpu")
    assert found["data"] == {
        "s": {
            **{"queries": 800, "queries_with_match": 600, "queries_with_match_percent": 75.0},
            **{"matches": 778, "bases_covered": 1000, "bases_covered_percent": 25.0},
        }
    }
    assert list(found["headers"]) == [
        *("queries", "queries_with_match", "queries_with_match_percent"),
        *("matches", "bases_covered", "bases_covered_percent"),
    ]
    for column in found["headers"].values():
        assert column["min"] == 0 and column["title"] and column["description"]


def test_a_share_of_nothing_is_left_out() -> None:
    found = read(general_statistics("s", stats_of((), queries=0, reference_bases=4000)))
    assert found["data"]["s"] == {
        **{"queries": 0, "queries_with_match": 0},
        **{"matches": 0, "bases_covered": 1000, "bases_covered_percent": 25.0},
    }


def test_the_plot_has_points_in_order_and_no_line_above_a_gap() -> None:
    found, points = read_plot(length_plot("s", stats_of(LENGTHS)))
    assert found["plot_type"] == "linegraph"
    assert found["id"] != read(general_statistics("s", stats_of(LENGTHS)))["id"]
    assert points == [
        *([20, 700], [21, 70], [22, 0], [23, 0], [24, 5]),
        *([25, 0], [1023, 0], [1055.5, 3 / 64]),
    ]


def test_small_numbers_are_no_text_in_yaml() -> None:
    """Whoever reads YAML takes a number with an exponent, but without a point, for text."""
    content = length_plot("s", stats_of((LengthCount(1 << 20, (1 << 20) + (1 << 15) - 1, 1),)))
    (height,) = re.findall(rb": (0\.0000\d+)}", content)
    assert float(height) == pytest.approx(1 / (1 << 16))


def test_the_plot_of_no_match_is_a_point() -> None:
    assert read_plot(length_plot("s", stats_of(())))[1] == [[20, 0]]


def test_ranges_of_the_plot_hold_all_matches() -> None:
    exact = [LengthCount(n, n, n) for n in (1, 100, 511, 512, 543, 544, 1023)]
    wide = [LengthCount(2048, 2111, 5), LengthCount(2112, 2175, 6), LengthCount(2176, 2239, 7)]
    found = in_plot_ranges([*exact, *wide])
    assert found == [
        *exact[:3],
        LengthCount(512, 543, 512 + 543),
        LengthCount(544, 575, 544),
        LengthCount(992, 1023, 1023),
        LengthCount(2048, 2175, 11),
        LengthCount(2176, 2303, 7),
    ]
    assert EXACT_BELOW // RANGES_OF_OCTAVE == 32


def test_gaps_are_filled() -> None:
    assert list(with_gaps(())) == []
    filled = list(with_gaps(LENGTHS))
    assert [one for one in filled if one.matches] == list(LENGTHS)
    for one, other in pairwise(filled):
        assert other.first == one.last + 1
