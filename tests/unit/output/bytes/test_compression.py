"""Compressed output is what other programs read, and the same however it is cut and shared."""

import gzip
import os
import random
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isal import igzip_lib

from mummergpu.output.bytes.bgzf_blocks import FAILED
from mummergpu.output.bytes.compression import (
    BGZF_BLOCK_BYTES,
    BgzfCompressor,
    CompressedStream,
    compressor_of,
)
from mummergpu.runtime.stats import Stats

SIZES = [0, 1, 1000, BGZF_BLOCK_BYTES - 1, BGZF_BLOCK_BYTES, BGZF_BLOCK_BYTES + 1, 300_000]


def text_of(size, random_bytes):
    letters = random.Random(size).choices(b"ACGT\n", k=size)
    return os.urandom(size) if random_bytes else bytes(letters)


def test_zstd_reads_what_is_written(tmp_path):
    pytest.importorskip("zstandard", reason="zstandard is not installed")
    compressor = compressor_of("zstd")
    path = tmp_path / "x.zst"
    path.write_bytes(compressor.compress(b"one ") + compressor.compress(b"two") + compressor.end())
    try:
        done = subprocess.run(["zstd", "-dc", str(path)], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("zstd is not installed")
    assert done.stdout == b"one two"


def mixed_text(size, seed):
    """Text of letters, numbers and noise, so that blocks are of every kind."""
    made = random.Random(seed)
    parts = []
    while sum(map(len, parts)) < size:
        kind = made.choice([b"ACGT", b"A", bytes(range(33, 97)), bytes(range(256))])
        parts.append(bytes(made.choices(kind, k=made.choice([10, 3000, 70_000]))))
    return b"".join(parts)[:size]


@pytest.fixture
def slow(monkeypatch):
    """What compresses where the library hides its functions."""
    monkeypatch.setattr("mummergpu.output.bytes.compression.isal_functions", lambda: None)
    compressor = BgzfCompressor()
    assert compressor._functions is None
    return compressor


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_blocks_are_those_of_the_library(level):
    fast = BgzfCompressor(level)
    assert fast._functions is not None
    for seed, size in enumerate([0, 1, 17, 5000, BGZF_BLOCK_BYTES, 200_000, 1_100_000]):
        text = np.frombuffer(bytearray(mixed_text(size, seed)), dtype=np.uint8)
        packed = fast.compress(text)
        assert packed == fast.compress(text.tobytes())
        assert gzip.decompress(packed + fast.end()) == text.tobytes()
        at = 0
        for begin in range(0, size, BGZF_BLOCK_BYTES):
            own = text[begin : begin + BGZF_BLOCK_BYTES].tobytes()
            length = int.from_bytes(packed[at + 16 : at + 18], "little") + 1
            deflated = igzip_lib.compress(own, level, igzip_lib.COMP_DEFLATE)
            # What cannot be deflated is stored.
            assert len(deflated) > len(own) or packed[at + 18 : at + length - 8] == deflated
            at += length
        assert at == len(packed)


@pytest.mark.parametrize("sizes", [(1, 1), (BGZF_BLOCK_BYTES, 5), (100_000, 70_000, 3, 200_000)])
def test_parts_are_compressed_as_the_piece_that_they_are_cut_from(sizes):
    fast = BgzfCompressor()
    parts = [np.frombuffer(mixed_text(size, size), dtype=np.uint8) for size in sizes]
    for some in (parts, [np.zeros(0, np.uint8), *parts], [*parts, np.zeros(0, np.uint8)]):
        packed = fast.compress_parts(some)
        assert bytes(packed) == fast.compress(b"".join(map(bytes, parts)))
        # Its memory is that of the next one.
        fast.take_back(packed)
        assert np.shares_memory(packed, fast.compress_parts(some))


@pytest.mark.parametrize("random_bytes", [False, True])
def test_zlib_makes_bgzf_too(slow, random_bytes):
    for size in SIZES:
        text = text_of(size, random_bytes)
        packed = slow.compress(text) + slow.compress(np.frombuffer(text, dtype=np.uint8))
        assert gzip.decompress(packed + slow.end()) == text + text
        at, blocks = 0, []
        while at < len(packed):
            length = int.from_bytes(packed[at + 16 : at + 18], "little") + 1
            blocks.append(gzip.decompress(packed[at : at + length]))
            at += length
        assert all(len(block) <= BGZF_BLOCK_BYTES for block in blocks)
        assert len(blocks) == 2 * -(-size // BGZF_BLOCK_BYTES)


def hash_of(word):
    """The hash by which ISA-L finds matches, as `bgzf_blocks` describes it."""
    for _ in range(32):
        word = word >> 1 ^ 0x82F63B78 * (word & 1)
    return word & 0x1FFF


@pytest.mark.parametrize("place", [0, 1, 2, 1 << 15, (1 << 15) + 2])
def test_blocks_do_not_depend_on_where_memory_lies(place):
    """The library hashes an address; each block has bytes of the same hash as one of them."""
    made = random.Random(place)
    compressors = [BgzfCompressor() for _ in range(3)]
    for compressor in compressors:
        compressor.compress(b"x")
        address = compressor._room.stream.ctypes.data >> 16 & 0xFFFF_FFFF
        words = []
        while len(words) < 3:
            word = made.getrandbits(32)
            words += [word] if hash_of(word) == hash_of(address) else []
        for word in words:
            block = bytearray(made.choices(range(4), k=BGZF_BLOCK_BYTES))
            block[place : place + 4] = word.to_bytes(4, "little")
            for seen, again in [(place, 100), (place, 50_000), (0, 200), (1, 300), (2, 400)]:
                block[again : again + 4] = block[seen : seen + 4]
            if place > 2:
                # The library does not remember what begins inside a match, as these bytes do.
                block[100:104] = bytes(4)
                block[500:514] = *made.choices(range(8, 256), k=10), *block[place : place + 3], 9
                block[place - 10 : place + 3] = block[500:513]
            assert len({one.compress(bytes(block)) for one in compressors}) == 1


@cache
def words_of_all_hashes(values):
    """A word for each value of the hash of an address."""
    made, words = random.Random(values), {}
    while len(words) < values:
        word = made.getrandbits(32)
        words.setdefault(hash_of(word) % values, word)
    return words


def texts_of_all_hashes(size):
    """Texts whose first bytes come again, one for each value of the hash of an address.

    Of a short text, the library uses fewer bits of the hash.
    """
    values = min(1 << 13, 1 << (2 * size).bit_length())
    words = words_of_all_hashes(values)
    texts = np.random.default_rng(size).integers(0, 4, (values, size), dtype=np.uint8)
    for text, word in zip(texts, words.values(), strict=True):
        for place in range(0, size - 4, max(5, size // 4)):
            text[place : place + 4] = np.frombuffer(word.to_bytes(4, "little"), dtype=np.uint8)
    return [text.tobytes() for text in texts]


@pytest.mark.parametrize(
    ("size", "is_slow"), [(12, False), (40, False), (600, False), (5000, False), (600, True)]
)
def test_threads_make_the_same_blocks(size, is_slow, request):
    """Each thread keeps its state elsewhere; those of igzip for Python differ in a few blocks."""
    compressor = request.getfixturevalue("slow") if is_slow else BgzfCompressor()
    texts = texts_of_all_hashes(size)
    together = threading.Barrier(4)

    def compress_all(_number):
        together.wait()
        return [compressor.compress(text) for text in texts]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(compress_all, range(4)))
    assert found[0] == found[1] == found[2] == found[3]


def test_a_library_that_disagrees_is_called_block_by_block(monkeypatch):
    monkeypatch.setattr(
        "mummergpu.output.bytes.compression.compress_blocks", lambda *arguments: FAILED
    )
    compressor = BgzfCompressor()
    assert compressor._functions is None
    assert gzip.decompress(compressor.compress(b"abc") + compressor.end()) == b"abc"


CHUNK_BYTES = BgzfCompressor.chunk_bytes
TEXT = np.random.default_rng(3).integers(0, 8, 3 * CHUNK_BYTES + 1234, dtype=np.uint8).tobytes()


def compressed(text, cuts, threads):
    found = []
    given_back = []

    def take_back(piece):
        given_back.append(piece.ctypes.data)
        piece.fill(0)

    def keep(piece):
        found.append(bytes(piece))

    stream = CompressedStream(BgzfCompressor(), threads, keep, Stats(), take_back)
    bounds = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    parts = [bytearray(text[begin:end]) for begin, end in pairwise(bounds)]
    pieces = [np.frombuffer(part, dtype=np.uint8) for part in parts]
    for piece in pieces:
        stream.add(piece)
    stream.finish()
    stream.close()
    assert given_back == [piece.ctypes.data for piece in pieces if piece.size]
    return b"".join(found)


@pytest.fixture(scope="module")
def whole():
    found = compressed(TEXT, [], 1)
    assert gzip.decompress(found) == TEXT
    return found


@settings(max_examples=12)
@given(st.lists(st.integers(0, 1 << 30), max_size=6), st.integers(1, 4))
def test_cuts_and_threads_change_nothing(whole, cuts, threads):
    assert compressed(TEXT, cuts, threads) == whole


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1])
def test_every_size_comes_back(size):
    assert gzip.decompress(compressed(TEXT[:size], [], 2)) == TEXT[:size]


def test_few_chunks_wait(monkeypatch):
    monkeypatch.setattr(BgzfCompressor, "chunk_bytes", 10)
    found = []
    stream = CompressedStream(BgzfCompressor(), 1, found.append, Stats())
    for number in range(50):
        stream.add(b"0123456789")
        assert len(found) >= number - 2
    stream.close()


def test_threads_of_the_run_compress_and_are_left_to_it(whole):
    found = []

    def keep(piece):
        found.append(bytes(piece))

    before = set(threading.enumerate())
    with ThreadPoolExecutor(2) as pool:
        stream = CompressedStream(BgzfCompressor(), 4, keep, Stats(), executor=pool)
        stream.add(TEXT)
        assert len(set(threading.enumerate()) - before) <= 2
        stream.finish()
        stream.close()
        assert b"".join(found) == whole
        # A chunk that has begun is waited for, and others are dropped.
        begun, may_end = threading.Event(), threading.Event()
        for _ in range(2):
            pool.submit(lambda: begun.set() or may_end.wait())
        begun.wait()
        stream = CompressedStream(BgzfCompressor(), 4, keep, Stats(), executor=pool)
        stream.add(TEXT)
        stream.close()
        may_end.set()
        assert pool.submit(int).result() == 0
    assert b"".join(found) == whole


def test_closing_ends_the_threads():
    before = set(threading.enumerate())
    stream = CompressedStream(BgzfCompressor(), 3, lambda piece: None, Stats())
    stream.add(TEXT)
    assert set(threading.enumerate()) - before
    stream.close()
    assert set(threading.enumerate()) <= before
