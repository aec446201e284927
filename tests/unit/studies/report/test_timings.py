"""Medians, sums and noise of a sweep, with numbers that were worked out by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.sweeps import ALL_CODES, CPU_CODES, make_run, make_setup, plain_sweep

from mummergpu.index.tree.policy import Policy
from mummergpu.studies.records import Sweep
from mummergpu.studies.report.timings import missing_of, policy_order, ranking_of, timings_of

NONE = Policy.from_code("none")
MERGED = Policy.from_code("m")


def stages(match):
    return {"match": match, "print": 1.0, "search": 10 * match, "upload": 2.0, "build": 7.0}


def small_sweep():
    runs = (
        make_run(0, "none", stages(4.0)),
        make_run(1, "m", stages(3.0)),
        make_run(2, "none", stages(6.0), "control"),
        make_run(3, "none", stages(5.0), "control", 1),
        make_run(4, "none", stages(900.0), "profile"),
        make_run(5, "m", stages(800.0), "profile"),
    )
    return Sweep(Path("there"), make_setup(["none", "m"], runs=1, control_runs=2), runs)


def test_a_median_is_of_runs_and_controls_but_not_of_profiles():
    timings = timings_of(small_sweep())
    assert timings.policies == (NONE, MERGED)
    assert timings.stages == ("build", "upload", "match", "print", "search", "kernels", "total")
    assert timings.of(NONE, "match") == 5.0
    assert timings.of(NONE, "kernels") == 6.0
    assert timings.of(NONE, "total") == 52.0
    assert timings.of(MERGED, "total") == 32.0
    assert timings.run_counts == (3, 1)
    assert np.isnan(timings.of(MERGED, "ordering"))
    assert np.isnan(timings.of(Policy.from_code("Q"), "match"))


def test_the_noise_is_the_variation_of_the_control():
    timings = timings_of(small_sweep())
    # 4, 6 and 5: a mean of 5 and a deviation of 1.
    assert timings.noise_of("match") == pytest.approx(0.2)
    assert timings.noise_of("kernels") == pytest.approx(1 / 6)
    assert timings.noise_of("print") == 0.0
    assert timings.noise_of("build") is None
    assert timings.noise_of("ordering") is None
    assert timings.noise_runs == 3


def test_the_noise_of_a_single_run_is_unknown():
    timings = timings_of(plain_sweep(["none"], lambda code: {"match": 1.0}))
    assert timings.noise_of("match") is None
    assert timings.stages == ("match", "kernels")


def test_a_sweep_without_runs_has_no_times():
    sweep = replace(small_sweep(), runs=())
    timings = timings_of(sweep)
    assert (timings.policies, timings.stages, timings.noise_runs) == ((), (), 0)
    assert ranking_of(timings, "match").policies == ()


def test_layouts_are_ranked_by_time():
    ranking = ranking_of(timings_of(small_sweep()), "kernels")
    assert [policy.code for policy in ranking.policies] == ["m", "none"]
    assert list(ranking.ratios) == [1.0, 1.5]
    assert ranking.ratio_of(NONE) == 1.5
    assert ranking.ratio_of(Policy.from_code("T")) is None


def test_policies_are_ordered_by_letters():
    codes = [policy.code for policy in sorted(map(Policy.from_code, ALL_CODES), key=policy_order)]
    assert codes[:9] == ["none", *"QRTmrtn", "QR"]
    assert codes[-1] == "QRTmrtn"


def test_what_an_interrupted_sweep_lacks():
    codes = CPU_CODES[:4]
    runs = tuple(make_run(n, codes[n % 3], {"match": 1.0}) for n in range(5))
    missing = missing_of(Sweep(Path("x"), make_setup(codes, runs=2, control_runs=3), runs))
    assert (missing.made, missing.planned, missing.runs) == (5, 11, 6)
    assert missing.codes == (codes[3],)
    profiled = make_setup(codes, runs=2, control_runs=3, profile=True)
    assert missing_of(Sweep(Path("x"), profiled, runs)).planned == 15
