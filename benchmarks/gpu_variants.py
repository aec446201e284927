"""Variants of the tree search's kernels on a GPU, side by side in one run.

    python benchmarks/gpu_variants.py [--base FOLDER] [--variant NAME:CONSTANT=VALUE,...]

Needs a CUDA device and `mummergpu[cuda]`. For each workload and policy, all variants search the
same block of reads in turn, several times, after a warm-up in which each variant's MEMs are
compared byte by byte with those of the first variant. Writes `results/gpu-variants.json`: median
milliseconds of the kernels by the device's own events, their ratios to the first variant's, and
registers and occupancy. `--base` is a folder with the kernels of an earlier commit, which are then
the first variant; without it, that is the way in which they shared out their work:

    mkdir -p build/base && git archive COMMIT kernels | tar -x -C build/base
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from gpu_gathers import gather_rates
from gpu_kernels import NO_LIMIT, ONE_BLOCK, WORKLOADS, Workload, by_layout, make_workload
from measure import machine, save

from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.launcher import WAVES
from mummergpu.cuda.nvrtc import compile_program
from mummergpu.cuda.pool import DevicePool
from mummergpu.cuda.program import ProgramSource
from mummergpu.cuda.pycuda_device import PycudaDevice
from mummergpu.cuda.sources import read_sources
from mummergpu.index.tree.page import TreePage
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.columns import MemColumns, new_columns
from mummergpu.matching.tree.cuda import TreeCudaBackend
from mummergpu.matching.tree.cuda_program import KERNEL_CHOICES, tree_program
from mummergpu.matching.tree.cuda_search import TreeStreamSearcher
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import Strand

POLICIES = ("m", "none", "mn", "Tm")

AS_BEFORE = {
    "QUERIES_BY_COUNTER": 0,
    "WALKS_PER_THREAD": 1,
    "SHORT_TURNS": 0,
    "EARLY_QUERY_WORDS": 1,
    "EARLY_CHILDREN": 1,
    "STREAM_CANDIDATES": 0,
    "MATCH_BLOCKS": 1,
    "SEARCH_AHEAD_AFTER": 0,
}

VARIANTS: dict[str, dict[str, int]] = {
    # What is expected of each, as match time over that of the first variant, policy m, in the order
    # LMONO, SSUIS, HSILL, CBRIGG. The model: the kernel executes about 310 instructions a turn of a
    # warp, 60 for a short turn, for all lanes together, however few take part; the turns were
    # counted with the kernel's own source on the host, 32 reads in step. No variant can pass the
    # gather rate of the device: 0.42, 0.26, 0.75, 0.58. Where each lane of a warp has one query,
    # 0.48, 0.69, 0.77, 0.65 of the lanes still work on it in a turn.
    #
    # Fewer instructions to take a number from a node: 0.96 of all. `merge_pages` with a thread a
    # row: HSILL 0.61 -> 0.05 ms, CBRIGG 0.075 -> 0.03 ms.
    "as before": {},
    # A lane that has ended takes the next query: 0.60, 0.82, 0.92, 0.71.
    "counter": {"QUERIES_BY_COUNTER": 1},
    # Suffix links and climbs in a loop of their own: 0.66, 0.74, 0.75, 0.66.
    "short 2": {"SHORT_TURNS": 2},
    # Fewer loads for lanes that only climb, at equal instructions: 0.9 to 1.0.
    "late": {"EARLY_QUERY_WORDS": 0, "EARLY_CHILDREN": 0},
    # Both: 0.43, 0.72, 0.77, 0.58; then 0.42, 0.73, 0.76, 0.58; then 0.42, 0.77, 0.79, 0.58.
    "counter short 1": {"QUERIES_BY_COUNTER": 1, "SHORT_TURNS": 1},
    "counter short 2": {"QUERIES_BY_COUNTER": 1, "SHORT_TURNS": 2},
    "counter short 3": {"QUERIES_BY_COUNTER": 1, "SHORT_TURNS": 3},
    # As above, and 0.95 of it where sectors are the limit: 0.42, 0.68, 0.75, 0.58.
    "counter short 2 late": {
        **{"QUERIES_BY_COUNTER": 1, "SHORT_TURNS": 2},
        **{"EARLY_QUERY_WORDS": 0, "EARLY_CHILDREN": 0},
    },
    # 355 MB of candidates take 0.1 ms of the memory's rate; 22 M stores of half a sector meet in
    # the L2. So stores that pass it by gain little, on SSUIS only: 0.95 of the variant above.
    "counter short 2 late stream": {
        **{"QUERIES_BY_COUNTER": 1, "SHORT_TURNS": 2, "STREAM_CANDIDATES": 1},
        **{"EARLY_QUERY_WORDS": 0, "EARLY_CHILDREN": 0},
    },
    # Little's law: 60 registers, 4 blocks of 256 threads with 2 walks are 2048 walks on a
    # multiprocessor instead of 1536; 96 registers, 2 blocks with 4 walks are 2048 too. 1.33 times
    # the loads in flight are worth 0.75 only if latency is the limit; but a walk takes as many
    # instructions as before, and waits for the other walks of its warp: 0.95 to 1.2.
    "two walks": {"WALKS_PER_THREAD": 2},
    "four walks": {"WALKS_PER_THREAD": 4},
    # If instructions no longer are the limit, more walks may pay: 0.42, 0.65, 0.75, 0.58.
    "counter short 2 two walks": {
        **{"QUERIES_BY_COUNTER": 1, "SHORT_TURNS": 2, "WALKS_PER_THREAD": 2},
    },
    # The print kernels: HSILL has candidates with 400 MEMs, whose one thread visits a node in 0.7
    # us; with its nodes in the L1, in 0.3 us. HSILL count 0.80 -> 0.55 ms and write 0.86 -> 0.60
    # ms, others as before; SSUIS a little slower, if a search is often longer.
    "ahead 8": {"SEARCH_AHEAD_AFTER": 8},
    "ahead 32": {"SEARCH_AHEAD_AFTER": 32},
    # 32 registers, with 16 bytes of them in local memory, are 2048 walks as well: 0.42, 0.65, ...
    "counter short 2 full": {"QUERIES_BY_COUNTER": 1, "SHORT_TURNS": 2, "MATCH_BLOCKS": 8},
}

METRICS = (
    "gpu__time_duration.sum",
    # Threads that take part in an instruction; instructions; how busy the schedulers are.
    *("smsp__thread_inst_executed_per_inst_executed.ratio", "smsp__inst_executed.sum"),
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    # Sectors a request, and where they are found.
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
    *("l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct"),
    *("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "lts__t_sectors_op_read.sum"),
    *("lts__t_sectors_op_write.sum", "dram__bytes_read.sum", "dram__bytes_write.sum"),
    # What warps wait for.
    *(
        f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
        for reason in ("long_scoreboard", "lg_throttle", "not_selected", "wait", "branch_resolving")
    ),
)


@dataclass(frozen=True)
class Variant:
    """A way to compile and launch the kernels."""

    name: str
    choices: Mapping[str, int]
    folder: Path | None = None

    def source(self, policy: Policy, profile: bool = False) -> ProgramSource:
        """Return the program of a policy."""
        program = tree_program(policy, False, profile)
        constants = {**dict(program.constants), **self.choices}
        name = f"{program.name}-{self.name}"
        return replace(program, name=name, constants=tuple(constants.items()))

    def sources(self) -> dict[str, str]:
        """Return the kernels' source."""
        if self.folder is None:
            return read_sources()
        found = read_sources(self.folder)
        # The host gives the match kernel one argument more than it used to.
        name, text = "tree/match.cu", found["tree/match.cu"]
        if "next_query" not in text:
            pattern = r"(uint32\* counts,\s+)(uint64\* node_visits\) \{)"
            found[name], count = re.subn(pattern, r"\1uint32*, \2", text)
            assert count == 1
        return found

    @property
    def waves(self) -> int:
        """The most threads that are launched, as `launch_on` has it."""
        return 1 if self.choices["QUERIES_BY_COUNTER"] else WAVES


