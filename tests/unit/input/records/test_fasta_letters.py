"""Letters other than A, C, G and T in a FASTA file."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from helpers.loops import each

from mummergpu.input.records import fasta_letters
from mummergpu.input.records.fasta_letters import other_letters


def found(path: Path, text: bytes) -> frozenset[str] | None:
    path.write_bytes(text)
    return other_letters(str(path))


@each(
    "text, letters",
    [
        (b">r NUX\nACGT\nacgt\n", ""),
        (b">r\r\nAC GT\t\r\n\r\n>s", ""),
        (b"\n\n>r\nACGT", ""),
        (b">r\nACNNGT\nry\n", "NRY"),
        (b">r\nAC\n>sX\nGU", "U"),
        (b">r\nACGT>s\nACGT\n", ">S"),
        (b">\nAC*-\xff\x00\n", "*-\xff\x00"),
        (b">r>N\nAC\n", ""),
    ],
)
def test_letters(text: bytes, letters: str, tmp_path: Path) -> None:
    assert found(tmp_path / "r.fa", text) == frozenset(letters.upper())


@each("text", [b"", b"ACGT\n", b"@r\nACGT\n+\nIIII\n", b"\x1f\x8b\x08\x00>r\n"])
def test_files_of_another_kind(text: bytes, tmp_path: Path) -> None:
    assert found(tmp_path / "r.fa", text) is None


def test_files_that_cannot_be_read_twice(tmp_path: Path) -> None:
    assert other_letters(str(tmp_path / "missing")) is None
    assert other_letters(str(tmp_path)) is None
    assert other_letters("a\0b") is None
    os.mkfifo(tmp_path / "pipe")
    assert other_letters(str(tmp_path / "pipe")) is None


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_pieces_do_not_matter(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(size)
    monkeypatch.setattr(fasta_letters, "CHUNK_BYTES", size)
    for _ in range(300):
        text = ">" + "".join(chance.choices("ACGTN>x\n\n", k=chance.randrange(40)))
        lines = text.split("\n")
        expected = {
            letter
            for line in lines
            if not line.startswith(">")
            for letter in line.upper()
            if letter not in "ACGT"
        }
        assert found(tmp_path / "r.fa", text.encode()) == expected, text
