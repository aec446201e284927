"""Reports on sweeps and filter studies: text, medians, effects, what kernels reach, the paper."""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from helpers.loops import each
from helpers.profiles import block_of, built, sequences_like
from helpers.sweeps import ALL_CODES, CPU_CODES, GPU, make_run, make_setup, plain_sweep, product_of

from mummergpu.errors import InputError, OptionError
from mummergpu.hmm.filter_variants import BASIC, PAPERS_BEST, ThreadPolicy
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.options import FilterThresholds
from mummergpu.index.tree.policy import LETTERS, Policy
from mummergpu.studies import records
from mummergpu.studies.profiles import policies
from mummergpu.studies.profiles.data import ProfileData, parts_of, processor_scores, suitable
from mummergpu.studies.report import page, paper
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
from mummergpu.studies.report.profile_sections import (
    PAPER_ROWS,
    choice_effects,
    choice_interactions,
    study_of,
)
from mummergpu.studies.report.timings import (
    ALL_STAGES,
    kernel_facts,
    missing_of,
    policy_order,
    ranking_of,
    registers_of_print,
    timings_of,
)
from mummergpu.studies.sweeping import SweepFolder


@each(
    "seconds, text",
    [
        (1.5, "1.50 s"),
        (123.4, "123 s"),
        (4321.0, "4,321 s"),
        (0.00654, "6.54 ms"),
        (2.5e-5, "25.0 µs"),
        (2e-8, "0.0200 µs"),
        (0.0, "0 s"),
        (None, "-"),
        (math.nan, "-"),
    ],
)
def test_times_have_three_digits_and_a_unit(seconds, text):
    assert page.time_text(seconds) == text


@each(
    "percent, text",
    [(3.21, "+3.2%"), (-0.04, "0.0%"), (-11.0, "-11.0%"), (250.2, "+250%"), (None, "-")],
)
def test_changes_have_a_sign(percent, text):
    assert page.percent_text(percent) == text


def test_other_numbers():
    assert page.range_text(-1.0, 2.0) == "-1.0% to +2.0%" and page.range_text(None, 2.0) == "-"
    assert (page.noise_text(0.7213), page.noise_text(None)) == ("±0.72%", "unknown")
    assert [page.bytes_text(n) for n in (5, 2048, 3 << 20, 5 << 30)] == [
        *("5 bytes", "2.00 KiB", "3.00 MiB", "5.00 GiB")
    ]
    assert (page.digits(0), page.digits(12345.6), page.digits(0.01234)) == ("0", "12,346", "0.0123")
    assert (page.listed([]), page.listed(["a"]), page.listed(["a", "b", "c"])) == (
        "",
        "a",
        "a, b and c",
    )


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
    return records.Sweep(Path("there"), make_setup(["none", "m"], runs=1, control_runs=2), runs)


def test_a_median_is_of_runs_and_controls_but_not_of_profiles():
    timings = timings_of(small_sweep())
    assert timings.policies == (NONE, MERGED)
    assert timings.stages == ("build", "upload", "match", "print", "search", "kernels", "total")
    assert timings.of(NONE, "match") == 5.0 and timings.of(NONE, "kernels") == 6.0
    assert timings.of(NONE, "total") == 52.0 and timings.of(MERGED, "total") == 32.0
    assert timings.run_counts == (3, 1) and np.isnan(timings.of(MERGED, "ordering"))
    assert np.isnan(timings.of(Policy.from_code("Q"), "match"))


def test_the_noise_is_the_variation_of_the_control():
    timings = timings_of(small_sweep())
    # 4, 6 and 5: a mean of 5 and a deviation of 1.
    assert timings.noise_of("match") == pytest.approx(0.2)
    assert timings.noise_of("kernels") == pytest.approx(1 / 6)
    assert timings.noise_of("print") == 0.0 and timings.noise_of("build") is None
    assert timings.noise_of("ordering") is None and timings.noise_runs == 3


def test_the_noise_of_a_single_run_is_unknown():
    timings = timings_of(plain_sweep(["none"], lambda code: {"match": 1.0}))
    assert timings.noise_of("match") is None and timings.stages == ("match", "kernels")


