"""The commands ``sweep`` and ``report`` with profiles and proteins."""

import re
from pathlib import Path

import numpy as np
import pytest
from helpers.profiles import built
from helpers.sweeps import make_setup
from helpers.tables import table

from mummergpu.cli.main import main
from mummergpu.hmm.proteins import SYMBOLS
from mummergpu.studies.profiles.policies import PROCESSOR_POLICIES
from mummergpu.studies.records import RUNS_FILE, SETUP_FILE, read_study, setup_text

pytest.importorskip("pyhmmer")

CODES = [one.code for one in PROCESSOR_POLICIES]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profiles")
    for name, sizes in (("one.hmm", (40,)), ("two.hmm", (20, 70))):
        with open(folder / name, "wb") as file:
            for number, nodes in enumerate(sizes):
                hmm = built(nodes).hmm.copy()
                hmm.name = f"made{number}"
                hmm.write(file)
    random = np.random.default_rng(1)
    lines = []
    for number in range(30):
        letters = [SYMBOLS[code] for code in random.integers(0, 20, random.integers(5, 90))]
        lines += [f">p{number}", "".join(letters) + ("*A" if number == 3 else "")]
    (folder / "p.faa").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(autouse=True)
def inside(files, monkeypatch):
    monkeypatch.chdir(files)


def run(words):
    return main(words.split())


def test_the_filters_of_the_processor_are_swept(tmp_path, capfd):
    out = tmp_path / "out"
    assert run(f"sweep one.hmm p.faa -C -o {out} --runs 2 --repeat-control 1") == 0
    err = capfd.readouterr().err.splitlines()
    assert "mummergpu: left out: 1 protein without residues or with marks" in err
    assert err[-5] == f"mummergpu: made0: 15 runs are new in {out}"
    assert re.fullmatch("mummergpu: made0: S.. is the fastest of 5 for SSV", err[-4])
    assert err[-3:] == [
        "mummergpu: made0: M00 is the fastest of 1 for MSV",
        "mummergpu: made0: V00 is the fastest of 1 for Viterbi",
        f"mummergpu: to see them: mummergpu report {out}",
    ]
    study = read_study(out)
    assert list(study.setup.policies) == CODES
    assert (study.setup.input.proteins, study.setup.input.left_out) == (29, 1)  # type: ignore[union-attr]
    # What was cut short is made again, and no more.
    path = out / RUNS_FILE
    path.write_bytes(path.read_bytes()[:-40])
    assert run(f"sweep one.hmm p.faa -C -o {out} --runs 2 --repeat-control 1") == 0
    assert f"made0: 1 run is new in {out}" in capfd.readouterr().err
    assert run(f"report {out}") == 0
    text = (out / "report.html").read_text()
    assert "the fastest of 5 policies is S" in text and "made0 (40 nodes)" in text
    assert "runs are missing" not in text


def test_each_profile_has_a_folder(tmp_path):
    short = "--runs 1 --repeat-control 0 --policies V00 -q"
    assert run(f"sweep two.hmm p.faa -C -o {tmp_path} {short}") == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["made0", "made1"]
    assert run(f"report {tmp_path} -q") == 0
    text = (tmp_path / "report.html").read_text()
    assert "made0 (20 nodes)" in text and "made1 (70 nodes)" in text


@pytest.mark.parametrize(("words", "message"), table(__file__, "errors"))
def test_errors_are_told(words, message, capfd):
    assert run(words) in (1, 2)
    assert message in capfd.readouterr().err
    assert not Path("x").exists()


def test_a_report_shows_one_subject(tmp_path, capfd):
    short = "--runs 1 --repeat-control 0 -q"
    assert run(f"sweep one.hmm p.faa -C -o {tmp_path / 'a'} --policies V00 {short}") == 0
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / SETUP_FILE).write_text(setup_text(make_setup(["none"])))
    assert run(f"report {tmp_path / 'a'} {tmp_path / 'b'} -o {tmp_path / 'c'}") == 1
    assert "a report shows one subject" in capfd.readouterr().err
