"""The line on which a record begins."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from helpers.loops import each

from mummergpu.input.records.record_reader import line_of_record

FASTA = b"\n>a\nAC\n\nGT\n>b\n>c\nA"
FASTQ = b"@a\nAC\nGT\n+a\n@@\n@@\n\n@b\n\n+\n\n@c\nA\n+\n@"


@each("text, lines", [(FASTA, [2, 6, 7, None]), (FASTQ, [1, 8, 12, None])])
def test_lines(text: bytes, lines: list[int | None], tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (text, gzip.compress(text)):
        path.write_bytes(content)
        assert [line_of_record(str(path), number) for number in range(4)] == lines


def test_no_lines(tmp_path: Path) -> None:
    assert line_of_record("-", 0) is None
    assert line_of_record(str(tmp_path / "missing"), 0) is None
    (tmp_path / "a.sam").write_text("@HD\tVN:1.6\nr\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI\n")
    assert line_of_record(str(tmp_path / "a.sam"), 0) is None
    os.mkfifo(tmp_path / "pipe")
    assert line_of_record(str(tmp_path / "pipe"), 0) is None
