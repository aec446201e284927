"""Compressed text: the same, and with the same errors, of each kind, ahead in threads or not."""

import gzip
import os
import random
import sys
import threading
from functools import partial
from io import BytesIO
from itertools import accumulate
from lzma import FORMAT_XZ, LZMADecompressor, LZMAError
from random import Random
from types import ModuleType

import pytest
from helpers.compressions import PACKERS, outcome, skippable_frame, zstd_of
from helpers.containers import bgzf, bgzf_blocks
from helpers.loops import each
from helpers.naive import pairs_of
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.bytes import inflated_blocks, stream_decoders
from mummergpu.input.bytes.files import CountedInput, EmptyInputError, Input
from mummergpu.input.bytes.formats import (
    BGZF_END,
    BGZF_HEAD,
    LONGEST_MAGIC,
    Compression,
    Format,
    compression_of,
    is_bgzf,
)
from mummergpu.input.bytes.inflated_blocks import InflatedAhead, InflatedBlocks
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.bytes.stream_decoders import DecodedStreams
from mummergpu.input.reference import read_reference
from mummergpu.runtime.words import pluralize
from mummergpu.sequence.codes import decode

TEXT = b"".join(b"@r%d\nACGTTGCA\n+\nIIIIIIII\n" % number for number in range(400))
NOISE = random.Random(3).randbytes(3000)
EARLY_END = "the compressed data end too early (truncated?)"
CORRUPT = "the compressed data are corrupt ("
FOLLOW = " follow the compressed data"


@pytest.fixture(params=tuple(Compression), ids=lambda kind: kind.value)
def kind(request):
    PACKERS[request.param](b"")  # Skips the test if there is no zstd.
    return request.param


def opener(kind):
    return lambda source: DecodedStreams(source, kind, "reads")


@pytest.mark.parametrize("size", [1, 777, 1 << 20])
def test_streams_are_joined(kind, size, monkeypatch):
    pack = PACKERS[kind]
    parts = [TEXT[:5000], b"", TEXT[5000:5001], NOISE, b"", TEXT[5001:]]
    packed = b"".join(map(pack, parts))
    for read_bytes in (1, 50, stream_decoders.COMPRESSED_BYTES):
        monkeypatch.setattr(stream_decoders, "COMPRESSED_BYTES", read_bytes)
        assert outcome(opener(kind), packed, size) == (b"".join(parts), "")


def test_a_file_that_is_cut_is_told_from_a_whole_one(kind):
    """Only a cut between two streams cannot be seen."""
    streams = [PACKERS[kind](text) for text in (TEXT[:300], b"", NOISE[:300])]
    packed = b"".join(streams)
    borders = {*accumulate(map(len, streams))}
    for size in range(1, len(packed) + 1):
        text, error = outcome(opener(kind), packed[:size])
        assert (TEXT[:300] + NOISE[:300]).startswith(text)
        assert error == ("" if size in borders else EARLY_END), size


@pytest.mark.parametrize("tail", [b"x", b"\n", b"garbage, and more of it", b">a\nACGT\n", b"\1\0"])
def test_what_follows_is_ignored_and_counted(kind, tail):
    others = set(Compression) - {kind, Compression.ZSTD}
    tails = [tail, bytes(5) + tail, tail + PACKERS[kind](TEXT)]
    for behind in [*tails, *(PACKERS[other](TEXT) for other in others)]:
        ignored = []

        def open_file(source):
            return DecodedStreams(source, kind, "reads", ignore=ignored.append)  # noqa: B023

        packed = PACKERS[kind](TEXT) + behind
        assert outcome(open_file, packed) == (TEXT, "") and ignored == [len(behind)]
        # Who cannot tell of it refuses it.
        assert outcome(opener(kind), packed)[1].endswith(FOLLOW)


def test_zeros_may_lie_between_streams_and_only_those_of_xz_are_its_own(kind):
    packed = PACKERS[kind](TEXT)
    for count in range(1, 14):
        assert outcome(opener(kind), packed + bytes(count) + packed) == (TEXT * 2, "")
        error = outcome(opener(kind), packed + bytes(count))[1]
        is_sound = kind is Compression.XZ and count % 4 == 0
        assert error == ("" if is_sound else f"{pluralize(count, 'byte')}{FOLLOW}")


def test_damage_is_an_error_or_changes_nothing(kind):
    chance = random.Random(5)
    packed = PACKERS[kind](TEXT)
    found = set()
    for _ in range(300):
        place = chance.randrange(LONGEST_MAGIC, len(packed))
        damaged = bytearray(packed)
        damaged[place] ^= 1 << chance.randrange(8)
        text, error = outcome(opener(kind), bytes(damaged))
        assert error or text == TEXT, place
        found.add(error)
    assert any(error.startswith(CORRUPT) for error in found)
    known = ("", EARLY_END)
    assert all(one.startswith(CORRUPT) or one in known or one.endswith(FOLLOW) for one in found)


