"""What kernels reach: times of ordinary runs, visits of profiled ones, the device's limit."""

from pathlib import Path

import pytest
from helpers.sweeps import GPU, make_run, make_setup

from mummergpu.index.tree.policy import Policy
from mummergpu.studies.records import KernelRecord, Sweep
from mummergpu.studies.report.timings import kernel_facts, registers_of_print


def record(milliseconds, visits=None, registers=40):
    return KernelRecord(milliseconds, 1, visits, registers, 0, 0, 0.75)


def sweep_of(code):
    kernels = [
        ("run", record(2.0)),
        ("control", record(4.0)),
        ("control", record(3.0)),
        ("profile", record(500.0, visits=60_000_000)),
    ]
    runs = [
        make_run(n, code, {}, kind, n, {"match_kernel": one, "count_mems": record(1.0)})
        for n, (kind, one) in enumerate(kernels)
    ]
    runs.append(make_run(9, "Q", {}, "run", 0, {"write_mems": record(1.0, registers=61)}))
    return Sweep(Path("x"), make_setup([code], GPU), tuple(runs))


def of_kernel(facts, kernel):
    (one,) = (one for one in facts if one.kernel == kernel)
    return one


@pytest.mark.parametrize(("code", "limit"), [("m", 6.0e10), ("T", 4.0e10)])
def test_visits_are_compared_with_the_limit_of_the_layout(code, limit):
    one = of_kernel(kernel_facts(sweep_of(code)), "match_kernel")
    assert one.policy == Policy.from_code(code)
    assert one.milliseconds == 3.0
    # 60 million visits in 3 ms.
    assert one.visits_per_second == pytest.approx(2.0e10)
    assert one.limit == limit
    assert (one.registers, one.local_bytes, one.occupancy) == (40, 0, 0.75)


def test_what_was_not_counted_is_not_known():
    facts = kernel_facts(sweep_of("m"))
    one = of_kernel(facts, "count_mems")
    assert one.visits_per_second is None
    assert registers_of_print(facts, Policy.from_code("m")) == 40
    assert registers_of_print(facts, Policy.from_code("Q")) == 61
    assert registers_of_print(facts, Policy.from_code("T")) is None


def test_only_a_profile_gives_no_time():
    kernels = {"match_kernel": record(5.0, visits=9)}
    runs = (make_run(0, "m", {}, "profile", 0, kernels),)
    (one,) = kernel_facts(Sweep(Path("x"), make_setup(["m"], GPU), runs))
    assert (one.milliseconds, one.visits_per_second, one.registers) == (None, None, 40)
