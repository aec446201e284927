"""Files for MultiQC about mapped reads, by their structure."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np

from mummergpu.mapping.alignments.summary import MAX_INSERT, MappingSummary, empty_summary
from mummergpu.output.alignments.multiqc_mapping import files
from mummergpu.runtime.stats import Stats


def found(summary: MappingSummary) -> dict[str, dict[str, Any]]:
    """Return the content of the files of a run of a sample 's'."""
    stats = Stats()
    stats.set_mapping(summary)
    read = {}
    for path, make in files("qc/s_mqc.json").items():
        text = re.sub(r"([{ ])([\d.]+):", r'\1"\2":', make("s", stats).decode())
        assert text.isascii() and text.endswith("}\n")
        read[path] = json.loads(text)
    return read


def made_summary(inserts: dict[int, int]) -> MappingSummary:
    sizes = np.zeros(MAX_INSERT + 1, dtype=np.int64)
    for size, count in inserts.items():
        sizes[size] = count
    qualities = np.zeros(256, dtype=np.int64)
    qualities[[0, 19, 20, 60]] = 5, 4, 3, 88
    return replace(
        empty_summary(),
        reads=200,
        mapped=100,
        paired=160,
        proper=40,
        qualities=qualities,
        inserts=sizes,
    )


def test_columns_are_shares_of_the_reads() -> None:
    values = found(made_summary({300: 5, 301: 10, 302: 5}))["qc/s_mqc.json"]["data"]["s"]
    assert values == {
        "reads": 200,
        "mapped_percent": 50.0,
        "sure_percent": 45.5,
        "proper_percent": 25.0,
        "median_insert_size": 301,
    }


def test_a_run_without_reads_has_no_shares() -> None:
    read = found(empty_summary())
    assert read["qc/s_mqc.json"]["data"]["s"] == {"reads": 0}
    assert read["qc/s_insert_sizes_mqc.yaml"]["data"] == {"s": {"0": 0}}
    assert set(read["qc/s_mapping_qualities_mqc.yaml"]["data"]["s"].values()) == {0}


def test_plots_have_every_point() -> None:
    read = found(made_summary({300: 5, 303: 10, MAX_INSERT: 7}))
    points = read["qc/s_insert_sizes_mqc.yaml"]["data"]["s"]
    # Those that are too long to be counted one by one are not drawn.
    assert points == {"299": 0, "300": 5, "301": 0, "302": 0, "303": 10, "304": 0}


def test_a_bar_has_all_reads() -> None:
    bar = found(made_summary({300: 5}))["qc/s_mapping_qualities_mqc.yaml"]
    assert bar["plot_type"] == "bargraph"
    assert list(bar["data"]["s"].items()) == [
        *(("MAPQ 60", 88), ("MAPQ 40 to 59", 0), ("MAPQ 30 to 39", 0), ("MAPQ 20 to 29", 3)),
        *(("MAPQ 10 to 19", 4), ("MAPQ 1 to 9", 0), ("MAPQ 0", 5), ("not mapped", 100)),
    ]


def test_many_sizes_are_drawn_as_means() -> None:
    summary = made_summary({1: 8, MAX_INSERT - 1: 16})
    points = found(summary)["qc/s_insert_sizes_mqc.yaml"]["data"]["s"]
    assert len(points) <= 4000
    # MultiQC draws as many pairs as there are: a point is the mean of some sizes.
    width = -(-MAX_INSERT // 4000)
    assert sum(points.values()) * width == 24 or abs(sum(points.values()) * width - 24) < 8
