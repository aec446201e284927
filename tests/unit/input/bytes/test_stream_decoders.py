"""bzip2, xz and zstd: the same text and the same errors as of gzip, ahead in a thread or not."""

import os
import random
import sys
import threading
from collections.abc import Callable
from io import BytesIO
from types import ModuleType
from typing import Any

import pytest
from helpers.compressions import PACKERS, outcome, skippable_frame, zstd_of
from helpers.naive import pairs_of

from mummergpu.errors import InputError, LibraryError
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.bytes import stream_decoders
from mummergpu.input.bytes.files import CountedInput, EmptyInputError, Input
from mummergpu.input.bytes.formats import LONGEST_MAGIC, Compression, compression_of
from mummergpu.input.bytes.inflated_blocks import InflatedAhead
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
    found = request.param
    PACKERS[found](b"")  # Skips the test if there is no zstd.
    return found


Open = Callable[[CountedInput], Any]


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
    pack = PACKERS[kind]
    streams = [pack(TEXT[:300]), pack(b""), pack(NOISE[:300])]
    packed = b"".join(streams)
    borders = {sum(map(len, streams[:count])) for count in (1, 2, 3)}
    for size in range(1, len(packed) + 1):
        text, error = outcome(opener(kind), packed[:size])
        assert (TEXT[:300] + NOISE[:300]).startswith(text)
        assert error == ("" if size in borders else EARLY_END), size


@pytest.mark.parametrize("tail", [b"x", b"\n", b"garbage, and more of it", b">a\nACGT\n", b"\1\0"])
def test_what_follows_is_ignored_and_counted(kind, tail):
    tails = [tail, bytes(5) + tail, tail + PACKERS[kind](TEXT)]
    tails += [
        PACKERS[other](TEXT)
        for other in Compression
        if other is not kind and other is not Compression.ZSTD
    ]
    for behind in tails:
        ignored = []

        def open_file(source):
            return DecodedStreams(source, kind, "reads", ignore=ignored.append)  # noqa: B023

        packed = PACKERS[kind](TEXT) + behind
        assert outcome(open_file, packed) == (TEXT, "")
        assert ignored == [len(behind)]
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


def test_a_pipe_gives_what_it_has(kind, tmp_path):
    """The text of a stream does not wait for the next stream."""
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    may_go_on = threading.Event()

    def feed():
        with open(path, "wb", buffering=0) as pipe:
            pipe.write(PACKERS[kind](TEXT))
            assert may_go_on.wait(60)
            pipe.write(PACKERS[kind](TEXT))

    feeder = threading.Thread(target=feed)
    feeder.start()
    buffer, text = bytearray(100), b""
    with ReadingThreads(3) as pool, Input(path, pool) as file:
        while count := file.text.readinto(buffer):
            text += buffer[:count]
            if len(text) == len(TEXT):
                may_go_on.set()
    feeder.join()
    assert text == TEXT * 2


def test_nothing_compressed_is_an_empty_input(kind, tmp_path):
    path = tmp_path / "reads"
    packed = PACKERS[kind](b"") * 2
    path.write_bytes(packed)
    with pytest.raises(EmptyInputError, match="the compressed file holds nothing") as caught:
        Input(str(path))
    assert caught.value.bytes_read == len(packed)


@pytest.mark.parametrize("ending", ["bz2", "xz", "zst"])
def test_a_file_of_no_bytes_is_a_failed_download(ending, tmp_path):
    path = tmp_path / f"reads.fq.{ending}"
    path.touch()
    with pytest.raises(InputError, match="the file is empty") as caught:
        Input(str(path))
    assert not isinstance(caught.value, EmptyInputError)


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
    last_raw_block = (len(TEXT) << 3 | 1).to_bytes(3, "little")
    packed = header + last_raw_block + TEXT
    assert outcome(opener(Compression.ZSTD), packed) == (TEXT, "")


def test_few_bytes_of_zstd_never_give_a_text_that_is_longer_than_asked_for():
    text = bytes(5_000_000) + TEXT
    streams = DecodedStreams(CountedInput(BytesIO(zstd_of(text) * 2)), Compression.ZSTD, "reads")
    found = []
    while part := streams.read_some(10_000):
        assert len(part) <= 10_000
        found.append(part)
    assert b"".join(found) == text * 2


def hide(monkeypatch, *names):
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)


def test_a_missing_library_is_named_with_the_file(monkeypatch, tmp_path):
    hide(monkeypatch, "compression", "compression.zstd", "zstandard")
    path = tmp_path / "reads.fq.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd and more")
    with pytest.raises(LibraryError) as caught:
        Input(str(path))
    expected = f"{path}: zstd needs zstandard (pip install 'mummergpu[zstd]'): "
    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize(("kind", "module"), [(Compression.BZIP2, "bz2"), (Compression.XZ, "lzma")])
def test_a_python_without_a_decoder_is_told(kind, module, monkeypatch, tmp_path):
    path = tmp_path / "reads"
    path.write_bytes(PACKERS[kind](TEXT))
    hide(monkeypatch, module)
    with pytest.raises(InputError) as caught:
        Input(str(path))
    expected = f"compressed with {kind.value}, and this Python has no module {module}"
    assert caught.value.message == expected


def test_pythons_own_zstd_comes_first(monkeypatch):
    """Its decoder has the interface of the others; one of xz stands for it."""
    from functools import partial
    from lzma import FORMAT_XZ, LZMADecompressor, LZMAError

    given = []

    def new_decoder(options):
        given.append(options)
        return LZMADecompressor(FORMAT_XZ)

    parent, module = ModuleType("compression"), ModuleType("compression.zstd")
    module.ZstdDecompressor = partial(new_decoder)  # type: ignore[attr-defined]
    module.ZstdError = LZMAError  # type: ignore[attr-defined]
    module.DecompressionParameter = type("", (), {"window_log_max": 100})  # type: ignore[attr-defined]
    parent.zstd = module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "compression", parent)
    monkeypatch.setitem(sys.modules, "compression.zstd", module)
    packed = PACKERS[Compression.XZ](TEXT)
    assert outcome(opener(Compression.ZSTD), packed) == (TEXT, "")
    assert outcome(opener(Compression.ZSTD), packed[:-9])[1] == EARLY_END
    assert given == [{100: 31}] * 2
