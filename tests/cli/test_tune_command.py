"""The command ``tune``, and the policy that runs with trees take."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from helpers.sequences import random_bases

from mummergpu.cli.main import main
from mummergpu.cli.tuned_policies import choose_for, tuned_file

WORDS = ["tune", "-C", "-q", "r.fa", "q.fa", "-l", "12", "-t", "2"]


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a reference and reads, and a configuration without records."""
    some = random.Random(3)
    genome = random_bases(some, 2000)
    reads = [genome[start : start + 60] for start in range(0, 1900, 50)]
    (tmp_path / "r.fa").write_text(f">r\n{genome}\n")
    (tmp_path / "q.fa").write_text("".join(f">{n}\n{read}\n" for n, read in enumerate(reads)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    choose_for.cache_clear()
    return tmp_path


def records() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(tuned_file().read_text())["policies"]
    return found


def set_policy(code: str) -> None:
    """Let the user's record name a policy."""
    kept = records()
    kept[0]["policy"] = code
    tuned_file().write_text(json.dumps({"policies": kept}))
    choose_for.cache_clear()


def policy_of(words: str, capfd: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Search with -v; return the policy of the trees, and the line that explains it."""
    capfd.readouterr()
    assert main(["-C", "-v", "-o", "out", "--stats", "stats", *words.split()]) == 0
    lines = [line for line in capfd.readouterr().err.splitlines() if ": policy " in line]
    settings = json.loads(Path("stats").read_text())["settings"]
    return settings.get("policy", ""), "".join(lines)


def test_what_is_best_is_kept_and_used(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(WORDS) == 0
    told = capfd.readouterr()
    assert told.err == ""
    (record,) = records()
    assert told.out.startswith(f"r.fa: policy {record['policy']}, ")
    assert "certainty" in told.out
    facts = (record["reference_bases"], record["query_length"], record["minimum_length"])
    assert facts == (2000, 60, 12)
    set_policy("rn")
    policy, line = policy_of("--search tree r.fa q.fa", capfd)
    assert policy == "rn"
    assert line == f"mummergpu: policy rn: as tuned on {record['date']}"
    assert policy_of("--policy auto r.fa q.fa", capfd)[0] == "rn"
    assert policy_of("--search tree --merged-tree r.fa q.fa", capfd)[0] == "mrn"
    assert policy_of("--policy t r.fa q.fa", capfd) == ("t", "")
    assert policy_of("r.fa q.fa", capfd) == ("", "")


def test_an_index_keeps_the_policy_that_it_was_built_with(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(WORDS) == 0
    set_policy("rn")
    assert main(["index", "r.fa", "-o", "r.mgi", "-q", "--search", "tree"]) == 0
    set_policy("t")
    expected = ("rn", "mummergpu: policy rn: that of the index")
    assert policy_of("r.mgi q.fa", capfd) == expected
    assert policy_of("--policy auto r.mgi q.fa", capfd) == expected


def test_without_records_the_default_is_taken(capfd: pytest.CaptureFixture[str]) -> None:
    expected = ("m", "mummergpu: policy m: the default")
    assert policy_of("--search tree r.fa q.fa", capfd) == expected
    assert main([*WORDS, "--dry-run"]) == 0
    assert not tuned_file().exists()


def test_tuning_again_takes_the_place_of_the_first_time() -> None:
    assert main(WORDS) == main(WORDS) == 0
    assert len(records()) == 1
    assert main([*WORDS[:-3], "20"]) == 0
    assert [record["minimum_length"] for record in records()] == [12, 20]


@pytest.mark.parametrize("content", ["", "{}", "no"])
def test_a_damaged_file_is_one_line(content: str, capfd: pytest.CaptureFixture[str]) -> None:
    tuned_file().parent.mkdir(parents=True)
    tuned_file().write_text(content)
    capfd.readouterr()
    for words in (["-C", "-q", "--search", "tree", "r.fa", "q.fa"], WORDS):
        choose_for.cache_clear()
        assert main(words) == 1
        err = capfd.readouterr().err
        assert err.startswith(f"mummergpu: error: {tuned_file()}: is not what 'mummergpu tune'")
        assert err.count("\n") == 1
    # A search that has no trees does not read it.
    assert main(["-C", "-q", "-o", "out", "r.fa", "q.fa"]) == 0


def test_a_configuration_that_cannot_be_written_is_one_line(
    inside: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (inside / "config").write_text("")
    capfd.readouterr()
    assert main(WORDS) == 1
    err = capfd.readouterr().err
    assert err.startswith(f"mummergpu: error: {inside}/config/mummergpu")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("r.fa", "Missing argument 'QUERY...'"),
        ("r.fa q.fa --workload LMONO", "files and --workload exclude each other"),
        ("r.fa q.fa --scale 0.5", "--scale goes with --workload"),
        ("--workload LMONO --workload LMONO", "a workload is named twice"),
        ("--workload NONE", "NONE"),
    ],
)
def test_unclear_input_is_one_line(
    words: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert main(["tune", "-C", "-q", *words.split()]) == 2
    err = capfd.readouterr().err
    assert err.startswith("mummergpu: error: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("devices", ["0,1", "all"])
def test_one_device_is_tuned_at_a_time(devices: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "r.fa", "q.fa", "--device", devices]) == 2
    told = capfd.readouterr().err
    assert f"'--device': '{devices}' names several GPUs, and a process uses one" in told
