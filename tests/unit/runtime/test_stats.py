"""Counters and stage timers."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mummergpu.matching.summary import FileCounts, LengthCount, MatchCounts, StrandCounts
from mummergpu.runtime.stats import SCHEMA_VERSION, STAGES, Stats, peak_memory


def test_report_has_the_stages_that_ran_and_a_version():
    stats = Stats()
    with stats.stage("match_kernel"):
        pass
    report = json.loads(stats.as_json())
    assert report["schema_version"] == SCHEMA_VERSION
    assert report["stages"].keys() == {"match_kernel"} and "match_kernel" in STAGES
    assert report["stages"]["match_kernel"].keys() == {"seconds", "count", "peak_memory_bytes"}


def test_stage_adds_up_seconds_and_runs():
    stats, began = Stats(), time.perf_counter()
    for _ in range(2):
        with stats.stage("match_kernel"):
            time.sleep(0.02)
    passed = time.perf_counter() - began
    stage = stats.stages["match_kernel"]
    assert stage.count == 2
    assert 0.04 <= stage.seconds <= passed
    assert 1_000_000 < stage.peak_memory_bytes <= peak_memory()


def test_stage_that_fails_is_timed_too():
    stats = Stats()
    with pytest.raises(RuntimeError), stats.stage("format"):
        raise RuntimeError
    assert stats.stages["format"].count == 1


def test_unknown_stage_is_refused():
    with pytest.raises(KeyError), Stats().stage("kernel_match"):
        pass


def test_nothing_is_lost_between_threads():
    stats = Stats()

    def work(_number):
        for _ in range(500):
            stats.add(queries=1, matches=2)
            with stats.stage("print_kernel"):
                pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert stats.counts == {"queries": 4000, "matches": 8000}
    assert stats.stages["print_kernel"].count == 4000


def test_numbers_of_numpy_reach_the_report():
    stats = Stats()
    stats.add(queries=np.int64(3))
    stats.add_bytes(output=np.int64(5))
    stats.set(backend="cpu")
    report = json.loads(stats.as_json())
    assert report["counts"] == {"queries": 3}
    assert report["bytes"] == {"output": 5}
    assert report["settings"] == {"backend": "cpu"}


def test_what_was_counted_of_matches_is_in_the_report():
    stats = Stats()
    report = json.loads(stats.as_json())
    assert report["files"] == report["strands"] == report["match_lengths"] == []
    assert report["counts"] == {}
    stats.set_match_counts(
        MatchCounts(
            17,
            (LengthCount(20, 20, 4), LengthCount(1024, 1055, 1)),
            (FileCounts("a.fq", 9, 900, 3, 4), FileCounts("b.fq", 1, 2000, 1, 1)),
            (StrandCounts("reverse", 4, 5),),
        )
    )
    report = json.loads(stats.as_json())
    assert report["counts"] == {"queries_with_match": 4, "bases_covered": 17}
    assert report["files"][1] == {
        **{"path": "b.fq", "queries": 1, "query_bases": 2000},
        **{"queries_with_match": 1, "matches": 1},
    }
    assert report["strands"] == [{"strand": "reverse", "queries_with_match": 4, "matches": 5}]
    assert report["match_lengths"][1] == {"first": 1024, "last": 1055, "matches": 1}


def test_summary_names_the_stages_that_were_run():
    stats = Stats()
    with stats.stage("tree_flatten"):
        pass
    (line,) = stats.summary()
    assert line.startswith("tree_flatten ")
    assert "in 1 run," in line
