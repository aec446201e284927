"""The files of results: each is in the table of the README, and tells how it was made."""

import json
import re
import subprocess
from pathlib import Path

import measure
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"
FILES = sorted(path.name for path in (FOLDER / "results").glob("*.json"))


def test_the_readme_names_every_file_once():
    text = (FOLDER / "README.md").read_text().partition("## Which table")[2]
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert sorted(re.findall(r"`([\w.-]+\.json)`", "\n".join(table))) == FILES
    notes = {line.split("|")[-2].strip() for line in table[2:]} - {""}
    assert notes and all(f"\n{number}. " in text for number in notes)
    programs = set(re.findall(r"`(\w+\.py)", "\n".join(table)))
    assert programs and all((FOLDER / program).exists() for program in programs)


@pytest.mark.parametrize("name", FILES)
def test_a_file_tells_its_date_and_command(name):
    found = json.loads((FOLDER / "results" / name).read_text())
    for one in found if isinstance(found, list) else [found]:
        assert "date" in one
        assert "command" in json.dumps(one) or "mummergpu" in json.dumps(one)


@pytest.mark.parametrize("name", FILES)
def test_a_file_names_no_folder_of_a_machine(name):
    """What programs write has the command line as it was given: files go by their names in it."""
    text = (FOLDER / "results" / name).read_text()
    assert not re.findall(r"[ '\"=](/(?!dev/|proc/|sys/)\w+/[^ '\"]*)", text)


def test_programs_tell_the_commit():
    """All that write files of results; others print lines."""
    texts = {path.name: path.read_text() for path in FOLDER.glob("*.py")}
    writing = {name for name, text in texts.items() if "json.dump" in text} - {"measure.py"}
    telling = {name for name in writing if re.search(r"provenance\(\)|save\(", texts[name])}
    assert writing == telling != set()


def test_what_programs_write_tells_how_it_was_made(tmp_path, monkeypatch):
    here = tmp_path / "benchmarks"
    here.mkdir()
    monkeypatch.setattr(measure, "RESULTS", here / "results")
    monkeypatch.setattr("sys.argv", ["some.py", "--name", "a b"])
    git = ["git", "-C", str(here), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "some"], check=True)
    (here / "code.py").touch()
    subprocess.run([*git, "add", "code.py"], check=True)
    found = json.loads(measure.save("x.json", {"seconds": 1}).read_text())
    assert re.fullmatch("[0-9a-f]{7,}-dirty", found["commit"])
    assert found["command"] == "python some.py --name 'a b'"
    assert found["seconds"] == 1 and {"date", "machine"} <= set(found)
