"""Profiles as programs of the paper's shape, and back."""

import json
import math

import numpy as np
import pytest
from helpers.profiles import built

from mummergpu.cli.main import main
from mummergpu.hmm.language.parser import parse_program

pyhmmer = pytest.importorskip("pyhmmer")


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    """A file with two profiles, whose names the language does not have."""
    path = tmp_path_factory.mktemp("profiles") / "p.hmm"
    with path.open("wb") as file:
        for name, nodes in (("1st-one", 12), ("Two", 5)):
            hmm = built(nodes).hmm.copy()
            hmm.name = name
            hmm.write(file)
    return path


def test_a_profile_becomes_a_program_and_a_profile_again(profiles, tmp_path, capfd):
    program, back = tmp_path / "p.program", tmp_path / "back.hmm"
    assert main(["hmm", "-q", "--from-profile", str(profiles), "-o", str(program)]) == 0
    models = parse_program(program.read_text()).models
    assert list(models) == ["null", "profile_1st_one", "Two"]
    for model in models.values():
        assert all(abs(row.total - 1) < 1e-12 for row in model.row_sums())
    assert main(["hmm", "-q", "--to-profile", str(program), "-o", str(back)]) == 0
    with pyhmmer.plan7.HMMFile(back) as found, pyhmmer.plan7.HMMFile(profiles) as expected:
        for one, other in zip(found, expected, strict=True):
            assert one.M == other.M and one.consensus.lower() == other.consensus.lower()
            for name in ("match_emissions", "insert_emissions", "transition_probabilities"):
                rows = np.array(getattr(one, name)), np.array(getattr(other, name))
                np.testing.assert_allclose(rows[0][1:], rows[1][1:], rtol=3e-5, atol=1e-7)


def test_scores_of_a_converted_profile(profiles, tmp_path, capfd):
    program, proteins = tmp_path / "p.program", tmp_path / "p.fa"
    assert main(["hmm", "--from-profile", str(profiles), "-o", str(program)]) == 0
    profile, residues = built(5), "ACDEFGHIKLMNPQRSTVWY"
    codes = profile.matches.argmax(axis=1)
    proteins.write_text(f">a\n{''.join(residues[code] for code in codes)}\n")
    assert main(["hmm", "-q", "--json", str(program), str(proteins)]) == 0
    found = json.loads(capfd.readouterr().out)["viterbi(new Two()).score"]
    moves = profile.transitions[:, 0].astype(float)
    chances = profile.matches[np.arange(5), codes]
    score = sum(math.log(one) for one in [*moves, *chances]) + 2 * math.log(2 / 352)
    assert found == pytest.approx(score, abs=1e-4)


def test_what_does_not_convert(profiles, tmp_path, capfd):
    program, text = tmp_path / "a.program", tmp_path / "p.program"
    assert main(["hmm", "-q", "--from-profile", str(profiles), "-o", str(text)]) == 0
    whole, small = text.read_text(), "hmm m { alphabet [A]; startstate s; "
    ways = "\n".join(line for line in whole.splitlines() if "M[2] ->" not in line)
    silent = whole.replace("I[2] emits insert[2];", "I[2];")
    assert ways != whole != silent
    for changed, message in (
        ("hmm null { alphabet [A]; startstate s; }", "no model of a profile"),
        (f"{small} state a emits x; emission x = [1]; s -> a 1; }}", "no profile of proteins"),
        *((ways, "node 2 has no way on"), (silent, "no state 'I[2]' that emits")),
    ):
        program.write_text(changed)
        assert main(["hmm", "--to-profile", str(program), "-o", str(tmp_path / "o.hmm")]) == 1
        assert message in capfd.readouterr().err
    profile = str(profiles)
    assert main(["hmm", "--from-profile", profile, "--to-profile", profile]) == 2
    assert main(["hmm", "--from-profile", profile, "x.hmm"]) == 2
    assert main(["hmm", "x.hmm"]) == 2
    assert "Missing argument 'SEQUENCES...'" in capfd.readouterr().err