def compiled(variant: Variant, source: ProgramSource, architecture: str) -> bytes:
    return compile_program(variant.sources(), source, architecture)


class Searcher(TreeStreamSearcher):
    """Searches one block again and again, and copies MEMs to the host only if it is told to."""

    downloads = True

    def _download(
        self, query_count: int, offsets: int, columns: tuple[int, int, int], count: int
    ) -> MemColumns:
        if self.downloads:
            return super()._download(query_count, offsets, columns, count)
        return MemColumns(np.zeros(query_count + 1, dtype=np.int64), *new_columns(0))


class Backend(TreeCudaBackend):
    """Holds one policy's trees, which all variants search with one set of buffers."""

    searcher = Searcher

    def prepare(self, workload: Workload, pages: Sequence[TreePage], first: bytes) -> None:
        """Copy the trees and the reads to the device."""
        self.first = self.loaded(first)
        self.load_pages(pages, workload.minimum_length)
        self.one = self._searchers[0]
        assert isinstance(self.one, Searcher)
        with self._device.current():
            self.block = self.one._upload_block(workload.block)
            self.one._stream.synchronize()

    def _program(self, source: ProgramSource) -> Any:
        return self.first

    def loaded(self, cubin: bytes) -> Any:
        """Return a compiled program, loaded."""
        with self._device.current():
            return self._device.load(cubin)

    def search(
        self, variant: Variant, program: Any, downloads: bool, profile: bool = False
    ) -> MemColumns:
        """Search with a program of a variant, and add its kernels' times to the stats."""
        assert self._context is not None
        context = replace(self._context, program=program, profile=profile)
        self.one.walks_per_thread = variant.choices["WALKS_PER_THREAD"]
        self.one.match_waves = variant.waves
        self.one.downloads = downloads
        with self._device.current():
            found = self.one._search_strand(context, self.block, Strand.FORWARD, NO_LIMIT)
            self.one._stream.synchronize()
            self.one._launcher.report()
        assert found is not None
        return found


