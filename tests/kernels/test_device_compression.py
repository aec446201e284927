"""Blocks of bgzf that the host's device makes; zlib deflates in place of nvCOMP."""

import gzip
import os
import random
import zlib
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from helpers.host_device import everything_given_back
from helpers.played_deflater import PlayedDeflater, deflated
from helpers.read_pairs import write_pairs
from helpers.watched_device import WatchedDevice

import mummergpu
from mummergpu.cli.main import main
from mummergpu.cuda.program import read_sources
from mummergpu.errors import BackendError, LibraryError, OptionError
from mummergpu.output.bytes import device_compression
from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES, BgzfCompressor
from mummergpu.output.bytes.device_compression import BGZF_PROGRAM, SLOTS, DeviceBgzfCompressor
from mummergpu.runtime.stats import Stats

BLOCKS = 3
SIZES = [
    *(0, 1, 2, 31, 32, 33, 1000, BGZF_BLOCK_BYTES - 1, BGZF_BLOCK_BYTES, BGZF_BLOCK_BYTES + 1),
    *(BLOCKS * BGZF_BLOCK_BYTES, 7 * BGZF_BLOCK_BYTES + 77),
]


@pytest.fixture
def opened(compiler, monkeypatch):
    """Opens compressors whose chunks are small; in the end nothing is left on their devices."""
    monkeypatch.setattr(device_compression, "BLOCKS_AT_ONCE", BLOCKS)
    monkeypatch.setattr(DeviceBgzfCompressor, "chunk_bytes", BLOCKS * BGZF_BLOCK_BYTES)
    every = []

    def open_compressor(deflater=None, device=None):
        device = device or WatchedDevice()
        every.append((device, None))
        program = device.load(compiler.cubin(read_sources(), BGZF_PROGRAM, device.architecture))
        made = DeviceBgzfCompressor(device, program, deflater or PlayedDeflater(), Stats())
        every[-1] = device, made
        return made

    yield open_compressor
    for device, compressor in every:
        if compressor is not None:
            compressor.close()
        device.close()
        assert everything_given_back(device)


def text_of(size, kind):
    if kind == "random":
        return os.urandom(size)
    return bytes(random.Random(size).choices(b"ACGT\n" if kind == "letters" else b"\0", k=size))


def blocks_of(packed):
    """The blocks, by the size that each one tells."""
    found, at = [], 0
    while at < len(packed):
        size = int.from_bytes(packed[at + 16 : at + 18], "little") + 1
        found.append(packed[at : at + size])
        at += size
    assert at == len(packed)
    return found


@pytest.mark.parametrize("kind", ["letters", "random", "zeros"])
@pytest.mark.parametrize("size", SIZES)
def test_the_blocks_are_those_of_the_processor(opened, size, kind):
    """Both are made by zlib, of the same level."""
    text = text_of(size, kind)
    expected = BgzfCompressor()._compress_by_blocks(text)
    packed = opened().compress(text)
    assert blocks_of(packed) == blocks_of(expected) and gzip.decompress(packed) == text


def test_parts_are_joined(opened):
    text = text_of(BLOCKS * BGZF_BLOCK_BYTES - 5, "letters")
    cuts = [0, 0, 1, 70_000, 70_000, len(text)]
    parts = [np.frombuffer(text[begin:end], dtype=np.uint8) for begin, end in pairwise(cuts)]
    compressor = opened()
    assert compressor.compress_parts(parts) == compressor.compress(text)
    assert compressor.end() == BgzfCompressor().end()


def test_threads_share_a_compressor(opened):
    compressor = opened()
    texts = [text_of(size, "letters") for size in range(1000, 200_000, 4321)]
    with ThreadPoolExecutor(2 * SLOTS) as pool:
        found = list(pool.map(compressor.compress, texts))
    assert [gzip.decompress(packed) for packed in found] == texts
    assert 1 <= len(compressor._slots) <= SLOTS


