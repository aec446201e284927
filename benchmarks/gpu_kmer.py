"""The kernels of the k-mer search on a GPU, on the paper's workloads.

    python benchmarks/gpu_kmer.py [--workloads LMONO,...] [--runs 5] [--folder DIR]

Needs a CUDA device and `mummergpu[cuda]`. Makes the workloads in the folder, where they are not
there yet, searches each with all its reads as one block (forward strand) for several tables, and
writes `results/gpu-kmer-kernels.json`: median milliseconds of each kernel by the device's own
events after a warm-up, packing of the queries included. Each workload's MEMs are compared with
those of the cpu backend. Beside the kernels stands their floor: a gather for each k-mer that is
looked up, and two for each place of its list (the position, and the reference there), at the rate
at which the device follows random addresses in as much memory; and what the copies of a block
take, in and out, at the rate that the bus was measured to have.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from devices import gather_rates, open_device
from gpu_kernels import NO_LIMIT, ONE_BLOCK, WORKLOADS, Workload
from measure import machine, save

from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.index.kmer_plan import DEVICE_COSTS, KmerJob, choose_sampling, max_table_bytes
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import KmerPage, build_kmer_page
from mummergpu.index.pages import Page
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import BREAK
from mummergpu.sequence.mems import MemColumns
from mummergpu.sequence.strand import Strand

COPIED_BYTES = 1 << 28
COLUMNS = ("offsets", "query_starts", "reference_starts", "lengths")


def build(
    workload: Workload, sampling: KmerSampling, executor: ThreadPoolExecutor
) -> list[KmerPage]:
    bases = workload.reference.codes.size
    page = Page(0, 0, bases, bases)
    reference = workload.reference
    return [build_kmer_page(reference, page, sampling, 1 << 30, Stats(), executor.map)]


def expected_mems(workload: Workload, pages: list[KmerPage]) -> MemColumns:
    backend = KmerCpuBackend(Stats())
    backend.load_pages(pages, workload.minimum_length)
    found = backend.find_mems(workload.block, (Strand.FORWARD,), NO_LIMIT)
    assert found is not None
    return found[Strand.FORWARD]


def gathers_of(workload: Workload, page: KmerPage) -> int:
    """Return how many random addresses the search of a page has to read at least."""
    table, block = page.table, workload.block
    kmer_length = table.sampling.kmer_length
    step = table.sampling.query_step(workload.minimum_length)
    last = block.base_count - kmer_length
    query_kmers = np.arange(0, max(0, last + 1), step)
    ends = block.offsets[np.searchsorted(block.offsets, query_kmers, side="right")]
    query_kmers = query_kmers[query_kmers + kmer_length <= ends]
    kmers = np.zeros(query_kmers.size, dtype=np.int64)
    has_break = np.zeros(query_kmers.size, dtype=bool)
    for place in range(kmer_length):
        codes = block.codes[query_kmers + place]
        has_break |= codes >= BREAK
        kmers |= (codes.astype(np.int64) & 3) << 2 * place
    kmers = kmers[~has_break]
    places = int((table.offsets[kmers + 1].astype(np.int64) - table.offsets[kmers]).sum())
    return kmers.size + 2 * places


def bus_rates(runs: int) -> dict[str, float]:
    """Return the bytes a second that pinned memory is copied with, in and out."""
    device = open_device(0)
    times: dict[str, list[float]] = {"in": [], "out": []}
    with device.current():
        stream = device.new_stream()
        pinned = device.pinned(COPIED_BYTES, np.uint8)
        buffer = device.allocate(COPIED_BYTES)
        for _ in range(runs + 1):
            marks = [stream.mark()]
            stream.copy_in(buffer.address, pinned)
            marks.append(stream.mark())
            stream.copy_out(pinned, buffer.address)
            marks.append(stream.mark())
            stream.synchronize()
            times["in"].append(marks[1].milliseconds_since(marks[0]))
            times["out"].append(marks[2].milliseconds_since(marks[1]))
        # They must be gone before their context is.
        del pinned, marks
        buffer.free()
        stream.free()
    device.close()
    return {way: COPIED_BYTES / statistics.median(each[1:]) * 1000 for way, each in times.items()}


def floor_of(
    workload: Workload, page: KmerPage, mems: int, bus: dict[str, float], runs: int
) -> dict[str, Any]:
    """Return what the search of a page cannot take less than, by what the device can do."""
    gathers = gathers_of(workload, page)
    # What is read at random: the table, and 16 bytes for 32 bases of the reference.
    touched = page.table.byte_count + page.joined_reference.size // 2
    rate = gather_rates(touched, runs)["half"]
    block = workload.block
    return {
        "gathers": gathers,
        "bytes_gathered_from": touched,
        "gathers_per_second": rate,
        "gathers_ms": gathers / rate * 1000,
        "copy_in_ms": (block.base_count + 8 * block.query_count) / bus["in"] * 1000,
        "copy_out_ms": (24 * mems + 8 * block.query_count) / bus["out"] * 1000,
    }


def measure(
    workload: Workload, pages: list[KmerPage], cache: KernelCache, runs: int
) -> tuple[dict[str, Any], MemColumns]:
    """Search the block several times; return medians of the device's times, and the MEMs."""
    stats = Stats()
    backend = KmerCudaBackend(
        open_device(0), cache, stats, lambda _: None, max_block_bases=ONE_BLOCK, closes_device=True
    )
    figures: list[dict[str, float]] = []
    try:
        backend.load_pages(pages, workload.minimum_length)
        for turn in range(runs + 1):
            before = {name: kernel.milliseconds for name, kernel in stats.kernels.items()}
            found = backend.find_mems(workload.block, (Strand.FORWARD,), NO_LIMIT)
            assert found is not None
            if turn:
                figures.append(
                    {
                        name: kernel.milliseconds - before.get(name, 0.0)
                        for name, kernel in stats.kernels.items()
                        if kernel.launches
                    }
                )
    finally:
        backend.close()
    kernels = {name: statistics.median(each[name] for each in figures) for name in figures[0]}
    return {
        "together_ms": statistics.median(sum(each.values()) for each in figures),
        "kernels_ms": kernels,
        "mems": found[Strand.FORWARD].count,
        "resources": {
            name: kernel.resources for name, kernel in stats.kernels.items() if kernel.resources
        },
    }, found[Strand.FORWARD]


