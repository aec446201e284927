"""Two devices: contexts, pinned memory and searches of each, and of both at once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.both_backends import as_lists, kmer_case, random_case
from helpers.index_pages import build_kmer_pages
from helpers.search_cases import STRANDS, find_on

from mummergpu.cuda.device import Device
from mummergpu.cuda.device_library import device_opener
from mummergpu.cuda.pinned_staging import PIECE_BYTES, Staging
from mummergpu.cuda.pool import DevicePool
from mummergpu.errors import BackendError
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.options import KmerOptions, TreeOptions
from mummergpu.index.pages import plan_pages
from mummergpu.index.tree.build import build_page
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.backends.several_devices import SeveralDevices
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.open_cuda import open_cuda_backend
from mummergpu.matching.options import DeviceOptions
from mummergpu.matching.tree.cpu import TreeCpuBackend
from mummergpu.runtime.stats import Stats

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.fixture
def devices(device_numbers: tuple[int, ...], device_library: str) -> Iterator[list[Device]]:
    """The first two devices."""
    with DevicePool(device_opener(device_library)) as pool:
        yield [pool.device(number) for number in device_numbers[:2]]


def numbers_of(device: int, count: int = 3 * PIECE_BYTES // 8 + 5) -> np.ndarray[Any, Any]:
    """Numbers that tell by which device they were copied."""
    return np.arange(count, dtype=np.int64) * 7 + (device << 40)


def round_trip(device: Device, number: int) -> bool:
    """Copy numbers to a device and back, through pinned memory; tell whether they are equal."""
    sent = numbers_of(number)
    received = np.zeros_like(sent)
    stream = device.new_stream()
    staging = Staging(device, stream)
    buffer = device.allocate(sent.nbytes)
    staging.copy_in(buffer.address, sent)
    staging.copy_out(received, buffer.address)
    stream.synchronize()
    staging.free()
    buffer.free()
    stream.free()
    return bool(np.array_equal(sent, received))


def test_statements_of_two_devices_may_be_nested(devices: list[Device]) -> None:
    one, other = devices
    with one.current():
        assert round_trip(one, 0)
        stream, buffer = one.new_stream(), one.allocate(1 << 20)
        with other.current():
            assert round_trip(other, 1)
            with one.current(), one.current():
                stream.fill_zero(buffer.address, 1 << 20)
                stream.synchronize()
            assert round_trip(other, 1)
        zeros = np.full(1 << 20, 7, dtype=np.uint8)
        stream.copy_out(zeros, buffer.address)
        stream.synchronize()
        assert not zeros.any()
        buffer.free()
        stream.free()


@pytest.mark.usefixtures("whole_device")
def test_memory_is_taken_from_the_current_device(devices: list[Device]) -> None:
    one, other = devices
    size = 1 << 30
    with one.current():
        buffer = one.allocate(size)
    free = []
    for device in devices:
        with device.current():
            free.append(device.memory()[0])
    with one.current():
        buffer.free()
    with one.current():
        assert one.memory()[0] - free[0] >= size // 2
    with other.current():
        assert abs(other.memory()[0] - free[1]) < size // 2


def test_many_threads_use_both_devices(devices: list[Device]) -> None:
    meeting = threading.Barrier(8, timeout=60)

    def work(turn: int) -> bool:
        meeting.wait()
        found = []
        # Each thread turns from one device to the other.
        for step in range(4):
            number = (turn + step) % 2
            with devices[number].current():
                found.append(round_trip(devices[number], turn))
        return all(found)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(8)))


def test_an_error_of_the_driver_is_an_error_of_the_backend(devices: list[Device]) -> None:
    with pytest.raises(BackendError, match="the device failed"), devices[1].current():
        devices[1].load(b"no program")
    with devices[1].current():
        assert round_trip(devices[1], 1)


def opened(
    kind: KmerOptions | TreeOptions, numbers: tuple[int, ...] | None, device_library: str
) -> Any:
    options = DeviceOptions(backend="cuda", numbers=numbers, memory=4 << 30, library=device_library)
    return open_cuda_backend(kind, options, Stats(), print)


def check_searches(several: Backend[Any], alone: Backend[Any], case: Any) -> None:
    """Search from many threads; compare with the processor."""
    one, other = case.block.halves()
    blocks = [case.block, one, other]
    expected = [as_lists(find_on(alone, block, strand)) for block in blocks for strand in STRANDS]

    def search(turn: int) -> bool:
        block, strand = divmod(turn % len(expected), len(STRANDS))
        found = as_lists(find_on(several, blocks[block], STRANDS[strand]))
        return found == expected[turn % len(expected)]

    with ThreadPoolExecutor(12) as threads:
        assert all(threads.map(search, range(60)))


@pytest.mark.parametrize("which", ["two", "all", "two, the other way round"])
def test_tables_on_several_devices(
    device_numbers: tuple[int, ...], device_library: str, which: str
) -> None:
    numbers = {"two": device_numbers[:2], "all": None}.get(which, device_numbers[1::-1])
    case = kmer_case(3, 14)
    bases = case.reference.codes.size
    pages = build_kmer_pages(case.reference, plan_pages(bases, bases, 0), KmerSampling(6))
    alone = KmerCpuBackend(Stats())
    backend = opened(KmerOptions(), numbers, device_library)
    assert isinstance(backend, SeveralDevices)
    for each in (alone, backend):
        each.load_pages(pages, case.minimum_length)
    check_searches(backend, alone, case)
    counts = backend._block_counts
    backend.close()
    assert len(counts) == len(numbers or device_numbers) and min(counts.values()) > 5


@pytest.mark.parametrize("code", ["m", "QRTmrtn"])
def test_trees_on_two_devices(
    device_numbers: tuple[int, ...], device_library: str, code: str
) -> None:
    policy = Policy.from_code(code)
    case = random_case(1, 5000, 300)
    bases = case.reference.codes.size
    pages = plan_pages(bases, 1500, case.minimum_length - 1)

    def trees(of: Policy) -> list[Any]:
        return [build_page(case.reference, page, Layout.of(of), Stats()) for page in pages]

    alone = TreeCpuBackend(Stats())
    alone.load_pages(trees(Policy()), case.minimum_length)
    backend = opened(TreeOptions(policy=policy), device_numbers[:2], device_library)
    for _ in range(2):
        backend.release_pages()
        backend.load_pages(trees(policy), case.minimum_length)
    check_searches(backend, alone, case)
    backend.close()


def test_programs_are_loaded_on_each_device(
    device_numbers: tuple[int, ...], tmp_path: Path
) -> None:
    """The second device takes the image that was compiled for the first."""
    options = DeviceOptions("cuda", device_numbers[:2], 4 << 30, kernel_folder=str(tmp_path))
    case = kmer_case(3, 14)
    bases = case.reference.codes.size
    pages = build_kmer_pages(case.reference, plan_pages(bases, bases, 0), KmerSampling(6))
    stats = Stats()
    backend: Any = open_cuda_backend(KmerOptions(), options, stats, print)
    backend.load_pages(pages, case.minimum_length)
    caches = {id(each.cache): each.cache for each in backend._backends.values()}
    backend.close()
    (cache,) = caches.values()
    assert (cache.hits, cache.misses) == (1, 1)


def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "mummergpu", *arguments]
    return subprocess.run(command, capture_output=True, check=True)


@pytest.mark.parametrize("search", ["tree", "kmer"])
def test_the_command_writes_the_same_bytes(
    device_numbers: tuple[int, ...], on_device: list[str], search: str, tmp_path: Path
) -> None:
    workload, report = tmp_path / "LMONO", tmp_path / "stats.json"
    run("workload", "LMONO", "-o", str(workload), "--scale", "0.02")
    given = [str(workload / "reference.fa"), str(workload / "reads.fq"), "-b", "-t", "8"]
    given += ["--search", search, "--block-size", "50k"]
    expected = run(*given, "-C").stdout
    pair = ",".join(map(str, device_numbers[:2]))
    for names in (pair, "all"):
        device = [*on_device, "--device", names]
        found = run(*given, *device, "--stats", str(report), "-v")
        assert found.stdout == expected
        assert b"PyCUDA WARNING" not in found.stderr
        assert b"could not be cleaned up" not in found.stderr
        settings = json.loads(report.read_text())["settings"]
        count = 2 if names == pair else len(device_numbers)
        assert len(settings["device"].split(", ")) == count
        assert len(settings["device_blocks"]) == count
        assert min(settings["device_blocks"].values()) > 0


def test_a_number_of_no_device_is_an_error(device_numbers: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "r.fa").write_text(">r\n" + "ACGTTGCA" * 30 + "\n")
    command = [sys.executable, "-m", "mummergpu", str(tmp_path / "r.fa"), str(tmp_path / "r.fa")]
    done = subprocess.run(
        [*command, "--backend", "cuda", "--device", "0,99"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "there is no device 99" in done.stderr and "Traceback" not in done.stderr