def test_a_sweep_without_runs_has_no_times():
    timings = timings_of(replace(small_sweep(), runs=()))
    assert (timings.policies, timings.stages, timings.noise_runs) == ((), (), 0)
    assert ranking_of(timings, "match").policies == ()


def test_layouts_are_ranked_by_time():
    ranking = ranking_of(timings_of(small_sweep()), "kernels")
    assert [policy.code for policy in ranking.policies] == ["m", "none"]
    assert list(ranking.ratios) == [1.0, 1.5] and ranking.ratio_of(NONE) == 1.5
    assert ranking.ratio_of(Policy.from_code("T")) is None


def test_policies_are_ordered_by_letters():
    codes = [policy.code for policy in sorted(map(Policy.from_code, ALL_CODES), key=policy_order)]
    assert codes[:9] == ["none", *"QRTmrtn", "QR"] and codes[-1] == "QRTmrtn"


def test_what_an_interrupted_sweep_lacks():
    codes = CPU_CODES[:4]
    runs = tuple(make_run(n, codes[n % 3], {"match": 1.0}) for n in range(5))
    missing = missing_of(records.Sweep(Path("x"), make_setup(codes, runs=2, control_runs=3), runs))
    assert (missing.made, missing.planned, missing.runs) == (5, 11, 6)
    assert missing.codes == (codes[3],)
    profiled = make_setup(codes, runs=2, control_runs=3, profile=True)
    assert missing_of(records.Sweep(Path("x"), profiled, runs)).planned == 15


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
    assert found.percent == pytest.approx(12.5) and found.noise is None


def test_known_factors_are_found_again_in_all_128_layouts():
    effects = {effect.letter: effect for effect in policy_effects(product_timings(), "match")}
    assert list(effects) == list("QRTmrtn")
    assert all(len(effect.pairs) == 64 for effect in effects.values())
    assert effects["t"].mean == pytest.approx(15) and effects["t"].low == pytest.approx(15)
    assert effects["Q"].mean == pytest.approx(0)
    # Half of the pairs have the other letter on, which turns -20% to 0%.
    assert effects["m"].mean == pytest.approx((-20 + 0) / 2)
    assert effects["T"].mean == pytest.approx((-10 + 12.5) / 2)


def test_known_interactions_are_found_again():
    found = {one.first + one.second: one for one in interactions(product_timings(), "match")}
    assert len(found) == 21 and all(one.squares == 32 for one in found.values())
    assert found["Tm"].percent == pytest.approx(25)
    assert max(abs(one.percent) for name, one in found.items() if name != "Tm") < 1e-9


def test_the_processor_has_eight_pairs_and_no_textures():
    timings = product_timings(CPU_CODES)
    effects = policy_effects(timings, "match")
    assert "".join(effect.letter for effect in effects) == "mrtn"
    assert all(len(effect.pairs) == 8 for effect in effects)
    assert len(interactions(timings, "match")) == 6


def test_missing_layouts_leave_the_other_pairs():
    timings = product_timings(tuple(code for code in CPU_CODES if code not in ("m", "rtn")))
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
    assert (effect.low, effect.high) == (None, None) and interactions(timings, "match") == ()


def noisy(times, controls):
    runs = [make_run(n, code, {"match": time}) for n, (code, time) in enumerate(times.items())]
    runs += [make_run(9, "none", {"match": time}, "control", n) for n, time in enumerate(controls)]
    setup = make_setup(tuple(times), control_runs=len(controls))
    return timings_of(records.Sweep(Path("nowhere"), setup, tuple(runs)))


def test_what_is_smaller_than_the_noise_is_marked():
    small = {"none": 100.0, "m": 101.0, "t": 130.0, "mt": 131.3}
    timings = noisy(small, (98.0, 100.0, 102.0))
    assert timings.noise_of("match") == pytest.approx(math.sqrt(8 / 3) / 100)
    effect = effect_of(timings, "m")
    assert effect.noise == pytest.approx(1.63299, abs=1e-4) and effect.verdict == NOISE
    assert effect_of(timings, "t").verdict == SLOWER


