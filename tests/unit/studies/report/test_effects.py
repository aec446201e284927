"""Effects, interactions and models against known factors and tables worked out by hand."""

import math
from pathlib import Path

import pytest
from helpers.sweeps import ALL_CODES, CPU_CODES, make_run, make_setup, plain_sweep, product_of

from mummergpu.studies.records import Sweep
from mummergpu.studies.report.effects import (
    FASTER,
    MIXED,
    NOISE,
    SLOWER,
    UNCLEAR,
    interactions,
    policy_effect,
    policy_effects,
    t_quantile,
)
from mummergpu.studies.report.paper_section import bars_of
from mummergpu.studies.report.timings import timings_of

FACTORS = {"m": 0.8, "T": 0.9, "t": 1.15, "n": 1.05, "Tm": 1.25}

BY_HAND = {"none": 100.0, "m": 80.0, "t": 110.0, "mt": 99.0}
"""Seconds of four layouts."""


def product_timings(codes=ALL_CODES):
    return timings_of(plain_sweep(codes, lambda code: {"match": product_of(2.0, FACTORS, code)}))


def hand_timings():
    return timings_of(plain_sweep(tuple(BY_HAND), lambda code: {"match": BY_HAND[code]}))


def effect_of(timings, letter, stage="match"):
    effect = policy_effect(timings, letter, stage)
    assert effect is not None
    return effect


def test_an_effect_worked_out_by_hand():
    effect = effect_of(hand_timings(), "m")
    # 100 to 80 is -20%, 110 to 99 is -10%.
    assert [(pair.off.code, pair.on.code) for pair in effect.pairs] == [("none", "m"), ("t", "mt")]
    assert [pair.percent for pair in effect.pairs] == pytest.approx([-20, -10])
    assert (effect.mean, effect.median) == (pytest.approx(-15), pytest.approx(-15))
    assert effect.lower_quartile == pytest.approx(-17.5)
    assert effect.upper_quartile == pytest.approx(-12.5)
    assert (effect.least, effect.most) == (pytest.approx(-20), pytest.approx(-10))
    # A standard error of 5, and Student's t of 12.706 for one degree of freedom.
    assert effect.low == pytest.approx(-15 - 12.7062 * 5, abs=1e-3)
    assert effect.high == pytest.approx(-15 + 12.7062 * 5, abs=1e-3)
    second = effect_of(hand_timings(), "t")
    # 100 to 110 is 10%, 80 to 99 is 23.75%.
    assert second.mean == pytest.approx(16.875)


def test_an_interaction_worked_out_by_hand():
    (found,) = interactions(hand_timings(), "match")
    assert (found.first, found.second, found.squares) == ("m", "t", 1)
    # 99 / 110 over 80 / 100 is 1.125.
    assert found.percent == pytest.approx(12.5)
    assert found.noise is None


def test_known_factors_are_found_again_in_all_128_layouts():
    timings = product_timings()
    effects = {effect.letter: effect for effect in policy_effects(timings, "match")}
    assert list(effects) == list("QRTmrtn")
    assert all(len(effect.pairs) == 64 for effect in effects.values())
    assert effects["t"].mean == pytest.approx(15)
    assert effects["t"].low == pytest.approx(15)
    assert effects["Q"].mean == pytest.approx(0)
    # Half of the pairs have the other letter on, which turns -20% to 0%.
    assert effects["m"].mean == pytest.approx((-20 + 0) / 2)
    assert effects["T"].mean == pytest.approx((-10 + 12.5) / 2)


def test_known_interactions_are_found_again():
    found = {one.first + one.second: one for one in interactions(product_timings(), "match")}
    assert len(found) == 21
    assert all(one.squares == 32 for one in found.values())
    assert found["Tm"].percent == pytest.approx(25)
    assert max(abs(one.percent) for name, one in found.items() if name != "Tm") < 1e-9


