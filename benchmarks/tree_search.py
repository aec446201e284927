"""The tree search on a GPU beside the same search on the processor: the paper's section 4.8.

    python benchmarks/tree_search.py [--workloads HSILL=hg38.fa.gz,LMONO,...] [--threads 1,16]

Needs a CUDA device and `mummergpu[cuda]`, except with `--no-device`. Each workload's reads are
searched on one strand, in pages of 8 Mbp, with the policy `m`. Three things are timed, and their
medians written to `results/tree-search.json`:

- the kernels: milliseconds of the device by its own events, and seconds of all threads together,
- the search in memory, from reads to matches: seconds,
- the whole command, from files to a file, with the trees in an index file: seconds.

MUMmerGPU 1.0 matched on the device and printed on one thread of the processor. Its column of the
paper's Table 2 is made of these two parts.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gpu_kernels import NO_LIMIT, ONE_BLOCK, WORKLOADS, Workload
from measure import in_turn, machine, run_process, save

from mummergpu.index.tree.flatten import TreePage
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import DEFAULT_POLICY
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.tree.cpu import SIZES, TreeCpuBackend
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand

FORWARD = (Strand.FORWARD,)
KERNELS = ("match_kernel", "print_kernel")


def pieces_of(block: QueryBlock) -> list[QueryBlock]:
    """Return the pieces of a block that threads of the processor search."""
    if block.base_count <= SIZES.block_bases:
        return [block]
    return [piece for half in block.halves() for piece in pieces_of(half)]


def median_of(figures: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(each[name] for each in figures) for name in figures[0]}


def processor_figures(
    workload: Workload, pages: Sequence[TreePage], threads: int, runs: int
) -> dict[str, float]:
    """Search on some threads of the processor, after one uncounted search."""
    stats = Stats()
    backend = TreeCpuBackend(stats)
    backend.load_pages(pages, workload.minimum_length)
    pieces = pieces_of(workload.block)

    def count_of(piece: QueryBlock) -> int:
        found = backend.find_mems(piece, FORWARD, NO_LIMIT)
        assert found is not None
        return found[Strand.FORWARD].count

    figures = []
    with ThreadPoolExecutor(threads) as pool:
        for turn in range(runs + 1):
            before = {name: stats.stages[name].seconds for name in stats.stages}
            began = time.perf_counter()
            mems = sum(pool.map(count_of, pieces))
            seconds = time.perf_counter() - began
            if turn:
                figures.append(
                    {name: stats.stages[name].seconds - before.get(name, 0.0) for name in KERNELS}
                    | {"search": seconds, "mems": mems}
                )
    return median_of(figures)


def device_figures(
    workload: Workload, pages: Sequence[TreePage], runs: int
) -> dict[str, float | str]:
    """Search on the device, after one uncounted search."""
    from devices import open_device

    from mummergpu.cuda.kernel_cache import KernelCache
    from mummergpu.matching.tree.cuda import TreeCudaBackend

    stats = Stats()
    device = open_device(0)
    backend = TreeCudaBackend(
        *(device, KernelCache(None, print), DEFAULT_POLICY, stats, lambda _: None),
        max_block_bases=ONE_BLOCK,
        closes_device=True,
    )
    figures = []
    try:
        backend.load_pages(pages, workload.minimum_length)
        for turn in range(runs + 1):
            before = {name: stats.stages[name].seconds for name in stats.stages}
            began = time.perf_counter()
            found = backend.find_mems(workload.block, FORWARD, NO_LIMIT)
            seconds = time.perf_counter() - began
            assert found is not None
            if turn:
                figures.append(
                    {name: stats.stages[name].seconds - before[name] for name in KERNELS}
                    | {"search": seconds, "mems": found[Strand.FORWARD].count}
                )
            del found
    finally:
        backend.close()
    return {"device": device.name, **median_of(figures)}


def command_figures(
    folder: Path, name: str, length: int, threads: Sequence[int], runs: int, with_device: bool
) -> dict[str, Any]:
    """Time whole commands in turn, each with the trees in an index file."""
    program = [sys.executable, "-m", "mummergpu"]
    index, output = folder / f"{name}.mgi", folder / f"{name}.txt"
    built = [*program, "index", "-q", str(folder / name / "reference.fa"), "-l", str(length)]
    run_process([*built, "--search", "tree", "-o", str(index)])
    search = [*program, "-q", str(index), str(folder / name / "reads.fq"), "-l", str(length)]
    jobs = {
        f"cpu, {count} threads": [*search, "--backend", "cpu", "--threads", str(count)]
        for count in threads
    }
    if with_device:
        jobs["cuda"] = [*search, "--backend", "cuda"]
    # Each is bound to its own words; a closure would see those of the last one.
    return in_turn(
        runs,
        **{
            job: lambda words=words: run_process([*words, "-o", str(output)])
            for job, words in jobs.items()
        },
    )


def paper_table(device: dict[str, Any], one_thread: dict[str, float]) -> dict[str, float]:
    """Return Table 2 of the paper: milliseconds of 1.0's parts and of 2.0's, and the speedups."""
    old = 1000 * one_thread["print_kernel"]
    new = 1000 * device["print_kernel"]
    match = 1000 * device["match_kernel"]
    return {
        "match_ms": match,
        "print_on_the_processor_ms": old,
        "print_on_the_device_ms": new,
        "print_speedup": old / new,
        "kernels_over_one_thread": (1000 * one_thread["match_kernel"] + old) / (match + new),
    }


def workload_figures(
    folder: Path, word: str, options: argparse.Namespace, threads: Sequence[int]
) -> dict[str, Any]:
    with ThreadPoolExecutor(max(threads)) as executor:
        workload = Workload(folder, word, executor)
        pages = workload.build(Layout.of(DEFAULT_POLICY))
    figures: dict[str, Any] = {
        "queries": workload.block.query_count,
        "minimum_length": workload.minimum_length,
        "pages": len(pages),
        "processor": {
            str(count): processor_figures(workload, pages, count, options.runs) for count in threads
        },
    }
    if not options.no_device:
        figures["device"] = device_figures(workload, pages, options.runs)
        mems = {each["mems"] for each in (figures["device"], *figures["processor"].values())}
        assert len(mems) == 1, f"different matches: {mems}"
        figures["table 2"] = paper_table(figures["device"], figures["processor"]["1"])
    del pages
    if not options.no_commands:
        figures["commands"] = command_figures(
            *(folder, workload.name, workload.minimum_length, threads, options.command_runs),
            with_device=not options.no_device,
        )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--threads", help="of the processor; 1 is always measured")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--command-runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the workloads are or go")
    parser.add_argument("--no-device", action="store_true")
    parser.add_argument("--no-commands", action="store_true")
    options = parser.parse_args()
    counts = options.threads.split(",") if options.threads else [machine()["cores"]]
    threads = sorted({1, *map(int, counts)})
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for word in options.workloads.split(","):
            name = word.partition("=")[0]
            results[name] = workload_figures(folder, word, options, threads)
            print(name, results[name].get("table 2", results[name]["processor"]), flush=True)
            # What is measured so far is kept.
            save("tree-search.json", results)


if __name__ == "__main__":
    main()