def test_effects_that_cancel_each_other_are_no_noise():
    times = {"none": 100.0, "m": 70.0, "t": 100.0, "mt": 130.0}
    effect = effect_of(noisy(times, (99.0, 100.0, 101.0)), "m")
    assert effect.mean == pytest.approx(0) and effect.verdict == MIXED
    assert effect_of(product_timings(CPU_CODES), "m").verdict == FASTER


def test_without_noise_nothing_is_said_about_a_mean_that_is_not_clear():
    assert effect_of(hand_timings(), "m").verdict == UNCLEAR
    single = {"none": 100.0, "m": 97.0}
    assert effect_of(noisy(single, ()), "m").verdict == UNCLEAR
    assert effect_of(noisy(single, (99.0, 101.0)), "m").verdict == FASTER
    assert effect_of(noisy(single, (96.0, 104.0)), "m").verdict == NOISE


def test_the_bars_of_a_figure_are_those_of_the_paper():
    bars = bars_of(effect_of(product_timings(), "Q"))
    assert len(bars) == 32 and [bar.textures for bar in bars[::8]] == ["", "R", "T", "RT"]
    assert [bar.label for bar in bars[:8]] == ["control", "m", "t", "n", "mt", "mn", "tn", "mtn"]
    assert bars[9].pair.off.code == "Rm" and bars[9].pair.on.code == "QRm"
    tree = bars_of(effect_of(product_timings(), "t"))
    assert [bar.textures for bar in tree[::4]] == ["", "Q", "R", "T", "QR", "QT", "RT", "QRT"]
    assert [bar.label for bar in tree[:4]] == ["control", "m", "n", "mn"]


def test_the_quantile_is_students():
    assert t_quantile(1) == pytest.approx(12.7062, abs=1e-4)
    assert t_quantile(63) == pytest.approx(1.9983, abs=1e-4)


def record(milliseconds, visits=None, registers=40):
    return records.KernelRecord(milliseconds, 1, visits, registers, 0, 0, 0.75)


def sweep_of(code):
    kernels = [
        ("run", record(2.0)),
        ("control", record(4.0)),
        ("control", record(3.0)),
        ("profile", record(500.0, visits=60_000_000)),
    ]
    runs = [
        make_run(n, code, {}, kind, n, {"match_kernel": one, "find_mems": record(1.0)})
        for n, (kind, one) in enumerate(kernels)
    ]
    runs.append(make_run(9, "Q", {}, "run", 0, {"place_mems": record(1.0, registers=61)}))
    return records.Sweep(Path("x"), make_setup([code], GPU), tuple(runs))


def of_kernel(facts, kernel):
    (one,) = (one for one in facts if one.kernel == kernel)
    return one


@pytest.mark.parametrize(("code", "limit"), [("m", 6.0e10), ("T", 4.0e10)])
def test_visits_are_compared_with_the_limit_of_the_layout(code, limit):
    one = of_kernel(kernel_facts(sweep_of(code)), "match_kernel")
    assert one.policy == Policy.from_code(code) and one.milliseconds == 3.0
    # 60 million visits in 3 ms.
    assert one.visits_per_second == pytest.approx(2.0e10) and one.limit == limit
    assert (one.registers, one.local_bytes, one.occupancy) == (40, 0, 0.75)


def test_what_was_not_counted_is_not_known():
    facts = kernel_facts(sweep_of("m"))
    assert of_kernel(facts, "find_mems").visits_per_second is None
    assert registers_of_print(facts, Policy.from_code("m")) == 40
    assert registers_of_print(facts, Policy.from_code("Q")) == 61
    assert registers_of_print(facts, Policy.from_code("T")) is None


def test_only_a_profile_gives_no_time():
    kernels = {"match_kernel": record(5.0, visits=9)}
    runs = (make_run(0, "m", {}, "profile", 0, kernels),)
    (one,) = kernel_facts(records.Sweep(Path("x"), make_setup(["m"], GPU), runs))
    assert (one.milliseconds, one.visits_per_second, one.registers) == (None, None, 40)


