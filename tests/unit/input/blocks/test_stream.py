"""Queries that are read ahead: from the first moment on, or when they are asked for."""

import os
import sys
import threading
import time

import pytest

from mummergpu.errors import InputError, LibraryError
from mummergpu.input.blocks.reader import BLOCKS_AHEAD, ReadStream, query_reader
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import decode

READS = [b"ACGT" * (1 + number % 5) for number in range(200)]


@pytest.fixture
def reads(tmp_path):
    path = tmp_path / "reads.fa"
    path.write_bytes(b"".join(b">r\n%s\n" % read for read in READS))
    return str(path)


def nobody(bases, share):
    """Take what is told of the reading."""


def stream_of(paths, block_size, stats, tell=nobody):
    return ReadStream(query_reader(paths, block_size), stats, tell)


def wait_until(holds):
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_files_are_read_before_anybody_asks(reads):
    stats = Stats()
    with stream_of([reads], 40, stats, nobody):
        # One more than wait has been read, and waits for room.
        wait_until(lambda: stats.counts.get("blocks", 0) == BLOCKS_AHEAD + 1)
    assert stats.counts["blocks"] <= BLOCKS_AHEAD + 2


def test_a_pipe_is_left_alone_until_somebody_asks(tmp_path):
    """Whoever fails meanwhile must not wait for a pipe that has nothing to give."""
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="meanwhile"), stream_of([path], 40, Stats(), nobody):
        assert set(threading.enumerate()) <= before
        raise ValueError("meanwhile")


@pytest.mark.parametrize("max_bases", [1, 7, 20, 10_000])
def test_blocks_are_cut_to_what_the_backend_likes(reads, max_bases):
    told = []
    stats = Stats()
    with stream_of([reads], 1000, stats, lambda *what: told.append(what)) as stream:
        blocks = list(stream.blocks(max_bases))
    found = [
        decode(block.codes[begin:end])
        for block in blocks
        for begin, end in zip(block.offsets, block.offsets[1:], strict=False)
    ]
    assert found == READS
    # What is not larger than asked for ends with the read that reaches 1,000 bases.
    most = 1000 + 20 if max_bases >= 1000 else 2 * max_bases
    assert all(block.base_count <= most or block.query_count == 1 for block in blocks)
    assert (len(blocks) > len(told)) == (max_bases < 500)
    assert told == sorted(told) and told[-1] == (sum(map(len, READS)), 1.0)
    assert stats.counts["queries"] == len(READS) and stats.counts["blocks"] == len(told)


def test_what_is_wrong_is_told_to_whoever_asks(tmp_path):
    path = tmp_path / "wrong.fa"
    path.write_bytes(b">a\nACGT\n>b\nAC1T\n")
    with stream_of([str(path)], 40, Stats(), nobody) as stream:
        time.sleep(0.01)
        with pytest.raises(InputError, match="is not a sequence character"):
            list(stream.blocks(40))
    with pytest.raises(InputError, match="no such file"):
        stream_of([str(tmp_path / "none.fa")], 40, Stats(), nobody)


def test_a_missing_library_is_told_before_anything_is_read(reads, monkeypatch, tmp_path):
    for name in ("compression", "compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    packed = tmp_path / "reads.fq.zst"
    packed.write_bytes(b"\x28\xb5\x2f\xfd and more")
    stats = Stats()
    with pytest.raises(LibraryError, match=str(packed)):
        stream_of([reads, str(packed)], 40, stats, nobody)
    assert not stats.counts
