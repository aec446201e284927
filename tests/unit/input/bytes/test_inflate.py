"""Decompression ahead, in threads: the same text and the same errors as without."""

import gzip
import os
import threading
from io import BytesIO
from random import Random

import pytest
from helpers.compressions import PACKERS, outcome
from helpers.containers import bgzf, bgzf_blocks
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.input.bytes import inflated_blocks
from mummergpu.input.bytes.files import CountedInput, Input
from mummergpu.input.bytes.formats import BGZF_END, BGZF_HEAD, Compression, Format, is_bgzf
from mummergpu.input.bytes.inflated_blocks import InflatedAhead, InflatedBlocks
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.bytes.stream_decoders import DecodedStreams
from mummergpu.runtime.words import pluralize

TEXT = b"".join(b"@r%d\nACGTTGCA\n+\nIIIIIIII\n" % number for number in range(400))
PACKED = bgzf(TEXT, 700)


class NoThreads(ReadingThreads):
    """Threads that nobody may need."""

    def __init__(self, threads):
        super().__init__(threads)
        self.executor.submit = self._refuse  # type: ignore[method-assign]

    def _refuse(self, *_, **__):
        raise AssertionError("a thread was asked for")


def alone(source):
    has_blocks = is_bgzf(source.read(BGZF_HEAD) or b"")
    source.rewind()
    return DecodedStreams(source, Compression.GZIP, "reads", is_bgzf=has_blocks)


def refuse(count):
    raise InputError(f"{pluralize(count, 'byte')} follow the compressed data", "reads")


def in_blocks(source, threads, piece_size=900, ahead_from=0):
    return InflatedBlocks(source, threads, refuse, lambda: True, piece_size, ahead_from)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3000), st.integers(30, 5000), st.integers(1, 3000), st.sampled_from([0, 5000])
)
def test_blocks_are_joined_whatever_the_pieces(threads, block_size, piece_size, size, ahead_from):
    packed = bgzf(TEXT, max(block_size, 50))

    def open_file(source):
        return in_blocks(source, threads, piece_size, ahead_from)

    assert outcome(open_file, packed, size) == (TEXT, "")