def test_a_thread_ahead_gives_the_same(kind, threads):
    packed = PACKERS[kind](TEXT) + PACKERS[kind](NOISE)
    cases = (packed, packed[:-3], packed[:-20] + b"x" * 20, packed + b"text", packed[:-1] + b"x")
    for ahead_from in (0, 1000):
        for content in cases:
            expected = outcome(opener(kind), content, 64)
            found = outcome(
                lambda source: InflatedAhead(opener(kind)(source), threads, 64, ahead_from),  # noqa: B023
                content,
                17,
            )
            assert found == expected


def test_reads_and_references_may_be_compressed(kind, tmp_path):
    fasta = b">a\nACGTTT\n>b\nGGA\n"
    sam = b"@SQ\tSN:c\tLN:9\nr\t0\tc\t1\t60\t4M\t*\t0\t0\tACGT\t*\n"
    path = tmp_path / "file"
    for content, expected in (
        (fasta, [(b"a", b"ACGTTT"), (b"b", b"GGA")]),
        (sam, [(b"r", b"ACGT")]),
        (sam[sam.index(b"\n") + 1 :], [(b"r", b"ACGT")]),
    ):
        path.write_bytes(PACKERS[kind](content))
        with query_reader([str(path)], 100) as reader:
            assert pairs_of(reader) == expected
            assert reader.bytes_read == path.stat().st_size == reader.bytes_total
    path.write_bytes(PACKERS[kind](fasta))
    assert decode(read_reference(str(path)).codes) == b"ACGTTTNGGA"


def test_nothing_compressed_is_an_empty_input(kind, tmp_path):
    path = tmp_path / "reads"
    packed = PACKERS[kind](b"") * 2
    path.write_bytes(packed)
    with pytest.raises(EmptyInputError, match="the compressed file holds nothing") as caught:
        Input(str(path))
    assert caught.value.bytes_read == len(packed)


def test_frames_of_zstd_without_text_are_passed_over():
    packed = zstd_of(TEXT)
    frame = skippable_frame()
    content = frame + packed + frame + frame + packed + frame
    assert compression_of(content) is Compression.ZSTD
    assert outcome(opener(Compression.ZSTD), content) == (TEXT * 2, "")
    assert outcome(opener(Compression.ZSTD), content[:-1])[1] == EARLY_END


def test_a_frame_of_zstd_may_need_a_window_of_two_gigabytes():
    """So ``zstd --long=31`` says in the header, however short the text is."""
    zstd_of(b"")
    window = (31 - 10) << 3
    header = b"\x28\xb5\x2f\xfd" + bytes([0, window])
    packed = header + (len(TEXT) << 3 | 1).to_bytes(3, "little") + TEXT
    assert outcome(opener(Compression.ZSTD), packed) == (TEXT, "")


def test_few_bytes_of_zstd_never_give_a_text_that_is_longer_than_asked_for():
    text = bytes(5_000_000) + TEXT
    streams = DecodedStreams(CountedInput(BytesIO(zstd_of(text) * 2)), Compression.ZSTD, "reads")
    found = []
    while part := streams.read_some(10_000):
        assert len(part) <= 10_000
        found.append(part)
    assert b"".join(found) == text * 2


@pytest.mark.parametrize(("kind", "module"), [(Compression.BZIP2, "bz2"), (Compression.XZ, "lzma")])
def test_a_python_without_a_decoder_is_told(kind, module, monkeypatch, tmp_path):
    path = tmp_path / "reads"
    path.write_bytes(PACKERS[kind](TEXT))
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError) as caught:
        Input(str(path))
    expected = f"compressed with {kind.value}, and this Python has no module {module}"
    assert caught.value.message == expected


def test_pythons_own_zstd_comes_first(monkeypatch):
    """Its decoder has the interface of the others; one of xz stands for it."""
    given = []

    def new_decoder(options):
        given.append(options)
        return LZMADecompressor(FORMAT_XZ)

    parent, module = ModuleType("compression"), ModuleType("compression.zstd")
    module.ZstdDecompressor = partial(new_decoder)
    module.ZstdError = LZMAError
    module.DecompressionParameter = type("", (), {"window_log_max": 100})
    parent.zstd = module
    monkeypatch.setitem(sys.modules, "compression", parent)
    monkeypatch.setitem(sys.modules, "compression.zstd", module)
    packed = PACKERS[Compression.XZ](TEXT)
    assert outcome(opener(Compression.ZSTD), packed) == (TEXT, "")
    assert outcome(opener(Compression.ZSTD), packed[:-9])[1] == EARLY_END
    assert given == [{100: 31}] * 2