PRINTED_SPEEDUPS = {
    "HSILL": (1.25, 3.96),
    "LMONO": (1.20, 1.53),
    "CBRIGG": (1.20, 2.15),
    "SSUIS": (1.22, 2.80),
}
"""Match and print speedup of Table 2."""


def test_the_times_of_table_2_give_the_speedups_that_it_prints():
    assert {row.workload for row in paper.TABLE_2} == set(PRINTED_SPEEDUPS)
    for row in paper.TABLE_2:
        match, printing = PRINTED_SPEEDUPS[row.workload]
        assert row.first_match / row.second_match == pytest.approx(match, abs=0.006)
        assert row.first_print / row.second_print == pytest.approx(printing, abs=0.006)
    # "a nearly four-fold speedup in total GPU compute time"
    assert paper.TABLE_2[0].speedup == pytest.approx(3.86, abs=0.01)


def test_every_figure_has_its_finding():
    assert [figure.number for figure in paper.FIGURES] == [4, 5, 6, 7, 8, 9]
    for figure in paper.FIGURES:
        assert f"Figure {figure.number}" in figure.finding.place
    for finding in paper.FINDINGS:
        assert finding.letter in LETTERS.values() and finding.stage in ALL_STAGES
        assert (finding.least is None) == (finding.most is None)


def test_the_layouts_of_the_paper_are_codes():
    for code in (paper.FIRST_VERSION_CODE, paper.DEFAULT_CODE):
        assert Policy.from_code(code).code == code
    assert {row.name for row in paper.TABLE_1} == {row.workload for row in paper.TABLE_2}


MACHINE = records.SweepMachine("cuda", "a GPU", "sm_90", 1 << 30, 2, 2, {}, {"python": "3"}, {})
INPUT = records.ProfileInput("made", "aa", 270, 10, 5000, 900, 500, 1)


def test_codes_name_policies():
    codes = policies.every_policy()
    assert len(set(codes)) == len(codes)
    for code in codes[::17]:
        assert policies.policy_of(code).code == code
    assert codes[0] == BASIC.code == "g1crggg" and PAPERS_BEST.code == "l8hscsg"
    assert records.PROFILES.controls == {
        "cuda": BASIC.code,
        "cpu": policies.PROCESSOR_POLICIES[0].code,
    }
    assert all(
        policies.differing_policies(one)[0] == code
        for one, code in records.PROFILES.controls.items()
    )


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("", "no policy of threads"),
        ("g1crgg", "no policy of threads"),
        ("g3crggg", "no policy of threads"),
        ("g1crrgg", "only tiles"),
        ("t1crrgs", "tiles have special transitions in registers"),
        ("Vrts32", "no policy of rows"),
    ],
)
def test_other_codes_are_refused(code, words):
    with pytest.raises(OptionError, match=words):
        policies.policy_of(code)


def test_a_policy_of_the_processor_is_none_of_a_device():
    with pytest.raises(OptionError, match="of the processor"):
        policies.device_policy_of("S16")


def test_a_sweep_of_all_measures_what_tells_most():
    codes = policies.measured_policies("cuda")
    assert {row.policy for row in PAPER_ROWS} <= set(codes) and len(codes) < 260
    assert policies.measured_policies("cpu") == [one.code for one in policies.PROCESSOR_POLICIES]


def test_patterns_choose_policies():
    assert policies.choose_policies("all", "cpu") == policies.measured_policies("cpu")
    assert policies.choose_policies("Vrcs*", "cuda") == ["g1crggg", "Vrcs8", "Vrcs16", "Vrcs32"]
    assert policies.choose_policies("V00", "cpu") == ["S16", "V00"]
    with pytest.raises(OptionError, match="on the cpu matches 'g1crggg'"):
        policies.choose_policies("g1crggg", "cpu")
    assert "S16" not in policies.differing_policies("cuda")


def test_proteins_with_marks_or_without_residues_are_left_out():
    some = [[1, 2], [], [3, 27], [20, 1], [26]]
    block = block_of([np.array(one, dtype=np.uint8) for one in some])
    assert suitable(block).tolist() == [True, False, False, False, True]


