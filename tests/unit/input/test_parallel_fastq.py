"""FASTQ that threads parse in pieces, against the parser that reads it from beginning to end."""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers.naive import Pairs, pairs_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.input import parallel_fastq
from mummergpu.input.file_part import FilePart
from mummergpu.input.parallel_fastq import find_record, split
from mummergpu.input.queries import QueryBlock, QueryReader, QueryRules
from mummergpu.input.reading_threads import ReadingThreads
from mummergpu.input.records import Records
from mummergpu.sequence.codes import BREAK, MARGIN

PIECE = 60
BLOCK = 16
CHUNK = 13


@pytest.fixture(scope="module")
def threads() -> Iterator[ReadingThreads]:
    with ReadingThreads(4) as pool:
        yield pool


class Parts:
    """Where the parts of a file begin and end that are read."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int | None]] = []

    def __call__(self, number: int, path: str, begin: int, end: int | None) -> FilePart:
        self.ranges.append((begin, end))
        return FilePart(number, path, begin, end)

    @property
    def rest(self) -> int:
        """Where the part begins that one parser reads."""
        (begin,) = (begin for begin, end in self.ranges if end is None)
        return begin


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    """Small pieces of small files, and where they are."""
    watched = Parts()
    monkeypatch.setattr(parallel_fastq, "LEAST_BYTES", 1)
    monkeypatch.setattr(parallel_fastq, "SAMPLE_BYTES", 30)
    monkeypatch.setattr(parallel_fastq, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(parallel_fastq, "WINDOWS", (40, 1000))
    monkeypatch.setattr(parallel_fastq, "FilePart", watched)
    return watched


def read(
    path: Path,
    threads: ReadingThreads | None,
    block_size: int = BLOCK,
    chunk_size: int = CHUNK,
    any_letters: bool = False,
) -> Pairs | str:
    """Return the records of a file, or what is wrong with it."""
    rules = QueryRules(any_letters)
    try:
        with QueryReader([str(path)], block_size, chunk_size, rules, threads) as reader:
            blocks = list(reader)
    except InputError as error:
        return str(error)
    assert [block.index for block in blocks] == list(range(len(blocks)))
    assert reader.bytes_read == path.stat().st_size
    return pairs_of(blocks)


def record(name: str, bases: str, quality: str | None = None, plus: str = "") -> str:
    return f"@{name}\n{bases}\n+{plus}\n{'@' * len(bases) if quality is None else quality}\n"


def usual_text(count: int, longest: int = 30, seed: int = 1) -> str:
    """Return four lines for each record; many lines begin with '@' or '+'."""
    random = np.random.default_rng(seed)
    text = ""
    for number in range(count):
        length = int(random.integers(1, longest))
        bases = "".join(random.choice(list("ACGTNacgtu-"), length))
        quality = "".join(random.choice(list("@+I!~>"), length))
        name = f"r{number}"
        text += record(f"{name} x", bases, quality, name if number % 3 == 0 else "")
    return text


bases = st.text("ACGTNacgtu", min_size=0, max_size=25)
records = st.builds(
    lambda name, bases, quality, repeated: record(
        name, bases, (quality * len(bases))[: len(bases)], name if repeated else ""
    ),
    st.sampled_from(["", "a", "read/1", "n" * 30]),
    bases,
    st.text("@+I!~", min_size=1, max_size=5),
    st.booleans(),
)
oddities = st.sampled_from(
    [
        "\n",
        "\r\n",
        "\r",
        "@m\nACGT\nAC\n+\nIIII\nII\n",
        "@m\nACGT\nAC\n+m\n@@@@\n@@\n",
        "@e\n\n+\n\n",
        "@e\n+\n",
        "@short\nACGT\n+\nIII\n",
        "@long\nACGT\n+\nIIIII\n",
        "@other\nACGT\n+another\nIIII\n",
        "@bad\nAC1T\n+\nIIII\n",
        "@blank\nACGT\n\n+\nIIII\n",
        "@protein\nEFILPQEFIL\n+\nIIIIIIIIII\n",
        "@space\nACGT\n+\nII I\n",
        "@cut\nACG",
        ">fasta\nACGT\n",
        f"@large\n{'ACGTTGCA' * 60}\n+\n{'@' * 480}\n",
    ]
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    text=st.lists(st.one_of(records, records, records, oddities), min_size=1, max_size=14),
    crlf=st.booleans(),
    cut=st.sampled_from([0, 0, 0, 1, 2, 7]),
    piece=st.sampled_from([1, 20, 60, 1000]),
    block=st.sampled_from([1, 9, 40, 1000]),
    chunk=st.sampled_from([2, 13, 64]),
    any_letters=st.booleans(),
)
def test_pieces_give_what_the_whole_text_gives(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    threads: ReadingThreads,
    parts: Parts,
    text: list[str],
    crlf: bool,
    cut: int,
    piece: int,
    block: int,
    chunk: int,
    any_letters: bool,
) -> None:
    whole = "@first\nACGT\n+\nIIII\n" + "".join(text)
    whole = whole[: len(whole) - cut]
    if crlf:
        whole = whole.replace("\r\n", "\n").replace("\n", "\r\n")
    path = tmp_path / "r.fq"
    path.write_bytes(whole.encode())
    monkeypatch.setattr(parallel_fastq, "PIECE_BYTES", piece)
    found = read(path, threads, block, chunk, any_letters)
    assert found == read(path, None, block, chunk, any_letters)


@pytest.mark.parametrize("piece", [40, 100, 1000, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("is_closed", [True, False])
def test_usual_text_needs_the_pieces_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    threads: ReadingThreads,
    parts: Parts,
    piece: int,
    end: str,
    is_closed: bool,
) -> None:
    text = usual_text(200, seed=piece)
    path = tmp_path / "r.fq"
    path.write_text(text if is_closed else text.removesuffix("\n"), newline=end)
    monkeypatch.setattr(parallel_fastq, "PIECE_BYTES", piece)
    assert read(path, threads) == read(path, None)
    assert parts.rest == path.stat().st_size
    pieces = len(parts.ranges) - 2
    assert pieces == 1 if piece == 1 << 20 else pieces > path.stat().st_size // (3 * piece)


def test_a_byte_order_mark_is_skipped(
    tmp_path: Path, threads: ReadingThreads, parts: Parts
) -> None:
    path = tmp_path / "r.fq"
    path.write_text("\ufeff\n\n" + usual_text(30), encoding="utf-8")
    assert read(path, threads) == read(path, None)
    assert parts.rest == path.stat().st_size


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        ("@x\nACGT\n+\nIII\n", "404: quality has 3 characters, sequence has 4 (record 'x')"),
        ("@x\nAC\x00T\n+\nIIII\n", "402: byte 0x00 is not a sequence character (record 'x')"),
        ("x\n", "401: a record begins with 'x', not with '@'"),
        ("@x\nEFILP\n+\nIIIII\n", "402: 5 of 5 letters are neither bases nor IUPAC codes"),
        ("\r@x\nACGT\n+\nIIII\n", "401: carriage return without line feed"),
    ],
)
def test_faults_in_later_pieces_are_told_as_ever(
    tmp_path: Path, threads: ReadingThreads, parts: Parts, odd: str, message: str
) -> None:
    before, after = usual_text(100), usual_text(100, seed=2)
    path = tmp_path / "r.fq"
    path.write_text(before + odd + after, newline="")
    found = read(path, threads)
    assert found == read(path, None)
    assert isinstance(found, str) and found.startswith(f"{path}:{message}")
    assert len(before) - 3 * PIECE < parts.rest <= len(before)


def test_lines_that_are_wrapped_are_read_from_there_on(
    tmp_path: Path, threads: ReadingThreads, parts: Parts
) -> None:
    before = usual_text(50)
    wrapped = "@w\nACGT\nACGT\nAC\n+\n@III\n@III\n@I\n" * 60
    path = tmp_path / "r.fq"
    path.write_text(before + wrapped + usual_text(50, seed=2))
    assert read(path, threads) == read(path, None)
    assert len(before) - 3 * PIECE < parts.rest <= len(before) + len(wrapped)


@pytest.mark.parametrize("length", [100, 150, 2000])
def test_reads_may_be_longer_than_a_piece(
    tmp_path: Path, threads: ReadingThreads, parts: Parts, length: int
) -> None:
    path = tmp_path / "r.fq"
    long = record("long", "ACGTTGCAAC" * (length // 10))
    path.write_text(usual_text(20) + long + usual_text(20) + 2 * long + usual_text(20))
    assert read(path, threads) == read(path, None)
    # In a window there is no beginning of a record that is much longer.
    assert (parts.rest == path.stat().st_size) == (length < 200)


def test_short_reads_and_long_names_do_not_make_large_blocks(
    tmp_path: Path, threads: ReadingThreads, parts: Parts
) -> None:
    path = tmp_path / "r.fq"
    text = record("r", "ACGT" * 10) * 3 + record("r", "A") * 600 + record("n" * 200, "AC") * 50
    path.write_text(text)
    with QueryReader([str(path)], 80, 4096, threads=threads) as reader:
        blocks = list(reader)
    assert pairs_of(blocks) == read(path, None)
    assert parts.rest == len(text)
    assert max(block.base_count for block in blocks) < 160
    assert max(block.query_count for block in blocks) <= 11
    assert max(block.names.size for block in blocks) < 4 * 80 + 200


def test_a_name_that_outgrows_the_memory_is_read_all_the_same(
    tmp_path: Path, threads: ReadingThreads, parts: Parts
) -> None:
    path = tmp_path / "r.fq"
    long = record("n" * 350, "ACGT")
    path.write_text(usual_text(50) + long + usual_text(50))
    assert read(path, threads) == read(path, None)
    assert parts.rest < path.stat().st_size


def test_blocks_are_about_equally_large_and_do_not_depend_on_threads(
    tmp_path: Path, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.fq"
    path.write_text(record("r", "ACGTTGCAAC") * 3000)
    monkeypatch.setattr(parallel_fastq, "PIECE_BYTES", 4000)
    found = []
    for count in (3, 8):
        with (
            ReadingThreads(count) as threads,
            QueryReader([str(path)], 500, 100, threads=threads) as reader,
        ):
            found.append([block.offsets.tolist() for block in reader])
    assert found[0] == found[1]
    sizes = [offsets[-1] for offsets in found[0]]
    assert 400 < min(sizes) <= max(sizes) < 600


def blocks_and_copies(reader: QueryReader) -> Iterator[tuple[QueryBlock, QueryBlock]]:
    for block in reader:
        copies = (
            array.copy()
            for array in (block.padded_codes, block.offsets, block.names, block.name_offsets)
        )
        yield block, QueryBlock(block.index, *copies)  # type: ignore[arg-type]


def test_blocks_stay_as_they_are_while_others_are_read(
    tmp_path: Path, threads: ReadingThreads, parts: Parts
) -> None:
    path = tmp_path / "r.fq"
    path.write_text(usual_text(500))
    with QueryReader([str(path)], BLOCK, 100, threads=threads) as reader:
        pairs = [pair for pair in blocks_and_copies(reader) if pair[0].index % 7 == 0]
    for block, copy in pairs:
        assert pairs_of([block]) == pairs_of([copy])
        assert np.array_equal(block.padded_codes, copy.padded_codes)


def test_progress_reaches_the_total(tmp_path: Path, threads: ReadingThreads, parts: Parts) -> None:
    path = tmp_path / "r.fq"
    path.write_text(usual_text(500))
    with QueryReader([str(path)] * 2, BLOCK, 100, threads=threads) as reader:
        progress = [reader.bytes_read for _ in reader]
    assert progress == sorted(progress) and len(set(progress)) > 100
    assert progress[-1] == reader.bytes_read == reader.bytes_total


def test_a_reader_can_be_closed_at_any_time(
    tmp_path: Path, threads: ReadingThreads, parts: Parts
) -> None:
    path = tmp_path / "r.fq"
    path.write_text(usual_text(500) + "@bad\nACGT\n+\nIII\n" + usual_text(20))
    for count in (0, 1, 2, 50, 200):
        before = len(os.listdir("/proc/self/fd"))
        with QueryReader([str(path)], BLOCK, threads=threads) as reader:
            for _ in range(count):
                next(reader)
        assert list(reader) == []
        assert len(os.listdir("/proc/self/fd")) == before


def change_after_the_first_block(
    path: Path, threads: ReadingThreads | None, change: Callable[[], object]
) -> Pairs | str:
    try:
        with QueryReader([str(path)], BLOCK, CHUNK, threads=threads) as reader:
            first = next(reader)
            change()
            return pairs_of([first, *reader])
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("size", [3000, 3007, 3020])
def test_a_file_may_shrink(
    tmp_path: Path, threads: ReadingThreads, parts: Parts, size: int
) -> None:
    path = tmp_path / "r.fq"
    path.write_text(usual_text(500))
    found = change_after_the_first_block(path, threads, lambda: os.truncate(path, size))
    assert path.stat().st_size == size
    assert found == read(path, None)


def test_a_file_may_grow(tmp_path: Path, threads: ReadingThreads, parts: Parts) -> None:
    path = tmp_path / "r.fq"
    path.write_text(usual_text(100))

    def grow() -> None:
        with path.open("a") as file:
            file.write(usual_text(100, seed=2))

    found = change_after_the_first_block(path, threads, grow)
    assert found == read(path, None)


def test_a_disk_that_fails_is_told_after_the_records_before(
    tmp_path: Path, threads: ReadingThreads, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.fq"
    text = usual_text(500)
    path.write_text(text)

    def fail(function: Callable[..., object]) -> Callable[..., object]:
        def checked(number: int, what: object, at: int) -> object:
            if at > 5000:
                raise OSError(errno.EIO, "wrong")
            return function(number, what, at)

        return checked

    monkeypatch.setattr(os, "pread", fail(os.pread))
    monkeypatch.setattr(os, "preadv", fail(os.preadv))
    count = 0
    with (
        pytest.raises(InputError) as caught,
        QueryReader([str(path)], BLOCK, CHUNK, threads=threads) as reader,
    ):
        for block in reader:
            count += block.base_count
    assert str(caught.value) == f"{path}: input/output error"
    assert 4000 < parts.rest <= 5000
    assert 1000 < count < 2500


def test_other_files_take_the_usual_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: ReadingThreads
) -> None:
    text = usual_text(5)
    plain, small, packed = (tmp_path / name for name in ("plain.fq", "small.fq", "packed.fq.gz"))
    plain.write_text(text)
    small.write_text(usual_text(4))
    packed.write_bytes(gzip.compress(text.encode(), 0))
    fasta = tmp_path / "r.fa"
    fasta.write_text(">r\nACGT\n" * 100)
    monkeypatch.setattr(parallel_fastq, "LEAST_BYTES", len(text))
    monkeypatch.setattr("mummergpu.input.queries.ParallelFastqReader", pytest.fail)
    for path in (small, packed, fasta):
        assert read(path, threads) == read(path, None)
    with ReadingThreads(2) as two:
        assert read(plain, two) == read(plain, None)
    with plain.open("rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        with QueryReader(["-"], BLOCK, threads=threads) as reader:
            assert pairs_of(reader) == read(plain, None)


def test_very_large_blocks_are_read_one_after_the_other(
    tmp_path: Path, threads: ReadingThreads, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.fq"
    path.write_text(usual_text(50))
    monkeypatch.setattr(parallel_fastq, "MOST_PIECE_BYTES", 2000)
    assert read(path, threads, block_size=1000) == read(path, None)
    assert parts.rest == 0


def test_a_record_is_found_by_its_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "A" * 50
    text = f"@a\nAC\n+\n@@\n@b\nACGT\n+\n@@@@\n@c\n{long}\n+\n{long}\n@d\nA\n+\n@\n"
    second, third, last = (text.index(name) for name in ("@b", "@c", "@d"))
    path = tmp_path / "r.fq"
    path.write_text(text)

    def found(at: int) -> int | None:
        with path.open("rb") as file:
            return find_record(file.fileno(), at, len(text))

    monkeypatch.setattr(parallel_fastq, "WINDOWS", (10, 80))
    assert [found(at) for at in range(1, second + 1)] == [second] * second
    assert {found(at) for at in range(second + 1, third + 1)} == {third}
    assert {found(at) for at in range(third + 60, last + 1)} == {last}
    assert {found(at) for at in range(last + 1, len(text) + 9)} == {len(text)}
    monkeypatch.setattr(parallel_fastq, "WINDOWS", (10, 40))
    assert found(1) == second
    assert found(third) is None
    assert found(third + 1) is None


def test_records_are_split_into_equal_parts() -> None:
    lengths = [3, 0, 4, 100, 1, 2, 0, 9]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    padded = np.full(offsets[-1] + 2 * MARGIN, BREAK, dtype=np.uint8)
    codes = padded[MARGIN:-MARGIN]
    codes[:] = np.arange(codes.size) % 4
    names = np.frombuffer(b"abcdefgh", dtype=np.uint8).copy()
    whole = Records(codes, offsets, names, np.arange(9), padded)
    assert split(whole, 500) == [whole]
    for most in (1, 3, 10, 40, 60):
        found = split(whole, most)
        assert pairs_of(found) == pairs_of([whole])
        assert all(part.offsets.size > 1 for part in found)
        assert all(np.shares_memory(part.padded_codes, padded) for part in found)
        assert len(found) > 1
