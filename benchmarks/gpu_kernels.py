"""The match and print kernels on a GPU: the paper's workloads under several policies.

    python benchmarks/gpu_kernels.py [--policies m,none,Tn | all] [--workloads LMONO,...]

Needs a CUDA device and `mummergpu[cuda]`. A workload may have reads of a real genome, as HSILL
must: `--workloads HSILL=hg38.fa.gz,LMONO`. Makes the workloads in the folder, where they are not
there yet, searches each with all its reads as one block (forward strand, the paper's 8 Mbp
pages), and writes `results/gpu-kernels.json`: median milliseconds by the device's own events
after a warm-up, the kernels one by one, and node visits a second beside the rate at which the
same device follows random addresses in a table of the same size.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from devices import gather_rates, open_device
from measure import machine, save

from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.index.pages import plan_pages
from mummergpu.index.tree.flatten import TreePage
from mummergpu.index.tree.layout import MAX_PAGE_BASES, Layout
from mummergpu.index.tree.policy import LETTERS, Policy
from mummergpu.index.tree_index import build_pages
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.reference import read_reference
from mummergpu.matching.tree.cuda import TreeCudaBackend
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand
from mummergpu.workload.declaration import load_declaration

WORKLOADS = ("LMONO", "SSUIS", "HSYNTH", "CBRIGG")
POLICIES = ("none", "Tn", "m", "mn", "n", "Tm", "Tmn", "T", "Qm", "Rm", "QRm", "QRTm", "tm", "rm")
ONE_BLOCK = 1 << 30
NO_LIMIT = 1 << 62


def all_policies() -> list[str]:
    return [
        Policy(**dict(zip(LETTERS, flags, strict=True))).code
        for flags in product((False, True), repeat=len(LETTERS))
    ]


def make_workload(folder: Path, word: str) -> str:
    """Make a workload, NAME or NAME=FASTA, unless it is there; return its name."""
    name, _, reference = word.partition("=")
    if not (folder / name / "reads.fq").exists():
        command = [sys.executable, "-m", "mummergpu", "workload", name, "-o", str(folder / name)]
        command += ["--reference", reference] if reference else []
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return name


class Workload:
    """A workload in memory; trees are built for one layout at a time."""

    def __init__(self, folder: Path, word: str, executor: ThreadPoolExecutor) -> None:
        self.name = name = make_workload(folder, word)
        self.minimum_length = load_declaration(name).minimum_length
        self.reference = read_reference(str(folder / name / "reference.fa"))
        with query_reader([str(folder / name / "reads.fq")], ONE_BLOCK) as reader:
            blocks: list[QueryBlock] = list(reader)
        assert len(blocks) == 1
        self.block = blocks[0]
        self._executor = executor

    def build(self, layout: Layout) -> list[TreePage]:
        """Build the trees of all pages."""
        overlap = self.minimum_length - 1
        pages = plan_pages(self.reference.codes.size, MAX_PAGE_BASES, overlap)
        stats = Stats()
        return build_pages(self.reference, pages, layout, stats, self._executor, lambda: None)


def by_layout(codes: Sequence[str]) -> Iterator[tuple[Layout, list[str]]]:
    """Yield policies that share trees together."""
    groups: dict[Layout, list[str]] = {}
    for code in codes:
        groups.setdefault(Layout.of(Policy.from_code(code)), []).append(code)
    yield from groups.items()


def measure(
    workload: Workload, pages: Sequence[TreePage], code: str, cache: KernelCache, runs: int
) -> dict[str, Any]:
    """Search the block several times; return medians of the device's times, and counts."""
    stats = Stats()
    backend = TreeCudaBackend(
        open_device(0),
        cache,
        Policy.from_code(code),
        stats,
        lambda _: None,
        max_block_bases=ONE_BLOCK,
        closes_device=True,
    )
    figures: list[dict[str, float]] = []
    mems = 0
    try:
        backend.load_pages(pages, workload.minimum_length)
        for turn in range(runs + 1):
            before = {name: kernel.milliseconds for name, kernel in stats.kernels.items()}
            found = backend.find_mems(workload.block, (Strand.FORWARD,), NO_LIMIT)
            assert found is not None
            mems = found[Strand.FORWARD].count
            del found
            if turn:
                figures.append(
                    {
                        name: kernel.milliseconds - before.get(name, 0.0)
                        for name, kernel in stats.kernels.items()
                        if kernel.launches
                    }
                )
        candidates = stats.counts["candidate_matches"] // (runs + 1)
    finally:
        backend.close()
    kernels = {name: statistics.median(each[name] for each in figures) for name in figures[0]}
    prints = [sum(each.values()) - each["match_kernel"] for each in figures]
    return {
        "match_ms": kernels["match_kernel"],
        "print_ms": statistics.median(prints),
        "mems": mems,
        "candidate_matches": candidates,
        "kernels_ms": kernels,
        "resources": {
            name: kernel.resources for name, kernel in stats.kernels.items() if kernel.resources
        },
    }