PACKED = bgzf(TEXT, 700)


class NoThreads(ReadingThreads):
    """Threads that nobody may need."""

    def __init__(self, threads):
        super().__init__(threads)
        self.executor.submit = self._refuse

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


@settings(max_examples=60)
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
@each("ahead_from", [0, 3000, 1 << 20])
def test_ends_are_those_of_gzip(threads, ending, ahead_from):
    packed = ENDINGS[ending]
    text, error = outcome(alone, packed, 50)
    for size in (30, 900, 1 << 16):
        found = outcome(lambda source: in_blocks(source, threads, size, ahead_from), packed)  # noqa: B023
        assert found[1] == error
        assert error or found[0] == text
    ahead = outcome(lambda source: InflatedAhead(alone(source), threads, 50, ahead_from), packed)
    assert ahead == (text, error)


def test_damage_is_reported_as_without_threads(threads):
    """A flipped bit gives the same error, and the text before it is whole."""
    chance = Random(5)
    for _ in range(150):
        place = chance.randrange(2, len(PACKED))
        packed = bytearray(PACKED)
        packed[place] ^= 1 << chance.randrange(8)
        text, error = outcome(alone, bytes(packed), 50)
        found = outcome(lambda source: in_blocks(source, threads), bytes(packed), 50)
        assert found[1] == error, place
        before = place // max(map(len, BLOCKS)) - 900 // min(map(len, BLOCKS[:-1])) - 1
        assert found[0].startswith(TEXT[: 700 * max(0, before)])
        assert error or found[0] == text


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
    assert b"".join(parts) == TEXT[: 9 * 700] and file.failures == 1


def test_small_files_need_no_thread(tmp_path):
    for packed in (bgzf(TEXT), gzip.compress(TEXT)):
        path = tmp_path / "reads.gz"
        path.write_bytes(packed)
        with NoThreads(3) as threads, Input(str(path), threads) as file:
            assert file.text.read() == TEXT


def name_of_kind(kind):
    return kind.value if kind else "bgzf"


@pytest.mark.parametrize("kind", [None, *PACKERS], ids=name_of_kind)
def test_a_large_file_is_decompressed_ahead_and_can_be_closed_at_any_time(tmp_path, kind):
    text = TEXT * 300
    path = tmp_path / "reads.gz"
    parts = [text[:2_500_000], text[2_500_000:]]
    path.write_bytes(b"".join(map(PACKERS[kind], parts)) if kind else bgzf(text, 60_000))
    before = set(threading.enumerate())
    for count in (0, 1, 25, 40):
        with ReadingThreads(3) as threads:
            file = Input(str(path), threads)
            assert (file.format, file.compression) == (Format.FASTQ, kind or Compression.GZIP)
            assert text.startswith(b"".join(file.text.read(1 << 16) or b"" for _ in range(count)))
            file.close()
        assert set(threading.enumerate()) <= before
    with ReadingThreads(3) as threads:
        with Input(str(path), threads) as file:
            assert file.text.readall() == text and file.source.bytes_read == file.size
            assert set(threading.enumerate()) - before
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("kind", [None, *Compression], ids=name_of_kind)
def test_a_pipe_gives_what_it_has(kind, tmp_path):
    """It does not wait for the next stream, or for the rest of a block of bgzf."""
    if kind is None:
        text, at_hand = TEXT * 500, 1_800_000
        blocks = bgzf_blocks(text, 60_000)
        packed, begin = b"".join(blocks) + BGZF_END, len(b"".join(blocks[:30])) + 100
    else:
        text, at_hand = TEXT * 2, len(TEXT)
        packed, begin = PACKERS[kind](TEXT) * 2, len(PACKERS[kind](TEXT))
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    may_go_on = threading.Event()

    def feed():
        with open(path, "wb", buffering=0) as pipe:
            pipe.write(packed[:begin])
            assert may_go_on.wait(60)
            pipe.write(packed[begin:])

    feeder = threading.Thread(target=feed)
    feeder.start()
    found, buffer = bytearray(), bytearray(1000)
    with ReadingThreads(3) as threads, Input(path, threads) as file:
        while count := file.text.readinto(buffer):
            found += buffer[:count]
            if len(found) == at_hand:
                may_go_on.set()
    feeder.join()
    assert found == text


def test_two_threads_leave_blocks_to_one(tmp_path):
    path = tmp_path / "reads.gz"
    path.write_bytes(bgzf(TEXT * 700, 60_000))
    with NoThreads(2) as threads, Input(str(path), threads) as file:
        assert file.text.readall() == TEXT * 700