def test_the_processor_has_eight_pairs_and_no_textures():
    timings = product_timings(CPU_CODES)
    effects = policy_effects(timings, "match")
    assert "".join(effect.letter for effect in effects) == "mrtn"
    assert all(len(effect.pairs) == 8 for effect in effects)
    assert len(interactions(timings, "match")) == 6


def test_missing_layouts_leave_the_other_pairs():
    codes = tuple(code for code in CPU_CODES if code not in ("m", "rtn"))
    timings = product_timings(codes)
    # none and m are one pair; rtn and mrtn another.
    assert len(effect_of(timings, "m").pairs) == 6
    assert effect_of(timings, "m").mean == pytest.approx(-20)
    assert policy_effects(timings, "print") == ()
    assert policy_effect(product_timings(("none", "tn")), "t", "match") is None


def test_a_time_of_zero_makes_no_pair():
    times = {"none": 0.0, "m": 1.0, "t": 2.0, "mt": 3.0}
    timings = timings_of(plain_sweep(tuple(times), lambda code: {"match": times[code]}))
    effect = effect_of(timings, "m")
    assert [pair.percent for pair in effect.pairs] == pytest.approx([50])
    assert (effect.low, effect.high) == (None, None)
    assert interactions(timings, "match") == ()


def noisy(times, controls):
    runs = [make_run(n, code, {"match": time}) for n, (code, time) in enumerate(times.items())]
    runs += [make_run(9, "none", {"match": time}, "control", n) for n, time in enumerate(controls)]
    setup = make_setup(tuple(times), control_runs=len(controls))
    return timings_of(Sweep(Path("nowhere"), setup, tuple(runs)))


def test_what_is_smaller_than_the_noise_is_marked():
    small = {"none": 100.0, "m": 101.0, "t": 130.0, "mt": 131.3}
    timings = noisy(small, (98.0, 100.0, 102.0))
    assert timings.noise_of("match") == pytest.approx(math.sqrt(8 / 3) / 100)
    effect = effect_of(timings, "m")
    assert effect.noise == pytest.approx(1.63299, abs=1e-4)
    assert effect.verdict == NOISE
    assert effect_of(timings, "t").verdict == SLOWER


def test_effects_that_cancel_each_other_are_no_noise():
    times = {"none": 100.0, "m": 70.0, "t": 100.0, "mt": 130.0}
    effect = effect_of(noisy(times, (99.0, 100.0, 101.0)), "m")
    assert effect.mean == pytest.approx(0)
    assert effect.verdict == MIXED
    assert effect_of(product_timings(CPU_CODES), "m").verdict == FASTER


def test_without_noise_nothing_is_said_about_a_mean_that_is_not_clear():
    assert effect_of(hand_timings(), "m").verdict == UNCLEAR
    single = {"none": 100.0, "m": 97.0}
    assert effect_of(noisy(single, ()), "m").verdict == UNCLEAR
    assert effect_of(noisy(single, (99.0, 101.0)), "m").verdict == FASTER
    assert effect_of(noisy(single, (96.0, 104.0)), "m").verdict == NOISE


def test_the_bars_of_a_figure_are_those_of_the_paper():
    bars = bars_of(effect_of(product_timings(), "Q"))
    assert len(bars) == 32
    assert [bar.textures for bar in bars[::8]] == ["", "R", "T", "RT"]
    assert [bar.label for bar in bars[:8]] == ["control", "m", "t", "n", "mt", "mn", "tn", "mtn"]
    assert bars[9].pair.off.code == "Rm"
    assert bars[9].pair.on.code == "QRm"
    tree = bars_of(effect_of(product_timings(), "t"))
    assert [bar.textures for bar in tree[::4]] == ["", "Q", "R", "T", "QR", "QT", "RT", "QRT"]
    assert [bar.label for bar in tree[:4]] == ["control", "m", "n", "mn"]


def test_the_quantile_is_students():
    assert t_quantile(1) == pytest.approx(12.7062, abs=1e-4)
    assert t_quantile(63) == pytest.approx(1.9983, abs=1e-4)