BLOCKS = bgzf_blocks(TEXT, 700)
MIDDLE = len(b"".join(BLOCKS[:9]))
LYING = BLOCKS[9][:-4] + b"\xff\xff\xff\xff"
ENDINGS = {
    "empty blocks": b"".join([*BLOCKS[:5], BGZF_END, BGZF_END, *BLOCKS[5:], BGZF_END, BGZF_END]),
    "no end": PACKED[: -len(BGZF_END)],
    "half an end": PACKED[:-7],
    "zeros behind": PACKED + bytes(600),
    "zeros between": PACKED[:MIDDLE] + bytes(600) + PACKED[MIDDLE:],
    "garbage behind": PACKED + b"garbage and more than eighteen bytes of it",
    "few bytes behind": PACKED + b"x",
    "gzip behind": PACKED + gzip.compress(TEXT),
    "gzip between": PACKED[:MIDDLE] + gzip.compress(TEXT) + PACKED[MIDDLE:],
    "one byte of a block": PACKED[: MIDDLE + 1],
    "half a header": PACKED[: MIDDLE + 11],
    "half a block": PACKED[: MIDDLE + 60],
    "no checksum": PACKED[: MIDDLE - 6],
    "a long text promised": b"".join([*BLOCKS[:9], LYING, *BLOCKS[10:], BGZF_END]),
    "nothing": BGZF_END,
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("ahead_from", [0, 3000, 1 << 20])
def test_ends_are_those_of_gzip(threads, ending, ahead_from):
    packed = ENDINGS[ending]
    expected = outcome(alone, packed, 50)
    for size in (30, 900, 1 << 16):
        found = outcome(lambda source: in_blocks(source, threads, size, ahead_from), packed)  # noqa: B023
        assert found[1] == expected[1]
        assert found[0].startswith(expected[0]) or expected[1]
        if not expected[1]:
            assert found[0] == expected[0]
    ahead = outcome(lambda source: InflatedAhead(alone(source), threads, 50, ahead_from), packed)
    assert ahead == expected


def test_damage_is_reported_as_without_threads(threads):
    """A flipped bit gives the same error, and the text before it is whole."""
    chance = Random(5)
    for _ in range(150):
        place = chance.randrange(2, len(PACKED))
        packed = bytearray(PACKED)
        packed[place] ^= 1 << chance.randrange(8)
        expected = outcome(alone, bytes(packed), 50)
        found = outcome(lambda source: in_blocks(source, threads), bytes(packed), 50)
        assert found[1] == expected[1], place
        before = place // max(map(len, BLOCKS)) - 900 // min(map(len, BLOCKS[:-1])) - 1
        assert found[0].startswith(TEXT[: 700 * max(0, before)])
        if not expected[1]:
            assert found[0] == expected[0]


def test_plain_gzip_ahead_is_the_same_text(threads):
    packed = gzip.compress(TEXT) + gzip.compress(TEXT)
    for ahead_from in (0, 1000):
        for content in (packed, packed[:-9], packed[:-6] + b"abcdef", packed + b"text"):
            expected = outcome(alone, content, 64)
            found = outcome(
                lambda source: InflatedAhead(alone(source), threads, 64, ahead_from),  # noqa: B023
                content,
                17,
            )
            assert found == expected


def test_failures_in_threads_cost_only_time(threads, monkeypatch):
    whole = inflated_blocks._inflate
    for failing in range(8):
        calls = iter(range(1000))

        def fail(*arguments):
            if next(calls) == failing:  # noqa: B023
                raise MemoryError
            return whole(*arguments)

        monkeypatch.setattr(inflated_blocks, "_inflate", fail)
        for ahead_from in (0, 3000):
            found = outcome(lambda source: in_blocks(source, threads, 900, ahead_from), PACKED)  # noqa: B023
            assert found == (TEXT, "")


class Broken:
    """A file that cannot be read from some byte on."""

    def __init__(self, data):
        self._data = BytesIO(data)
        self.failures = 0

    def readinto(self, buffer):
        if count := self._data.readinto(memoryview(buffer)[:333]):
            return count
        self.failures += 1
        raise OSError(5, "whatever")


@pytest.mark.parametrize("ahead_from", [0, 3000])
def test_a_failed_read_comes_after_the_text_before_it(threads, ahead_from):
    file = Broken(PACKED[:MIDDLE])
    text = in_blocks(CountedInput(file), threads, 900, ahead_from)
    parts, buffer = [], bytearray(100)
    with pytest.raises(OSError, match="whatever"):
        while count := text.readinto(buffer):
            parts.append(bytes(buffer[:count]))
    assert b"".join(parts) == TEXT[: 9 * 700]
    assert file.failures == 1


def test_small_files_need_no_thread(tmp_path):
    for packed in (bgzf(TEXT), gzip.compress(TEXT)):
        path = tmp_path / "reads.gz"
        path.write_bytes(packed)
        with NoThreads(3) as threads, Input(str(path), threads) as file:
            assert file.text.read() == TEXT


@pytest.mark.parametrize("kind", [None, *PACKERS], ids=lambda kind: kind.value if kind else "bgzf")
def test_a_large_file_is_decompressed_ahead_and_can_be_closed_at_any_time(tmp_path, kind):
    text = TEXT * 700
    path = tmp_path / "reads.gz"
    parts = [text[:4_000_000], text[4_000_000:]]
    path.write_bytes(b"".join(map(PACKERS[kind], parts)) if kind else bgzf(text, 60_000))
    before = set(threading.enumerate())
    for count in (0, 1, 40, 70, 100_000):
        with ReadingThreads(3) as threads:
            file = Input(str(path), threads)
            assert (file.format, file.compression) == (Format.FASTQ, kind or Compression.GZIP)
            if count == 100_000:
                assert file.text.readall() == text
                assert file.source.bytes_read == file.size
                assert set(threading.enumerate()) - before
            else:
                assert text.startswith(
                    b"".join(file.text.read(1 << 16) or b"" for _ in range(count))
                )
            file.close()
        assert set(threading.enumerate()) <= before


def test_a_pipe_gives_what_it_has(tmp_path):
    """Reads at hand do not wait until the pipe has more."""
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    text = TEXT * 500
    blocks = bgzf_blocks(text, 60_000)
    half = len(blocks) // 2
    may_go_on = threading.Event()

    def feed():
        with open(path, "wb", buffering=0) as pipe:
            pipe.write(b"".join(blocks[:half]) + blocks[half][:100])
            assert may_go_on.wait(60)
            pipe.write(blocks[half][100:] + b"".join(blocks[half + 1 :]) + BGZF_END)

    feeder = threading.Thread(target=feed)
    feeder.start()
    parts, size = [], 0
    with ReadingThreads(3) as threads, Input(path, threads) as file:
        buffer = bytearray(1 << 20)
        while count := file.text.readinto(buffer):
            parts.append(bytes(buffer[:count]))
            size += count
            if size == 60_000 * half:
                may_go_on.set()
    feeder.join()
    assert b"".join(parts) == text


def test_two_threads_leave_blocks_to_one(tmp_path):
    path = tmp_path / "reads.gz"
    path.write_bytes(bgzf(TEXT * 700, 60_000))
    with NoThreads(2) as threads, Input(str(path), threads) as file:
        assert file.text.readall() == TEXT * 700
