"""Measures the records at random addresses a machine reads per second, each named by the last.

No search that goes from node to node can visit more nodes per second. A record has 32 bytes, like
a node of the paper's format: whole, as in a merged tree, or in two tables, as in a split tree.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from mummergpu.cuda.device import Device
from mummergpu.cuda.kernel_cache import KernelCache, Programs
from mummergpu.cuda.program import BLOCK_THREADS, ProgramSource
from mummergpu.index.tree.layout import zeros_aligned
from mummergpu.runtime.arrays import Int64Array, UInt64Array
from mummergpu.runtime.jit import as_index, as_int64, jit, prefetch

RECORD_BYTES: Final = 32
RECORD_WORDS: Final = RECORD_BYTES // 8

DEVICE_GATHERS: Final = 512
"""The records that a thread of a device reads."""

PROCESSOR_GATHERS: Final = 1 << 16
"""The records that a lane of a processor's thread reads."""

LANES: Final = 16
"""The chains of addresses that a processor's thread follows in turn, as in `cpu_match`."""

DEVICE_KERNELS: Final = {"merged": "read_merged", "split": "read_split", "half": "read_halves"}

GATHER_PROGRAM: Final = ProgramSource("study-gathers", "study/gathers.cu")

_KEY: Final = 0x9E3779B1
"""An odd number; its multiples modulo 2**32 lie far from each other."""

WordArray = UInt64Array


def device_gathers(
    device: Device, cache: KernelCache, table_bytes: int, runs: int
) -> dict[str, float]:
    """Measure a device with a table of about `table_bytes`.

    Return the records read in a second, the median of the runs: ``merged`` for whole records,
    ``split`` for their halves in two tables, ``half`` for one half of each.
    """
    records = max(table_bytes // RECORD_BYTES, 1)
    threads = device.resident_blocks * BLOCK_THREADS
    rates = {}
    with device.current():
        program = Programs(device, cache).load(GATHER_PROGRAM)
        stream = device.new_stream()
        table, result = device.allocate(records * RECORD_BYTES), device.allocate(4)
        words = records * RECORD_BYTES // 4
        stream.launch(program, "fill_table", device.resident_blocks, (table.address, words))
        arguments = (table.address, np.uint32(records), np.uint32(DEVICE_GATHERS), result.address)
        for name, kernel in DEVICE_KERNELS.items():
            milliseconds = []
            for turn in range(runs + 1):
                before = stream.mark()
                stream.launch(program, kernel, device.resident_blocks, arguments)
                after = stream.mark()
                stream.synchronize()
                if turn:
                    milliseconds.append(after.milliseconds_since(before))
            rates[name] = threads * DEVICE_GATHERS / statistics.median(milliseconds) * 1000
        for buffer in (table, result):
            buffer.free()
        stream.free()
    return rates


def processor_gathers(
    table_bytes: int, runs: int, threads: int, map_function: Callable[..., Iterable[Any]]
) -> dict[str, float]:
    """Measure the processor, with all threads at once, which `map_function` runs.

    Return the records that all threads read in a second, the median of the runs: ``merged`` and
    ``split``, as for `device_gathers`.
    """
    records = max(table_bytes // RECORD_BYTES, 1)
    table = zeros_aligned(records * RECORD_BYTES).view(np.uint64)
    fill_table(table)
    rates = {}
    halves = {"merged": (RECORD_WORDS, 2), "split": (2, 2 * records)}
    for name, (stride, second) in halves.items():

        def follow(number: int, stride: int = stride, second: int = second) -> int:
            addresses = (np.arange(LANES, dtype=np.int64) + LANES * number) % records
            return follow_records(table, records, stride, second, addresses, PROCESSOR_GATHERS)

        seconds = []
        for turn in range(runs + 1):
            began = time.perf_counter()
            list(map_function(follow, range(threads)))
            if turn:
                seconds.append(time.perf_counter() - began)
        rates[name] = threads * LANES * PROCESSOR_GATHERS / statistics.median(seconds)
    return rates


@jit
def fill_table(table: WordArray) -> None:
    """Fill a table with words that depend on their index."""
    state = np.uint64(1)
    for word in range(table.size):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        table[word] = state >> np.uint64(20)


@jit
def follow_records(
    table: WordArray, records: int, stride: int, second: int, addresses: Int64Array, gathers: int
) -> int:
    """Follow chains of random addresses, one step of each in turn; return a number that needs all.

    Records are `stride` words apart, and their halves `second`. Each step of each chain has a key
    of its own. Otherwise chains that come to the same record would go on together or in circles,
    and the table would seem to fit in a cache.
    """
    for step in range(gathers):
        for lane in range(LANES):
            place = addresses[lane] * stride
            mixed = as_int64(table[as_index(place)]) + as_int64(table[as_index(place + second)])
            key = (step * LANES + lane) * _KEY
            address = ((mixed + key) & 0xFFFFFFFF) * records >> 32
            prefetch(table, address * stride)
            prefetch(table, address * stride + second)
            addresses[lane] = address
    return as_int64(addresses.sum())
