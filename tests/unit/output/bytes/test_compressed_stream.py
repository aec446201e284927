"""A stream is compressed to the same bytes, however it is cut and by however many threads."""

import gzip
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.output.bytes.compression import BgzfCompressor, CompressedStream

CHUNK_BYTES = BgzfCompressor.chunk_bytes
TEXT = np.random.default_rng(3).integers(0, 8, 3 * CHUNK_BYTES + 1234, dtype=np.uint8).tobytes()


def compressed(text, cuts, threads):
    found = []
    given_back = []

    def take_back(piece):
        assert isinstance(piece, np.ndarray)
        given_back.append(piece.ctypes.data)
        piece.fill(0)

    stream = CompressedStream(BgzfCompressor(), threads, found.append, take_back)
    bounds = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    pieces = [
        np.frombuffer(bytearray(text[begin:end]), dtype=np.uint8) for begin, end in pairwise(bounds)
    ]
    for piece in pieces:
        stream.add(piece)
    stream.finish()
    stream.close()
    assert given_back == [piece.ctypes.data for piece in pieces if piece.size]
    return b"".join(found)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 1 << 30), max_size=6), st.integers(1, 4))
def test_cuts_and_threads_change_nothing(cuts, threads):
    found = compressed(TEXT, cuts, threads)
    assert found == compressed(TEXT, [], 1)
    assert gzip.decompress(found) == TEXT


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1])
def test_every_size_comes_back(size):
    assert gzip.decompress(compressed(TEXT[:size], [], 2)) == TEXT[:size]


def test_few_chunks_wait(monkeypatch):
    monkeypatch.setattr(BgzfCompressor, "chunk_bytes", 10)
    found = []
    stream = CompressedStream(BgzfCompressor(), 1, found.append)
    for number in range(50):
        stream.add(b"0123456789")
        assert len(found) >= number - 2
    stream.close()


def test_closing_ends_the_threads():
    before = set(threading.enumerate())
    stream = CompressedStream(BgzfCompressor(), 3, lambda piece: None)
    stream.add(TEXT)
    assert set(threading.enumerate()) - before
    stream.close()
    assert set(threading.enumerate()) <= before
