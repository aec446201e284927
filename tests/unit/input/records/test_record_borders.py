"""Where a record begins, found from its lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from mummergpu.input.records import record_borders
from mummergpu.input.records.record_borders import find_record


def found(path: Path, at: int, is_fastq: bool) -> int | None:
    with path.open("rb") as file:
        return find_record(file.fileno(), at, path.stat().st_size, is_fastq)


def test_a_record_of_fastq_is_found_by_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "A" * 50
    text = f"@a\nAC\n+\n@@\n@b\nACGT\n+\n@@@@\n@c\n{long}\n+\n{long}\n@d\nA\n+\n@\n"
    second, third, last = (text.index(name) for name in ("@b", "@c", "@d"))
    path = tmp_path / "r.fq"
    path.write_text(text)
    monkeypatch.setattr(record_borders, "WINDOWS", (10, 80))
    assert {found(path, at, True) for at in range(1, second + 1)} == {second}
    assert {found(path, at, True) for at in range(second + 1, third + 1)} == {third}
    assert {found(path, at, True) for at in range(third + 60, last + 1)} == {last}
    assert {found(path, at, True) for at in range(last + 1, len(text) + 9)} == {len(text)}
    monkeypatch.setattr(record_borders, "WINDOWS", (10, 40))
    assert found(path, 1, True) == second
    assert found(path, third, True) is None
    assert found(path, third + 1, True) is None


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_record_of_fasta_begins_with_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    lines = [">a>b >c", "AC", ">", ">d @e", "", " >", *["ACGTACGT"] * 10, ">f", "A"]
    text = end.join(lines)
    begins = [text.index(f"{end}{name}") + len(end) for name in (f">{end}", ">d", ">f")]
    path = tmp_path / "r.fa"
    path.write_text(text, newline="")
    monkeypatch.setattr(record_borders, "WINDOWS", (10, 200))
    at = 1
    for begin in begins:
        assert {found(path, at, False) for at in range(at, begin + 1)} == {begin}
        at = begin + 1
    assert {found(path, at, False) for at in range(at, len(text) + 9)} == {len(text)}
    monkeypatch.setattr(record_borders, "WINDOWS", (10, 60))
    assert found(path, begins[0], False) == begins[0]
    assert found(path, begins[1] + 1, False) is None