@dataclass
class Checker:
    """Compares MEMs with the first that were found in a workload."""

    executor: ThreadPoolExecutor
    first: list[np.ndarray] = field(default_factory=list)
    digest: str = ""

    def check(self, found: MemColumns, who: str) -> None:
        """Keep the first MEMs; end the run if others differ from them."""
        columns = [getattr(found, name) for name in MemColumns.__dataclass_fields__]
        if not self.first:
            self.first = columns
            parts = self.executor.map(lambda column: hashlib.sha256(column).digest(), columns)
            self.digest = hashlib.sha256(b"".join(parts)).hexdigest()[:16]
        elif not all(self.executor.map(np.array_equal, columns, self.first)):
            raise SystemExit(f"{who}: other MEMs than the first variant's")


def medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    kernels = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    prints = [sum(run.values()) - run["match_kernel"] for run in runs]
    return {"match_ms": kernels["match_kernel"], "print_ms": statistics.median(prints), **kernels}


def measure(
    workload: Workload,
    pages: Sequence[TreePage],
    code: str,
    variants: Sequence[Variant],
    cubins: Mapping[tuple[str, str], Future[bytes]],
    runs: int,
    checker: Checker,
) -> dict[str, Any]:
    """Search with all variants in turn; return their figures, by name."""
    stats, policy = Stats(), Policy.from_code(code)
    pool = DevicePool(PycudaDevice)
    cache = KernelCache(None, print)
    backend = Backend(
        pool.device(0), cache, policy, stats, lambda _: None, most_block_bases=ONE_BLOCK, pool=pool
    )
    figures: dict[str, list[dict[str, float]]] = {variant.name: [] for variant in variants}
    resources: dict[str, Any] = {}
    visits = None
    try:
        backend.prepare(workload, pages, cubins[code, variants[0].name].result())
        programs = {
            variant.name: backend.loaded(cubins[code, variant.name].result())
            for variant in variants
        }
        for turn in range(runs + 1):
            # No variant runs behind the same one always.
            order = variants if turn % 2 else variants[::-1]
            for variant in variants if turn == 0 else order:
                before = {name: kernel.milliseconds for name, kernel in stats.kernels.items()}
                found = backend.search(variant, programs[variant.name], downloads=turn == 0)
                if turn == 0:
                    checker.check(found, f"{code} {variant.name}")
                    resources[variant.name] = vars(programs[variant.name].resources("match_kernel"))
                    continue
                figures[variant.name].append(
                    {
                        name: kernel.milliseconds - before.get(name, 0.0)
                        for name, kernel in stats.kernels.items()
                        if kernel.launches
                    }
                )
        if ("profile", code) in cubins:
            program = backend.loaded(cubins["profile", code].result())
            backend.search(variants[-1], program, downloads=False, profile=True)
            visits = stats.kernels["match_kernel"].node_visits
    finally:
        backend.close()
    found_medians = {name: medians(each) for name, each in figures.items()}
    first = found_medians[variants[0].name]
    return {
        name: {
            "match_over_first": figure["match_ms"] / first["match_ms"],
            "print_over_first": figure["print_ms"] / first["print_ms"],
            **figure,
            "match_kernel_resources": resources[name],
            **({} if visits is None else {"node_visits": visits}),
        }
        for name, figure in found_medians.items()
    }


def show(code: str, figures: Mapping[str, Any], gathers: float | None) -> None:
    for name, figure in figures.items():
        needs = figure["match_kernel_resources"]
        line = (
            f"  {code:4} {name:24} match {figure['match_ms']:7.3f} ms "
            f"({figure['match_over_first']:4.2f})  print {figure['print_ms']:6.3f} "
            f"({figure['print_over_first']:4.2f})  count {figure['count_mems']:5.3f}  "
            f"write {figure['write_mems']:5.3f}  merge {figure.get('merge_pages', 0.0):5.3f}  "
            f"{needs['registers']:3} registers, occupancy {needs['occupancy']:.2f}"
        )
        if gathers is not None:
            rate = figure["node_visits"] / figure["match_ms"] * 1000
            line += f"  visits/gathers {rate / gathers:.2f}"
        print(line, flush=True)


