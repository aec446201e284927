"""The files of results: each is in the table of the README, and tells how it was made."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"
FILES = sorted(path.name for path in (FOLDER / "results").glob("*.json"))


def test_the_readme_names_every_file_once() -> None:
    text = (FOLDER / "README.md").read_text().partition("## Which table")[2]
    table = [line for line in text.splitlines() if line.startswith("|")]
    named = re.findall(r"`([\w.-]+\.json)`", "\n".join(table))
    assert sorted(named) == FILES
    notes = {line.split("|")[-2].strip() for line in table[2:]} - {""}
    assert notes and all(f"\n{number}. " in text for number in notes)
    programs = set(re.findall(r"`(\w+\.py)", "\n".join(table)))
    assert programs and all((FOLDER / program).exists() for program in programs)


@pytest.mark.parametrize("name", FILES)
def test_a_file_tells_its_date_and_command(name: str) -> None:
    found = json.loads((FOLDER / "results" / name).read_text())
    for one in found if isinstance(found, list) else [found]:
        assert "date" in one
        assert "command" in json.dumps(one) or "mummergpu" in json.dumps(one)