def workload_figures(
    workload: Workload,
    cache: KernelCache,
    bus: dict[str, float],
    runs: int,
    executor: ThreadPoolExecutor,
) -> dict[str, Any]:
    bases, longest = workload.reference.codes.size, workload.minimum_length
    job = KmerJob(bases, longest, workload.block.base_count)
    chosen = choose_sampling(job, max_table_bytes(bases), DEVICE_COSTS)
    lengths = {min(longest, chosen.kmer_length + more) for more in (-1, 0, 1)}
    samplings = {chosen} | {
        KmerSampling(length, step)
        for length in lengths
        for step in (1, 2, 3, 5)
        if length + step - 1 <= longest
    }
    expected: MemColumns | None = None
    by_sampling: dict[str, Any] = {}
    for sampling in sorted(samplings, key=lambda one: (one.kmer_length, one.reference_step)):
        pages = build(workload, sampling, executor)
        if expected is None:
            expected = expected_mems(workload, pages)
        figures, found = measure(workload, pages, cache, runs)
        for name in COLUMNS:
            assert np.array_equal(getattr(found, name), getattr(expected, name)), name
        by_sampling[str(sampling)] = figures
        if sampling == chosen:
            floor = floor_of(workload, pages[0], found.count, bus, runs)
            print("  floor", floor, flush=True)
        kernels = {name: round(time, 3) for name, time in figures["kernels_ms"].items()}
        print(f"  {sampling} {figures['together_ms']:.3f} ms", kernels, flush=True)
    return {
        "query_bases": workload.block.base_count,
        "minimum_length": workload.minimum_length,
        "chosen_sampling": str(chosen),
        "chosen": by_sampling[str(chosen)],
        "floor": floor,
        "times_the_gathers": by_sampling[str(chosen)]["together_ms"] / floor["gathers_ms"],
        "by_sampling": by_sampling,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the workloads are or go")
    parser.add_argument("--kernels", type=Path, help="where compiled kernels are kept")
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        cache = KernelCache(arguments.kernels, print)
        device = open_device(0)
        results["device"] = device.name
        results["device_library"] = device.library
        device.close()
        results["bus_bytes_per_second"] = bus = bus_rates(arguments.runs)
        with ThreadPoolExecutor(machine()["cores"]) as executor:
            for name in arguments.workloads.split(","):
                print(name, flush=True)
                workload = Workload(folder, name, executor)
                results[name] = workload_figures(workload, cache, bus, arguments.runs, executor)
    save("gpu-kmer-kernels.json", results)


if __name__ == "__main__":
    main()
