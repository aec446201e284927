"""How fast an index file goes from the page cache to a GPU: pageable, and through pinned pieces.

    python benchmarks/gpu_upload.py [--mebibytes 4096] [--threads 1,2,4,8] [--pieces 4,8,16,32]
        [--runs 3] [--device 0] [--folder DIR] [--index FILE] [--name gpu-upload.json]

Needs a CUDA device and `mummergpu[cuda]`. Each job maps the file anew and copies it to the device,
so that it pays for page faults and for pinning (`first`); then it copies the same mapping once more
through the same pinned memory (`again`), and frees that (`release`). The floors are the bus, from
pinned memory that is filled already, and what threads of the host copy from a new mapping to
memory that is in use already. Without `--index` a file is made in the folder. What arrives is
compared with the file. Results go to `results/`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from devices import open_device
from measure import save, summary

from mummergpu.cuda import upload
from mummergpu.cuda.device import Buffer, Device, DeviceMemoryError, Stream
from mummergpu.cuda.driver import driver_facts
from mummergpu.cuda.upload import UPLOAD_PIECE_BYTES, Uploader
from mummergpu.index.mapped_file import map_file

MEBIBYTE = 1 << 20
BLOCK_BYTES = 64 * MEBIBYTE
MARK_BYTES = MEBIBYTE // 8
"""The number of its block stands in the file once in so many bytes."""

BUS_BYTES = 32 * MEBIBYTE
BUS_COPIES = 128
SPOTS = 64
SPOT_BYTES = MEBIBYTE

ByteArray = npt.NDArray[np.uint8]
Job = Callable[[], dict[str, float]]


def write_file(path: Path, size: int) -> None:
    """Write random bytes; the number of each block stands in many places of it."""
    free = shutil.disk_usage(path.parent).free
    if free < size + BLOCK_BYTES:
        raise SystemExit(f"{path.parent} has room for {free >> 20:,} MiB (--folder, --mebibytes)")
    block = np.random.default_rng(1).integers(0, 256, BLOCK_BYTES, dtype=np.uint8)
    with open(path, "wb") as file:
        for number, begin in enumerate(range(0, size, BLOCK_BYTES)):
            block.view(np.uint64)[:: MARK_BYTES // 8] = number
            file.write(block[: min(BLOCK_BYTES, size - begin)].data)


def mapped(path: Path, size: int) -> ByteArray:
    """Return the first bytes of a file in a new mapping, of which no page was touched."""
    with open(path, "rb") as file:
        return map_file(file.fileno(), os.fstat(file.fileno()).st_size)[:size]


@dataclass
class Target:
    """A device, and its memory for the file."""

    number: int
    device: Device
    stream: Stream
    buffer: Buffer
    size: int

    def clear(self) -> None:
        """Zero the memory for the file."""
        with self.device.current():
            self.stream.fill_zero(self.buffer.address, self.size)
            self.stream.synchronize()

    def upload(self, data: ByteArray, threads: int, piece_bytes: int) -> list[float]:
        """Copy an array twice through the same pinned memory.

        Returns the seconds of each copy, and those that it takes to free the pinned memory.
        """
        seconds = []
        with self.device.current():
            uploader = Uploader(self.device, self.stream, threads, piece_bytes)
            with uploader.prepared(data.size):
                for _ in range(2):
                    begin = time.perf_counter()
                    uploader.copy_in(self.buffer.address, data)
                    self.stream.synchronize()
                    seconds.append(time.perf_counter() - begin)
                begin = time.perf_counter()
            seconds.append(time.perf_counter() - begin)
        return seconds

    def upload_pageable(self, data: ByteArray) -> list[float]:
        """Copy an array twice as it is; return the seconds of each copy."""
        seconds = []
        with self.device.current():
            for _ in range(2):
                begin = time.perf_counter()
                self.stream.copy_in(self.buffer.address, data)
                self.stream.synchronize()
                seconds.append(time.perf_counter() - begin)
        return seconds

    def check(self, data: ByteArray) -> None:
        """Compare spots of the device's memory, first and last bytes included, with the file."""
        last = max(0, data.size - SPOT_BYTES)
        spots = {0, last, *np.random.default_rng(data.size).integers(0, last + 1, SPOTS).tolist()}
        with self.device.current():
            for spot in spots:
                expected = data[spot : spot + SPOT_BYTES]
                found = np.empty_like(expected)
                self.stream.copy_out(found, self.buffer.address + spot)
                self.stream.synchronize()
                if not np.array_equal(found, expected):
                    raise RuntimeError(f"device {self.number}: other bytes arrived at {spot:,}")

    def bus_seconds(self) -> float:
        """Return how long the bus takes to copy `BUS_COPIES` times `BUS_BYTES` of pinned memory."""
        with self.device.current():
            piece = self.device.pinned(BUS_BYTES, np.uint8)
            piece[:] = 1
            count = min(BUS_COPIES, max(1, self.size // BUS_BYTES))
            size = min(BUS_BYTES, self.size)
            begin = time.perf_counter()
            for _ in range(count):
                self.stream.copy_in(self.buffer.address, piece[:size])
            self.stream.synchronize()
            seconds = time.perf_counter() - begin
            del piece
        return seconds * BUS_COPIES * BUS_BYTES / (count * size)

    def pin_seconds(self) -> float:
        """Return how long it takes to pin `BUS_BYTES`."""
        with self.device.current():
            begin = time.perf_counter()
            piece = self.device.pinned(BUS_BYTES, np.uint8)
            seconds = time.perf_counter() - begin
            del piece
        return seconds


@contextmanager
def open_target(number: int, size: int) -> Iterator[Target]:
    """Open a device with a stream and memory for the file."""
    device = open_device(number)
    try:
        with device.current():
            try:
                buffer = device.allocate(size)
            except DeviceMemoryError as error:
                raise SystemExit(f"device {number}: no room for {error}") from error
            stream = device.new_stream()
        try:
            yield Target(number, device, stream, buffer, size)
        finally:
            with device.current():
                buffer.free()
                stream.free()
    finally:
        device.close()


def figures_of(size: int, seconds: Sequence[float]) -> dict[str, float]:
    """Return the figures of a first copy and of another one, and of what follows, if anything."""
    first, again, *release = seconds
    figures = {
        "first_seconds": first,
        "first_gigabytes_per_second": size / first / 1e9,
        "again_seconds": again,
        "again_gigabytes_per_second": size / again / 1e9,
    }
    return figures | dict(zip(["release_seconds"], release, strict=False))


def copied_by_threads(path: Path, size: int, threads: int) -> dict[str, float]:
    """Copy the file from a new mapping, twice, to a piece of memory for each thread."""
    pieces = [np.ones(UPLOAD_PIECE_BYTES, dtype=np.uint8) for _ in range(threads)]
    data = mapped(path, size)

    def copy(thread: int) -> None:
        step = threads * UPLOAD_PIECE_BYTES
        for begin in range(thread * UPLOAD_PIECE_BYTES, size, step):
            part = data[begin : begin + UPLOAD_PIECE_BYTES]
            pieces[thread][: part.size] = part

    seconds = []
    with ThreadPoolExecutor(threads) as executor:
        for _ in range(2):
            begin = time.perf_counter()
            list(executor.map(copy, range(threads)))
            seconds.append(time.perf_counter() - begin)
    return figures_of(size, seconds)


class Jobs:
    """The jobs by name, which run in turn."""

    def __init__(self, path: Path, size: int, target: Target) -> None:
        self._path = path
        self._size = size
        self._target = target
        self.jobs: dict[str, Job] = {}
        self.failures: dict[str, str] = {}

    def add_pageable(self) -> None:
        """Add a copy without pinned memory."""
        self.jobs["pageable"] = lambda: self._uploaded(Target.upload_pageable)

    def add_pinned(self, threads: int, mebibytes: int) -> None:
        """Add a copy through pieces of so many MiB."""

        def copy(target: Target, data: ByteArray) -> list[float]:
            return target.upload(data, threads, mebibytes * MEBIBYTE)

        name = pinned_name(threads, mebibytes)
        self.jobs[name] = lambda: self._uploaded(copy)

    def add_threads(self, threads: int) -> None:
        """Add a copy within the host: the floor of so many threads."""
        self.jobs[f"host, {threads} threads"] = lambda: copied_by_threads(
            self._path, self._size, threads
        )

    def add_bus(self) -> None:
        """Add the floor of the bus, and the pinning of memory."""
        size, target = BUS_COPIES * BUS_BYTES, self._target
        self.jobs["bus"] = lambda: figures_of(size, [target.bus_seconds() for _ in range(2)])
        self.jobs["pinning"] = lambda: figures_of(
            BUS_BYTES, [target.pin_seconds() for _ in range(2)]
        )

    def run(self, runs: int) -> dict[str, Any]:
        """Run the jobs in turn, after one uncounted turn; a job that fails is left out."""
        figures: dict[str, list[dict[str, float]]] = {name: [] for name in self.jobs}
        for turn in range(runs + 1):
            for name, job in self.jobs.items():
                if name in self.failures:
                    continue
                try:
                    figure = job()
                except Exception as error:
                    traceback.print_exc()
                    self.failures[name] = f"{type(error).__name__}: {error}"
                    continue
                if turn:
                    figures[name].append(figure)
            print(f"turn {turn} of {runs} is done", file=sys.stderr, flush=True)
        return {name: summary(each) for name, each in figures.items() if name not in self.failures}

    def _uploaded(self, copy: Callable[[Target, ByteArray], list[float]]) -> dict[str, float]:
        """Copy a new mapping to the device."""
        self._target.clear()
        data = mapped(self._path, self._size)
        seconds = copy(self._target, data)
        self._target.check(data)
        return figures_of(self._size, seconds)


def pinned_name(threads: int, mebibytes: int) -> str:
    return f"{threads} threads, {mebibytes} MiB"


def table(results: dict[str, Any], threads: list[int], pieces: list[int]) -> str:
    """Return the medians as text: GB/s of the first copy, and of another one in brackets."""

    def cell(name: str) -> str:
        if name not in results:
            return "failed"
        first, again = (
            results[name][f"{which}_gigabytes_per_second"]["median"] for which in ("first", "again")
        )
        return f"{first:.1f} ({again:.1f})"

    heads = ["threads", *(f"{size} MiB" for size in pieces), "host alone"]
    rows = [
        [
            str(count),
            *(cell(pinned_name(count, size)) for size in pieces),
            cell(f"host, {count} threads"),
        ]
        for count in threads
    ]
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    lines = [
        "| " + " | ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in [heads, ["-" * width for width in widths], *rows]
    ]
    others = [f"{name}: {cell(name)}" for name in ("pageable", "bus", "pinning")]
    return "\n".join(["GB/s of the first copy (and again)", *lines, *others])


def numbers_in(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mebibytes", type=int, default=4096)
    parser.add_argument("--threads", type=numbers_in, default=[1, 2, 4, 8])
    parser.add_argument("--pieces", type=numbers_in, default=[4, 8, 16, 32])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--index", type=Path)
    parser.add_argument("--name", default="gpu-upload.json")
    given = parser.parse_args()
    # Here all threads are wanted that are asked for, even more than the program uses.
    upload.MOST_THREADS = max(given.threads)  # type: ignore[misc]
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        size = given.mebibytes * MEBIBYTE
        path = given.index or Path(folder) / "bytes"
        if given.index is None:
            write_file(path, size)
        size = min(size, path.stat().st_size)
        if size < upload.LEAST_BYTES:
            raise SystemExit(f"{size:,} bytes are too few: they go without pinned memory")
        with open_target(given.device, size) as target:
            jobs = Jobs(path, size, target)
            jobs.add_pageable()
            for threads in given.threads:
                jobs.add_threads(threads)
                for mebibytes in given.pieces:
                    jobs.add_pinned(threads, mebibytes)
            jobs.add_bus()
            results = jobs.run(given.runs)
            name = target.device.name
    print(table(results, given.threads, given.pieces))
    facts = {
        "bytes": size,
        "device": name,
        "cuda_of_driver": driver_facts().cuda_version,
        "failures": jobs.failures,
    }
    print(save(given.name, facts | {"jobs": results}))
    if jobs.failures:
        raise SystemExit(f"failed: {', '.join(jobs.failures)}")


if __name__ == "__main__":
    main()
