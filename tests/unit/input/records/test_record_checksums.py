"""The MD5 of records, as samtools finds them."""

from __future__ import annotations

import gzip
import hashlib
import random
from pathlib import Path

import pytest
from helpers.alignment_tools import samtools
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.input import reference as module
from mummergpu.input.reference import read_reference, record_checksums


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.tuples(st.text("ab >", max_size=9), st.text("acgtNRYkm", min_size=1)), min_size=1),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 70),
    st.integers(1, 40),
)
def test_letters_count_and_lines_do_not(
    tmp_path: Path, records: list[tuple[str, str]], line_end: str, width: int, chunk: int
) -> None:
    text = ""
    for name, bases in records:
        lines = [bases[at : at + width] for at in range(0, len(bases), width)]
        text += f">x{name}{line_end}" + "".join(line + line_end for line in lines)
    path = tmp_path / "x.fa"
    path.write_bytes(text.encode())
    original = module._CHUNK_BYTES
    module._CHUNK_BYTES = chunk  # type: ignore[misc]
    try:
        found = record_checksums(str(path))
    finally:
        module._CHUNK_BYTES = original  # type: ignore[misc]
    assert list(found) == [hashlib.md5(bases.upper().encode()).hexdigest() for _, bases in records]


@pytest.mark.parametrize("compressed", [False, True])
def test_checksums_are_those_of_samtools(tmp_path: Path, compressed: bool) -> None:
    made = random.Random(2)
    text = "".join(
        f">r{number} text\n" + "\n".join("".join(made.choices("ACGTNacgtRYK", k=60)) for _ in "ab")
        + "\n"
        for number in range(30)
    )  # fmt: skip
    plain = tmp_path / "x.fa"
    plain.write_text(text)
    lines = samtools("dict", plain).decode().splitlines()[1:]
    path = plain
    if compressed:
        path = tmp_path / "x.fa.gz"
        path.write_bytes(gzip.compress(text.encode()))
    found = record_checksums(str(path))
    assert [f"M5:{one}" for one in found] == [line.split("\t")[3] for line in lines]
    assert len(found) == len(read_reference(str(path)).names)


def test_fastq_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.fq").write_text("@a\nACGT\n+\nIIII\n")
    with pytest.raises(InputError, match="must be FASTA"):
        record_checksums(str(tmp_path / "x.fq"))