def counters_command(variants: Sequence[Variant]) -> str:
    """Return a command that reads the counters of each variant's match kernel."""
    ours = ["python3", *sys.argv, "--no-results"]
    return shlex.join(
        [
            *("ncu", "--clock-control", "none", "--kernel-name", "match_kernel"),
            # LMONO has one page: a launch of each variant, behind those of the warm-up.
            *("--launch-skip", str(len(variants)), "--launch-count", str(len(variants))),
            *("--metrics", ",".join(METRICS), "--csv"),
            *ours,
            *("--runs", "1", "--workloads", "LMONO", "--policies", "m"),
        ]
    )


def chosen_variants(arguments: argparse.Namespace) -> list[Variant]:
    found = [Variant("base", AS_BEFORE, arguments.base)]
    named = dict(VARIANTS)
    for text in arguments.variant:
        name, _, settings = text.partition(":")
        pairs = [pair.split("=") for pair in settings.split(",") if pair]
        named[name] = {constant: int(value) for constant, value in pairs}
    wanted = arguments.variants.split(",") if arguments.variants else list(named)
    for name in wanted:
        if name == "base":
            continue
        unknown = set(named[name]) - set(KERNEL_CHOICES)
        if unknown:
            raise SystemExit(f"{name}: there is no {', '.join(sorted(unknown))}")
        found.append(Variant(name, {**AS_BEFORE, **named[name]}))
    return found


def start_compiling(
    compilers: ProcessPoolExecutor,
    variants: Sequence[Variant],
    codes: Sequence[str],
    architecture: str,
) -> dict[tuple[str, str], Future[bytes]]:
    """Return the programs to come, by policy and variant, and one that counts node visits."""
    cubins: dict[tuple[str, str], Future[bytes]] = {}
    for code in codes:
        for variant in variants:
            source = variant.source(Policy.from_code(code))
            cubins[code, variant.name] = compilers.submit(compiled, variant, source, architecture)
    # Every layout leads to the same nodes: one policy tells how many are visited.
    source = variants[-1].source(Policy.from_code(codes[0]), profile=True)
    cubins["profile", codes[0]] = compilers.submit(compiled, variants[-1], source, architecture)
    return cubins


def workload_figures(
    workload: Workload,
    codes: Sequence[str],
    variants: Sequence[Variant],
    cubins: Mapping[tuple[str, str], Future[bytes]],
    runs: int,
    executor: ThreadPoolExecutor,
) -> dict[str, Any]:
    checker = Checker(executor)
    figures: dict[str, Any] = {}
    gathers: dict[str, float] = {}
    for layout, group in by_layout(codes):
        pages = workload.build(layout)
        tree = pages[0].tree
        gathers = gathers or gather_rates(tree.byte_count - tree.reference.size, 5)
        for code in group:
            figures[code] = measure(workload, pages, code, variants, cubins, runs, checker)
            show(code, figures[code], gathers["merged"] if code == codes[0] else None)
    print(f"  MEMs {checker.digest}: the same of all", flush=True)
    return {"digest": checker.digest, "gathers_per_second": gathers, "policies": figures}


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", type=Path, help="the kernels of an earlier commit")
    parser.add_argument("--variants", help="the names of those to measure; else all")
    parser.add_argument(
        "--variant", action="append", default=[], help="one more: NAME:CONSTANT=VALUE,..."
    )
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where the workloads are or go")
    parser.add_argument("--no-results", action="store_true", help="keep no results")
    return parser.parse_args()


def main() -> None:
    arguments = read_arguments()
    begin = time.perf_counter()
    codes = arguments.policies.split(",")
    names = arguments.workloads.split(",")
    variants = chosen_variants(arguments)
    device = PycudaDevice(0)
    architecture = device.architecture
    results: dict[str, Any] = {
        "device": device.name,
        "variants": {variant.name: dict(variant.choices) for variant in variants},
    }
    device.close()
    cores = machine()["cores"]
    with (
        tempfile.TemporaryDirectory() as temporary,
        ThreadPoolExecutor(cores) as executor,
        ProcessPoolExecutor(max(1, cores // 2), mp_context=get_context("spawn")) as compilers,
    ):
        folder = arguments.folder or Path(temporary)
        cubins = start_compiling(compilers, variants, codes, architecture)
        list(executor.map(lambda name: make_workload(folder, name), names))
        for name in names:
            print(f"{name}, after {time.perf_counter() - begin:.0f} s", flush=True)
            workload = Workload(folder, name, executor)
            results[name] = workload_figures(
                workload, codes, variants, cubins, arguments.runs, executor
            )
    results["seconds"] = time.perf_counter() - begin
    if not arguments.no_results:
        save("gpu-variants.json", results)
    print(f"{results['seconds']:.0f} s; this reads the counters of the match kernels:")
    print(counters_command(variants))


if __name__ == "__main__":
    main()