def test_fewer_slots_where_memory_is_short(opened):
    used = sum(buffer.size for slot in opened()._slots for buffer in slot._buffers)
    compressor = opened(device=WatchedDevice(used * 5 // 2))
    texts = [text_of(size, "letters") for size in range(1000, 100_000, 4321)]
    with ThreadPoolExecutor(2 * SLOTS) as pool:
        assert [gzip.decompress(packed) for packed in pool.map(compressor.compress, texts)] == texts
    assert len(compressor._slots) <= 2 and compressor._device.refusals <= 1


def test_too_little_memory_is_an_error(opened):
    with pytest.raises(BackendError, match="too little memory is left for compression"):
        opened(device=WatchedDevice(100_000))


@pytest.mark.parametrize(
    ("deflate", "message"),
    [
        (lambda text: b"\xff" * 20, "cannot be inflated"),
        (lambda text: deflated(bytes(len(text))), "cannot be inflated"),
        (lambda text: deflated(text)[:-1], "cannot be inflated"),
    ],
)
def test_a_library_that_deflates_wrongly_is_refused(opened, deflate, message):
    with pytest.raises(LibraryError, match=f"nvidia-libnvcomp.*{message}"):
        opened(PlayedDeflater(deflate))


def test_a_failure_of_a_block_is_an_error(opened):
    deflater = PlayedDeflater()
    compressor = opened(deflater)
    deflater.state = 19
    with pytest.raises(BackendError, match="nvCOMP: status 19 of a block"):
        compressor.compress(b"ACGT" * 1000)
    deflater.state, deflater.refuses = 0, True
    with pytest.raises(BackendError, match="status 10"):
        compressor.compress(b"ACGT" * 1000)
    deflater.refuses = False
    assert gzip.decompress(compressor.compress(b"ACGT" * 1000)) == b"ACGT" * 1000


@pytest.fixture
def deflater(monkeypatch):
    """A library that is installed."""
    played = PlayedDeflater(lambda text: zlib.compress(text, 6)[2:-4])
    monkeypatch.setattr("mummergpu.cuda.nvcomp.load_nvcomp", lambda: played)
    return played


@pytest.mark.parametrize("words", [[], ["--sort"], ["--sort", "--mark-duplicates"]])
def test_map_writes_the_same_records(machine, output, deflater, tmp_path, words):
    files = write_pairs(Path(), 240)
    given = ["map", files.reference, files.first, files.second, *words, "--backend", "cuda"]
    ours, expected = tmp_path / "ours.bam", tmp_path / "expected.bam"
    output(*given, "-o", str(expected))
    output(*given, "-o", str(ours), "--gpu-compression")
    assert deflater.counts and without_command(ours) == without_command(expected)
    assert ours.read_bytes() != expected.read_bytes()
    assert (tmp_path / "ours.bam.bai").exists() == bool(words)
    for device in machine.devices:
        assert everything_given_back(device)


def without_command(path):
    """The content of a BAM but for the header's text, which names the command."""
    content = gzip.decompress(path.read_bytes())
    return content[8 + int.from_bytes(content[4:8], "little") :]


def test_python_compresses_on_the_device_too(machine, deflater, tmp_path):
    files = write_pairs(Path(), 50)
    path = tmp_path / "x.bam"
    given = {"output": path, "backend": "cuda", "gpu_compression": True}
    mummergpu.map(files.reference, files.first, **given)
    assert deflater.counts and gzip.decompress(path.read_bytes())[:3] == b"BAM"
    with pytest.raises(OptionError, match="needs a GPU, and the backend is 'cpu'"):
        mummergpu.map(files.reference, files.first, **given | {"backend": "cpu"})
    with pytest.raises(OptionError, match="needs BAM"):
        mummergpu.map(files.reference, files.first, **given | {"output": tmp_path / "x.sam"})


def test_map_compresses_sam(machine, output, deflater, tmp_path):
    files = write_pairs(Path(), 50)
    path = tmp_path / "x.sam.gz"
    given = ["map", files.reference, files.first, "--backend", "cuda"]
    expected, _ = output(*given)
    output(*given, "-o", str(path), "--gpu-compression")
    assert deflater.counts
    found = gzip.decompress(path.read_bytes()).splitlines()
    assert [line for line in found if line[:3] != b"@PG"] == [
        line for line in expected.splitlines() if line[:3] != b"@PG"
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "x.sam"], "--gpu-compression: needs BAM"),
        (["-o", "x.cram"], "--gpu-compression: needs BAM"),
        ([], "--gpu-compression: needs BAM"),
        (["-o", "x.bam", "--backend", "cpu"], "--gpu-compression and --backend cpu exclude"),
        (["-o", "x.bam", "--backend", "cuda"], "nvidia-libnvcomp-cu13 .*: not installed"),
    ],
)
def test_what_cannot_be_done_is_an_error(machine, capsys, monkeypatch, words, message):
    monkeypatch.setattr("mummergpu.cuda.nvcomp._paths", lambda: iter(["libnvcomp-none.so"]))
    files = write_pairs(Path(), 50)
    assert main(["map", files.reference, files.first, "--gpu-compression", *words]) != 0
    error = capsys.readouterr().err
    assert message.replace(" .*", "") in error or all(
        part in error for part in message.split(" .*")
    )
    assert not Path("x.bam").exists()
