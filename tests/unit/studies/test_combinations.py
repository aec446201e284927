"""Which combinations a study measures, and in what order."""

from collections import Counter
from itertools import pairwise

import pytest
from helpers.studies import wanted

from mummergpu.errors import OptionError
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.studies.combinations import (
    CONTROL,
    PlannedRun,
    by_layout,
    choose_policies,
    differing_policies,
    every_policy,
    order_of_visits,
)


def test_there_are_128_combinations_of_seven_letters():
    codes = every_policy()
    assert codes[0] == CONTROL == "none"
    assert len(codes) == len(set(codes)) == 128
    assert all(Policy.from_code(code).code == code for code in codes)
    assert codes[-1] == "QRTmrtn"


def test_the_processor_has_no_textures():
    assert differing_policies("cuda") == every_policy()
    codes = differing_policies("cpu")
    assert codes[0] == CONTROL
    assert len(codes) == 16
    assert not set("".join(codes[1:])) - set("mrtn")
    assert len({Layout.of(Policy.from_code(code)) for code in codes}) == 16


@pytest.mark.parametrize(
    ("text", "backend", "expected"),
    [
        ("none", "cpu", "none"),
        ("m", "cpu", "none m"),
        ("nm,mn", "cuda", "none mn"),
        ("Tn,m", "cpu", "none m Tn"),
        ("?", "cpu", "none n t r m"),
        ("?", "cuda", "none n t r m T R Q"),
        ("*rt*", "cpu", "none rt rtn mrt mrtn"),
        ("[QR]m,t", "cuda", "none t Rm Qm"),
        ("none,none", "cuda", "none"),
    ],
)
def test_policies_are_chosen_by_codes_and_patterns(text, backend, expected):
    assert choose_policies(text, backend) == expected.split()


def test_a_pattern_is_as_good_as_all_that_match_it():
    assert choose_policies("*", "cuda") == choose_policies("all", "cuda") == every_policy()
    with_tree_texture = choose_policies("T*", "cuda")
    assert len(with_tree_texture) == 1 + 16
    assert all(code.startswith("T") for code in with_tree_texture[1:])


@pytest.mark.parametrize(
    ("text", "backend", "told"),
    [
        ("T*", "cpu", "no policy on the cpu matches 'T*'"),
        ("*x*", "cuda", "no policy on the cuda matches '*x*'"),
        ("m,Z", "cuda", "'Z' is not made of"),
        ("mm", "cuda", "twice"),
        ("", "cuda", "'' is not made of"),
        ("m,", "cuda", "'' is not made of"),
        ("all,m", "cuda", "'all' is not made of"),
    ],
)
def test_what_is_no_policy_is_an_error(text, backend, told):
    with pytest.raises(OptionError) as caught:
        choose_policies(text, backend)
    assert caught.value.option == "policies"
    assert told in caught.value.message


@pytest.mark.parametrize("wide", [False, True])
def test_combinations_of_a_layout_differ_in_textures_only(wide):
    groups = by_layout(every_policy(), wide)
    assert len(groups) == 16
    for layout, codes in groups.items():
        assert len(codes) == 8
        assert layout.wide == wide
        assert {Layout.of(Policy.from_code(code), wide) for code in codes} == {layout}
        assert len({code.replace("none", "").strip("QRT") for code in codes}) == 1


CODES = ["none", "m", "Tn", "QRT", "r", "t", "mrt"]


def flat(visits):
    return [run for visit in visits for run in visit]


@pytest.mark.parametrize(("runs", "rounds"), [(1, 1), (5, 5), (5, 2), (5, 1), (4, 3), (2, 2)])
@pytest.mark.parametrize("control_runs", [0, 1, 10, 50])
@pytest.mark.parametrize("profile", [False, True])
def test_each_run_is_planned_once(runs, rounds, control_runs, profile):
    visits = order_of_visits(CODES, runs, rounds, control_runs, 3, profile)
    expected = wanted(CODES, runs, control_runs)
    if profile:
        expected.update(PlannedRun(code, "profile", 0) for code in CODES)
    assert Counter(flat(visits)) == expected
    assert all(len({run.policy for run in visit}) == 1 for visit in visits)
    own = [visit for visit in visits if visit[0].kind != "control"]
    assert len(own) == rounds * len(CODES)
    for number in range(rounds):
        of_round = own[number * len(CODES) : (number + 1) * len(CODES)]
        assert {visit[0].policy for visit in of_round} == set(CODES)
        sizes = {len([run for run in visit if run.kind == "run"]) for visit in of_round}
        assert len(sizes) == 1 and runs // rounds <= sizes.pop() <= -(-runs // rounds)
    for code in CODES:
        repeats = [run.repeat for run in flat(own) if (run.policy, run.kind) == (code, "run")]
        assert repeats == sorted(repeats)


def test_nodes_are_counted_at_the_end_of_the_last_visit():
    visits = order_of_visits(CODES, 4, 2, 0, 1, True)
    for visit in visits[: len(CODES)]:
        assert {run.kind for run in visit} == {"run"}
    for visit in visits[len(CODES) :]:
        assert [run.kind for run in visit] == ["run", "run", "profile"]


def test_the_seed_gives_the_order():
    def order(seed):
        return order_of_visits(CODES, 3, 3, 2, seed, False)

    assert order(1) == order(1)
    assert len({tuple(map(tuple, order(seed))) for seed in range(8)}) == 8


def test_each_round_has_another_order():
    codes = every_policy()
    visits = order_of_visits(codes, 3, 3, 0, 1, False)
    orders = [[visit[0].policy for visit in visits[128 * n : 128 * n + 128]] for n in range(3)]
    assert len({*map(tuple, orders), tuple(codes)}) == 4


@pytest.mark.parametrize("control_runs", [1, 2, 7, 10, 63])
def test_the_control_is_spread_evenly(control_runs):
    visits = order_of_visits(every_policy(), 2, 2, control_runs, 1, False)
    places = [number for number, visit in enumerate(visits) if visit[0].kind == "control"]
    assert [visits[place][0].repeat for place in places] == list(range(control_runs))
    between = [after - before for before, after in pairwise([-1, *places, len(visits)])]
    inner = between[1:-1]
    ideal = len(visits) / control_runs
    assert all(abs(gap - ideal) <= 1 for gap in inner)
    assert all(abs(gap - ideal / 2) < 2 for gap in (between[0], between[-1]))


def test_the_order_of_a_seed_stays_as_it_is():
    """A sweep may go on with a later Python."""
    order = [visit[0].policy for visit in order_of_visits(CODES, 1, 1, 0, 1, False)]
    assert order == ["QRT", "mrt", "t", "Tn", "none", "r", "m"]