def test_parts_cover_all_proteins():
    sizes = np.random.default_rng(1).integers(1, 90_000, 40)
    parts = parts_of(block_of([np.zeros(size, dtype=np.uint8) for size in sizes]))
    assert len(parts) > 3 and [n for part in parts for n in range(*part)] == list(range(40))


def made_data(nodes=70):
    found = [np.minimum(one, 19)[:150] for one in sequences_like(built(nodes), 12) if one.size]
    one = ProfileFilter(built(nodes), FilterThresholds())
    return ProfileData("made", one, block_of(found))


def test_ssv_is_the_same_in_parts_of_any_size():
    data = made_data()
    expected = data.expected("S", map).tolist()
    assert len(set(expected)) > 5
    for registers in (1, 2, 16):
        work = processor_scores(data.filter, "S", registers)
        found = np.concatenate([work(data.block, part) for part in parts_of(data.block)])
        assert data.settled("S", found).tolist() == expected


def made_run(position, code, seconds, kind="run"):
    times = {"filter": seconds, "search": 1.0}
    return records.ProfileRun(position, code, kind, 0, times, {}, {}, digest="d", again=0)


def made_sweep():
    """Local scores halve the time; hand scheduling takes a tenth, and a fifth with both."""
    runs = []
    for number, (scores, schedule, unroll) in enumerate(product("gl", "ch", "18")):
        seconds = {"g": 1.0, "l": 0.5}[scores] * {"c": 1.0, "h": 0.9}[schedule]
        seconds *= 8 / 9 if (scores, schedule) == ("l", "h") else 1
        runs.append(made_run(number, ThreadPolicy(scores, unroll, schedule).code, seconds))
    runs.append(made_run(8, BASIC.code, 1.02, "control"))
    runs.append(made_run(9, BASIC.code, 0.98, "control"))
    setup = records.ProfileSetup(
        "mummergpu 1", "2026-01-31", ("g1crggg",), 1, 2, 1, False, MACHINE, INPUT
    )
    return records.ProfileSweep(Path("nowhere"), setup, tuple(runs))


def test_effects_are_those_of_pairs_that_differ_in_one_choice():
    study = study_of(made_sweep())
    assert study.gcups("g1crggg") == pytest.approx(270 * 5000 / 1e9)
    assert study.noise == pytest.approx(0.02 * 2**0.5)
    effects = {(one.name, one.before, one.after): one for one in choice_effects(study)}
    assert set(effects) == {("scores", "g", "l"), ("unroll", "1", "8"), ("schedule", "c", "h")}
    scores = effects["scores", "g", "l"]
    assert scores.pairs == 4 and scores.greatest == pytest.approx(-50)
    assert scores.least == pytest.approx(100 * (0.4 / 0.9 - 1))
    assert effects["unroll", "1", "8"].mean == pytest.approx(0, abs=1e-9)
    both = {(one.first, one.second): one.percent for one in choice_interactions(study)}
    assert both["scores g→l", "schedule c→h"] == pytest.approx(100 * (8 / 9 - 1))


def test_records_say_what_they_are_about(tmp_path):
    sweep = made_sweep()
    (tmp_path / records.SETUP_FILE).write_text(records.setup_text(sweep.setup, records.PROFILES))
    (tmp_path / records.RUNS_FILE).write_text("".join(map(records.run_text, sweep.runs)))
    found = records.read_study(tmp_path)
    assert isinstance(found, records.ProfileSweep)
    assert (found.setup, found.runs) == (sweep.setup, sweep.runs)
    with pytest.raises(InputError, match="holds a sweep of profiles; use another folder"):
        with SweepFolder(tmp_path):
            pass


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"profiles"', '"trains"', "not the file of a sweep"),
        ('"g1crggg"', '"Tn"', "no policy of threads"),
    ],
)
def test_other_records_are_refused(old, new, words, tmp_path):
    text = records.setup_text(made_sweep().setup, records.PROFILES)
    assert old in text
    (tmp_path / records.SETUP_FILE).write_text(text.replace(old, new))
    with pytest.raises(InputError, match=words):
        records.read_study(tmp_path)
