"""The reader of files that threads parse: progress, closing, files that change, other files."""

import errno
import gzip
import io
import os
import sys

import numpy as np
import pytest
from helpers.naive import pairs_of
from helpers.parallel_files import BLOCK, CHUNK, read

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records import parallel_records


def blocks_and_copies(reader):
    for block in reader:
        copies = (
            array.copy()
            for array in (block.padded_codes, block.offsets, block.names, block.name_offsets)
        )
        yield block, QueryBlock(block.index, *copies)  # type: ignore[arg-type]


def test_blocks_stay_as_they_are_while_others_are_read(tmp_path, threads, parts, kind):
    path = tmp_path / "r"
    path.write_text(kind.usual_text(500))
    with query_reader([str(path)], BLOCK, 100, threads=threads) as reader:
        pairs = [pair for pair in blocks_and_copies(reader) if pair[0].index % 7 == 0]
    for block, copy in pairs:
        assert pairs_of([block]) == pairs_of([copy])
        assert np.array_equal(block.padded_codes, copy.padded_codes)


def test_progress_reaches_the_total(tmp_path, threads, parts, kind):
    path = tmp_path / "r"
    path.write_text(kind.usual_text(500))
    with query_reader([str(path)] * 2, BLOCK, 100, threads=threads) as reader:
        progress = [reader.bytes_read for _ in reader]
    assert progress == sorted(progress) and len(set(progress)) > 100
    assert progress[-1] == reader.bytes_read == reader.bytes_total


def test_a_reader_can_be_closed_at_any_time(tmp_path, threads, parts, kind):
    path = tmp_path / "r"
    path.write_text(kind.usual_text(500) + kind.fault + kind.usual_text(20))
    for count in (0, 1, 2, 50, 200):
        before = len(os.listdir("/proc/self/fd"))
        with query_reader([str(path)], BLOCK, threads=threads) as reader:
            for _ in range(count):
                next(reader)
        assert list(reader) == []
        assert len(os.listdir("/proc/self/fd")) == before


def change_after_the_first_block(path, threads, change):
    try:
        with query_reader([str(path)], BLOCK, CHUNK, threads=threads) as reader:
            first = next(reader)
            change()
            return pairs_of([first, *reader])
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("size", [3000, 3007, 3020])
def test_a_file_may_shrink(tmp_path, threads, parts, kind, size):
    path = tmp_path / "r"
    path.write_text(kind.usual_text(500))
    found = change_after_the_first_block(path, threads, lambda: os.truncate(path, size))
    assert path.stat().st_size == size
    assert found == read(path, None)


def test_a_file_may_grow(tmp_path, threads, parts, kind):
    path = tmp_path / "r"
    path.write_text(kind.usual_text(100))

    def grow():
        with path.open("a") as file:
            file.write(kind.usual_text(100, seed=2))

    found = change_after_the_first_block(path, threads, grow)
    assert found == read(path, None)


def test_a_disk_that_fails_is_told_after_the_records_before(
    tmp_path, threads, parts, kind, monkeypatch
):
    path = tmp_path / "r"
    text = kind.usual_text(500)
    path.write_text(text)

    def fail(function):
        def checked(number, what, at):
            if at > 5000:
                raise OSError(errno.EIO, "wrong")
            return function(number, what, at)

        return checked

    monkeypatch.setattr(os, "pread", fail(os.pread))
    monkeypatch.setattr(os, "preadv", fail(os.preadv))
    count = 0
    with (
        pytest.raises(InputError) as caught,
        query_reader([str(path)], BLOCK, CHUNK, threads=threads) as reader,
    ):
        for block in reader:
            count += block.base_count
    assert str(caught.value) == f"{path}: input/output error"
    assert 4000 < parts.rest <= 5000
    assert 1000 < count < 3500


def test_other_files_take_the_usual_way(tmp_path, monkeypatch, threads, kind):
    text = kind.usual_text(5)
    plain, small, packed = (tmp_path / name for name in ("plain", "small", "packed.gz"))
    plain.write_text(text)
    small.write_text(kind.usual_text(4))
    packed.write_bytes(gzip.compress(text.encode(), 0))
    monkeypatch.setattr(parallel_records, "LEAST_BYTES", len(text))
    monkeypatch.setattr(
        "mummergpu.input.records.parallel_records.ParallelRecordReader", pytest.fail
    )
    for path in (small, packed):
        assert read(path, threads) == read(path, None)
    with ReadingThreads(2) as two:
        assert read(plain, two) == read(plain, None)
    with plain.open("rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        with query_reader(["-"], BLOCK, threads=threads) as reader:
            assert pairs_of(reader) == read(plain, None)
    monkeypatch.setattr(parallel_records, "MOST_BLOCK_BASES", BLOCK - 1)
    assert read(plain, threads) == read(plain, None)
