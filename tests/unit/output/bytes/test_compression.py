"""Compressed output is what other programs read: gzip, bgzip, samtools and zstd."""

import gzip
import os
import random
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pysam
import pytest
from isal import igzip_lib

from mummergpu.errors import OptionError
from mummergpu.output.bytes.bgzf_blocks import FAILED
from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES, BgzfCompressor, compressor_of
from mummergpu.output.formats import RowKind, names_of, target_of
from mummergpu.output.targets import OutputTarget

SIZES = [0, 1, 1000, BGZF_BLOCK_BYTES - 1, BGZF_BLOCK_BYTES, BGZF_BLOCK_BYTES + 1, 300_000]


def text_of(size, random_bytes):
    return (
        os.urandom(size) if random_bytes else bytes(random.Random(size).choices(b"ACGT\n", k=size))
    )


@pytest.mark.parametrize("random_bytes", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_bgzf_is_gzip(size, random_bytes):
    text = text_of(size, random_bytes)
    compressor = BgzfCompressor()
    packed = compressor.compress(np.frombuffer(text, dtype=np.uint8)) + compressor.compress(text)
    assert gzip.decompress(packed + compressor.end()) == text + text


@pytest.mark.parametrize("random_bytes", [False, True])
def test_each_block_says_where_the_next_one_begins(random_bytes):
    text = text_of(300_000, random_bytes)
    compressor = BgzfCompressor()
    packed = compressor.compress(text) + compressor.end()
    at, blocks = 0, []
    while at < len(packed):
        size = int.from_bytes(packed[at + 16 : at + 18], "little") + 1
        blocks.append(gzip.decompress(packed[at : at + size]))
        at += size
    assert at == len(packed) and b"".join(blocks) == text and blocks[-1] == b""
    assert max(map(len, blocks)) == BGZF_BLOCK_BYTES


@pytest.mark.parametrize("random_bytes", [False, True])
def test_htslib_reads_bgzf(random_bytes, tmp_path):
    text = text_of(300_000, random_bytes)
    compressor = BgzfCompressor()
    path = tmp_path / "x.gz"
    path.write_bytes(compressor.compress(text) + compressor.end())
    with pysam.BGZFile(str(path)) as file:
        assert file.read(len(text) + 1) == text
    if (program := shutil.which("bgzip")) is not None:
        subprocess.run([program, "-t", str(path)], check=True)


def test_zstd_reads_what_is_written(tmp_path):
    pytest.importorskip("zstandard", reason="zstandard is not installed")
    compressor = compressor_of("zstd")
    assert compressor is not None
    path = tmp_path / "x.zst"
    path.write_bytes(compressor.compress(b"one ") + compressor.compress(b"two") + compressor.end())
    try:
        done = subprocess.run(["zstd", "-dc", str(path)], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("zstd is not installed")
    assert done.stdout == b"one two"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("-", OutputTarget("-", "mummer", None)),
        ("x.txt", OutputTarget("x.txt", "mummer", None)),
        ("a.b/x", OutputTarget("a.b/x", "mummer", None)),
        ("x.txt.gz", OutputTarget("x.txt.gz", "mummer", "bgzf")),
        ("x.PAF.GZ", OutputTarget("x.PAF.GZ", "paf", "bgzf")),
        ("x.bed.bgz", OutputTarget("x.bed.bgz", "bed", "bgzf")),
        ("x.sam.zst", OutputTarget("x.sam.zst", "sam", "zstd")),
        ("x.bam", OutputTarget("x.bam", "bam", None)),
        ("x.feather", OutputTarget("x.feather", "arrow", None)),
    ],
)
def test_the_name_of_a_file_tells_its_format(path, expected):
    assert target_of(path) == expected


def test_a_format_that_is_named_wins():
    for name in names_of(RowKind.MATCHES):
        path = "x.png" if name == "plot" else "x.paf"
        assert target_of(path, name).format == name


@pytest.mark.parametrize("path", ["x.bam.gz", "x.cram.zst", "x.parquet.bgz"])
def test_nothing_is_compressed_twice(path):
    with pytest.raises(OptionError, match="once more"):
        target_of(path)


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
            if len(deflated) <= len(own):
                assert packed[at + 18 : at + length - 8] == deflated
            at += length
        assert at == len(packed)


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
        address = compressor._rooms.stream.ctypes.data >> 16 & 0xFFFF_FFFF
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


def texts_of_all_hashes(size):
    """Texts whose first bytes come again, one for each value of the hash of an address.

    Of a short text, the library uses fewer bits of the hash.
    """
    made = random.Random(size)
    values = min(1 << 13, 1 << (2 * size).bit_length())
    words = {}
    while len(words) < values:
        word = made.getrandbits(32)
        words.setdefault(hash_of(word) % values, word)
    texts = np.random.default_rng(size).integers(0, 4, (values, size), dtype=np.uint8)
    for text, word in zip(texts, words.values(), strict=True):
        for place in range(0, size - 4, max(5, size // 4)):
            text[place : place + 4] = np.frombuffer(word.to_bytes(4, "little"), dtype=np.uint8)
    return [text.tobytes() for text in texts]


@pytest.mark.parametrize("size", [12, 40, 600, 3000, 5000])
@pytest.mark.parametrize("is_slow", [False, True])
def test_threads_make_the_same_blocks(is_slow, size, request):
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