def node_visits(
    workload: Workload, pages: Sequence[TreePage], code: str, cache: KernelCache
) -> dict[str, int]:
    """Search the block once with kernels that count the nodes they come to."""
    stats = Stats()
    backend = TreeCudaBackend(
        open_device(0),
        cache,
        Policy.from_code(code),
        stats,
        lambda _: None,
        profile=True,
        max_block_bases=ONE_BLOCK,
        closes_device=True,
    )
    try:
        backend.load_pages(pages, workload.minimum_length)
        backend.find_mems(workload.block, (Strand.FORWARD,), NO_LIMIT)
    finally:
        backend.close()
    return {
        name: kernel.node_visits
        for name, kernel in stats.kernels.items()
        if kernel.node_visits is not None
    }


def workload_figures(
    workload: Workload, codes: Sequence[str], cache: KernelCache, runs: int
) -> dict[str, Any]:
    policies: dict[str, Any] = {}
    for layout, group in by_layout(codes):
        pages = workload.build(layout)
        for code in group:
            policies[code] = measure(workload, pages, code, cache, runs)
            print(
                f"  {code:8} match {policies[code]['match_ms']:8.2f} ms  "
                f"print {policies[code]['print_ms']:8.2f} ms",
                flush=True,
            )
    best = min(policies, key=lambda code: policies[code]["match_ms"] + policies[code]["print_ms"])
    pages = workload.build(Layout.of(Policy.from_code(best)))
    visits = node_visits(workload, pages, best, cache)
    figures = policies[best]
    tree_bytes = sum(page.tree.byte_count - page.tree.reference.size for page in pages)
    gathers = gather_rates(tree_bytes // len(pages), runs)
    visited = visits["match_kernel"] / figures["match_ms"] * 1000
    return {
        "queries": workload.block.query_count,
        "query_bases": workload.block.base_count,
        "minimum_length": workload.minimum_length,
        "pages": len(pages),
        "tree_bytes_of_a_page": tree_bytes // len(pages),
        "best_policy": best,
        "best": figures,
        "node_visits": visits,
        "match_node_visits_per_second": visited,
        "gathers_per_second": gathers,
        "match_visits_over_gathers": visited / gathers["merged" if "m" in best else "split"],
        "find_floor_ms": 1000 * visits["find_mems"] / gathers["merged" if "m" in best else "split"],
        "policies": policies,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policies", default=",".join(POLICIES), help="codes, or all")
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the workloads are or go")
    parser.add_argument("--kernels", type=Path, help="where compiled kernels are kept")
    arguments = parser.parse_args()
    codes = all_policies() if arguments.policies == "all" else arguments.policies.split(",")
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        cache = KernelCache(arguments.kernels, print)
        device = open_device(0)
        results["device"] = device.name
        results["device_library"] = device.library
        device.close()
        with ThreadPoolExecutor(machine()["cores"]) as executor:
            for word in arguments.workloads.split(","):
                print(word, flush=True)
                workload = Workload(folder, word, executor)
                results[workload.name] = workload_figures(workload, codes, cache, arguments.runs)
    save("gpu-kernels.json", results)
    print(
        f"{'workload':8} {'policy':>7} {'match ms':>9} {'print ms':>9} {'MEMs':>12} visits/gathers"
    )
    for word in arguments.workloads.split(","):
        name = word.partition("=")[0]
        figures = results[name]
        best = figures["best"]
        print(
            f"{name:8} {figures['best_policy']:>7} {best['match_ms']:9.2f} {best['print_ms']:9.2f} "
            f"{best['mems']:12,} {figures['match_visits_over_gathers']:.2f}"
        )


if __name__ == "__main__":
    main()
