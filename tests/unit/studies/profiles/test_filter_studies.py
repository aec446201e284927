"""Studies of profile filters: their policies, the data, what follows from runs."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from helpers.profiles import block_of, built, sequences_like

from mummergpu.errors import InputError, OptionError
from mummergpu.hmm.filter_variants import BASIC, PAPERS_BEST, ThreadPolicy
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.options import FilterThresholds
from mummergpu.studies.profiles.data import ProfileData, parts_of, processor_scores, suitable
from mummergpu.studies.profiles.policies import (
    PROCESSOR_POLICIES,
    choose_policies,
    device_policy_of,
    differing_policies,
    every_policy,
    measured_policies,
    policy_of,
)
from mummergpu.studies.records import (
    PROFILES,
    RUNS_FILE,
    SETUP_FILE,
    ProfileInput,
    ProfileRun,
    ProfileSetup,
    ProfileSweep,
    SweepMachine,
    read_study,
    run_text,
    setup_text,
)
from mummergpu.studies.report.profile_sections import (
    PAPER_ROWS,
    choice_effects,
    choice_interactions,
    study_of,
)
from mummergpu.studies.sweeping import SweepFolder

MACHINE = SweepMachine("cuda", "a GPU", "sm_90", 1 << 30, 2, 2, {}, {"python": "3"}, {})
INPUT = ProfileInput("made", "aa", 270, 10, 5000, 900, 500, 1)


def test_codes_name_policies():
    codes = every_policy()
    assert len(set(codes)) == len(codes)
    for code in codes[::17]:
        assert policy_of(code).code == code
    assert codes[0] == BASIC.code == "g1crggg"
    assert PAPERS_BEST.code == "l8hscsg"
    assert PROFILES.controls == {"cuda": BASIC.code, "cpu": PROCESSOR_POLICIES[0].code}
    assert all(differing_policies(one)[0] == code for one, code in PROFILES.controls.items())


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
        policy_of(code)


def test_a_policy_of_the_processor_is_none_of_a_device():
    with pytest.raises(OptionError, match="of the processor"):
        device_policy_of("S16")


def test_a_sweep_of_all_measures_what_tells_most():
    codes = measured_policies("cuda")
    assert {row.policy for row in PAPER_ROWS} <= set(codes)
    assert len(codes) < 260
    assert measured_policies("cpu") == [one.code for one in PROCESSOR_POLICIES]


def test_patterns_choose_policies():
    assert choose_policies("all", "cpu") == measured_policies("cpu")
    assert choose_policies("Vrcs*", "cuda") == ["g1crggg", "Vrcs8", "Vrcs16", "Vrcs32"]
    assert choose_policies("V00", "cpu") == ["S16", "V00"]
    with pytest.raises(OptionError, match="on the cpu matches 'g1crggg'"):
        choose_policies("g1crggg", "cpu")
    assert "S16" not in differing_policies("cuda")


def test_proteins_with_marks_or_without_residues_are_left_out():
    some = [[1, 2], [], [3, 27], [20, 1], [26]]
    block = block_of([np.array(one, dtype=np.uint8) for one in some])
    assert suitable(block).tolist() == [True, False, False, False, True]


def test_parts_cover_all_proteins():
    sizes = np.random.default_rng(1).integers(1, 90_000, 40)
    block = block_of([np.zeros(size, dtype=np.uint8) for size in sizes])
    parts = parts_of(block)
    assert len(parts) > 3
    assert [n for part in parts for n in range(*part)] == list(range(40))


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
    return ProfileRun(
        position=position,
        policy=code,
        kind=kind,
        repeat=0,
        seconds={"filter": seconds, "search": 1.0},
        kernels={},
        bytes={},
        digest="d",
        again=0,
    )


def made_sweep():
    """Local scores halve the time; hand scheduling takes a tenth, and a fifth with both."""
    runs = []
    for number, (scores, schedule, unroll) in enumerate(product("gl", "ch", "18")):
        seconds = {"g": 1.0, "l": 0.5}[scores] * {"c": 1.0, "h": 0.9}[schedule]
        seconds *= 8 / 9 if (scores, schedule) == ("l", "h") else 1
        code = ThreadPolicy(scores, unroll, schedule).code
        runs.append(made_run(number, code, seconds))
    runs.append(made_run(8, BASIC.code, 1.02, "control"))
    runs.append(made_run(9, BASIC.code, 0.98, "control"))
    setup = ProfileSetup("mummergpu 1", "2026-01-31", ("g1crggg",), 1, 2, 1, False, MACHINE, INPUT)
    return ProfileSweep(Path("nowhere"), setup, tuple(runs))


def test_effects_are_those_of_pairs_that_differ_in_one_choice():
    study = study_of(made_sweep())
    assert study.gcups("g1crggg") == pytest.approx(270 * 5000 / 1e9)
    assert study.noise == pytest.approx(0.02 * 2**0.5)
    effects = {(one.name, one.before, one.after): one for one in choice_effects(study)}
    assert set(effects) == {("scores", "g", "l"), ("unroll", "1", "8"), ("schedule", "c", "h")}
    scores = effects["scores", "g", "l"]
    assert scores.pairs == 4
    assert scores.greatest == pytest.approx(-50)
    assert scores.least == pytest.approx(100 * (0.4 / 0.9 - 1))
    assert effects["unroll", "1", "8"].mean == pytest.approx(0, abs=1e-9)
    both = {(one.first, one.second): one.percent for one in choice_interactions(study)}
    assert both["scores g→l", "schedule c→h"] == pytest.approx(100 * (8 / 9 - 1))


def test_records_say_what_they_are_about(tmp_path):
    sweep = made_sweep()
    (tmp_path / SETUP_FILE).write_text(setup_text(sweep.setup, PROFILES))
    (tmp_path / RUNS_FILE).write_text("".join(map(run_text, sweep.runs)))
    found = read_study(tmp_path)
    assert isinstance(found, ProfileSweep)
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
    text = setup_text(made_sweep().setup, PROFILES)
    assert old in text
    (tmp_path / SETUP_FILE).write_text(text.replace(old, new))
    with pytest.raises(InputError, match=words):
        read_study(tmp_path)
