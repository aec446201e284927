"""The Viterbi filter with a thread a sequence: the tables of S. Ferraz and N. Moreano (2013).

    python benchmarks/filter_threads.py FAMILIES PROTEINS [--sequences 70000] [--runs 3]
        [--parts tables,grid,families,transfers] [--name FILE]

Needs a CUDA device. FAMILIES are profiles of Pfam. Proteins of 550 to 1,500 residues, as the paper
took, are repeated with their residues shuffled until there are as many as asked for; the tables
and the grid compare them with the family whose length is nearest to that of the paper's, 270 nodes.

tables     Tables III, IV and V, and the policies of today
grid       Figure 7: the inner loop unrolled once to eight times, by the compiler's order and by
           hand, of the basic accelerator and with private scores; rows of the tables stand there
families   Tables II and VI: the basic accelerator, the paper's final one, tiles and warps for each
           family, with proteins of any length; beside HMMER's Viterbi filter, with SIMD and
           without, and ours, on one and on all cores of the same machine
transfers  the next sequences are copied while a kernel runs, or before it

Times of kernels are the device's own, after one run that does not count. All policies must find
the scores of the processor. Writes `results/filter-threads.json`.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from devices import open_device
from measure import save, summary
from processor_filters import HmmerFilters, our_seconds, shortened
from profile_kernels import proteins
from profile_variants import Checker, data_of, measured

from mummergpu.cuda.device import Device
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.hmm.filter_variants import BASIC, PAPERS_BEST
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.options import FilterThresholds
from mummergpu.hmm.profiles import read_profiles
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.studies.profiles.data import ProfileData, chosen
from mummergpu.studies.profiles.device_scores import DeviceScores
from mummergpu.studies.profiles.policies import LADDER, device_policy_of
from mummergpu.version import __version__

PARTS = ("tables", "grid", "families", "transfers")
PAPERS_NODES = 270
PAPERS_SIZES = (550, 1500)
TODAY = ("t8hsrrs", "t8hrrrs", "Vrcs32", "Vrcs16")
"""Tiles with sorted sequences and as a search has them, and lanes for each sequence."""

TABLES = (
    *("g1crggg", "c1crggg", "p1crggg", "l1crggg"),
    *("g1crcgg", "g1crsgg", "g1crgsg", "g1crgcg", "g1crggt", "g1crggs", "g1csggg", "g1hrggg"),
    *(policy.code for _, policy in LADDER[2:]),
    *("t1hsrrs", *TODAY),
)
GRID = tuple(
    f"{scores}{unroll}{order}rggg" for scores in "gl" for unroll in "1248" for order in "ch"
)
FAMILIES = (BASIC.code, PAPERS_BEST.code, *TODAY)
RESIDUES_OF_CORE = {"V": 1e6, "G": 3e4}


def repeated(block: ProteinBlock, count: int) -> ProteinBlock:
    """Return so many proteins: those of a block as often as needed, with shuffled residues."""
    random = np.random.default_rng(5)
    sizes = np.diff(block.offsets)
    copies = -(-count // sizes.size)
    codes = np.concatenate([random.permutation(block.codes) for _ in range(copies)])
    offsets = np.concatenate([[0], np.cumsum(np.tile(sizes, copies))])[: count + 1]
    return ProteinBlock(codes[: offsets[-1]], offsets.astype(np.int64))


class Study:
    """The device, and what the parts share."""

    def __init__(self, options: argparse.Namespace, stack: ExitStack) -> None:
        self.device: Device = stack.enter_context(closing(open_device(0)))
        stack.enter_context(self.device.current())
        self.executor = stack.enter_context(ThreadPoolExecutor(len(os.sched_getaffinity(0))))
        folder = Path(stack.enter_context(TemporaryDirectory()))
        self.cache = KernelCache(folder, print)
        self.runs: int = options.runs
        self.families = [
            ProfileFilter(one, FilterThresholds()) for one in read_profiles(options.families)
        ]
        every = proteins(options.proteins, 0)
        sizes = np.diff(every.offsets)
        own = chosen(every, (sizes >= PAPERS_SIZES[0]) & (sizes <= PAPERS_SIZES[1]))
        distance = [abs(one.profile.nodes - PAPERS_NODES) for one in self.families]
        nearest = self.families[int(np.argmin(distance))]
        self.tables_data = data_of(nearest, repeated(own, options.sequences))
        # Two thirds as many of any length have about as many residues as the tables' half.
        self.any_length = repeated(every, options.sequences * 5 // 7)

    def compiled(self, datas: Sequence[ProfileData], codes: Sequence[str]) -> None:
        """Compile the programs of policies for profiles side by side."""
        work = []
        for data in datas:
            few = ProfileData(data.name, data.filter, shortened(data.block, 5000))
            with closing(DeviceScores(self.device, self.cache, few)) as scores:
                found = {scores.program_of(device_policy_of(code)) for code in codes} - {None}
                work += [partial(scores.programs.cubin, source) for source in found]
        list(self.executor.map(lambda one: one(), work))

    def policies(self, data: ProfileData, codes: Sequence[str]) -> list[dict[str, Any]]:
        """Return the figures of policies for a data set."""
        with closing(DeviceScores(self.device, self.cache, data)) as scores:
            checker = Checker(data, self.executor, "V")
            rows = []
            for row in measured(scores, data, dict.fromkeys(codes), self.runs, checker):
                rows.append(row)
                print(data.name, data.nodes, row["policy"], row["seconds"]["median"], flush=True)
            return rows

    def family(self, one: ProfileFilter) -> dict[str, Any]:
        """Return the figures of a family on the device and on the processor, in GCUPS."""
        data = data_of(one, self.any_length)
        rows = self.policies(data, FAMILIES)
        cores = len(os.sched_getaffinity(0))
        hmmer = HmmerFilters(one.profile, cores, data.longest)
        processor = {}
        for kind, name in (("V", "Viterbi filter"), ("G", "Viterbi without SIMD")):
            for threads in (1, cores):
                some = shortened(data.block, RESIDUES_OF_CORE[kind] * threads)
                cells = data.nodes * int(some.codes.size)
                seconds = [hmmer.seconds(kind, some, threads) for _ in range(self.runs)]
                processor[f"HMMER's {name}, {threads}"] = cells / min(seconds) / 1e9
                if kind == "V":
                    seconds = [our_seconds(one, kind, some, threads) for _ in range(self.runs)]
                    processor[f"our {name}, {threads}"] = cells / min(seconds) / 1e9
        best = {row["policy"]: row["gcups"] for row in rows}
        times = {
            code: {name: gcups / other for name, other in processor.items()}
            for code, gcups in best.items()
        }
        named = {"name": data.name, "nodes": data.nodes, "residues": int(data.block.codes.size)}
        return named | {"policies": rows, "processor": processor, "times_as_fast": times}

    def transfers(self, code: str) -> dict[str, Any]:
        """Return wall seconds of a kernel, of a copy of its sequences, and of both in two ways."""
        data, device = self.tables_data, self.device
        size, rows = int(data.block.codes.size), []
        with closing(DeviceScores(device, self.cache, data)) as scores, ExitStack() as stack:
            prepared = scores.prepare(device_policy_of(code))
            source, stream = device.pinned(size, np.uint8), device.new_stream()
            stack.callback(stream.free)
            target = device.allocate(size)
            stack.callback(target.free)
            source[:] = 0

            def timed(copies: bool, runs: bool, is_overlapped: bool = False) -> float:
                begin = time.perf_counter()
                if copies:
                    stream.copy_in(target.address, source)
                    if not is_overlapped:
                        stream.synchronize()
                if runs:
                    scores.run(prepared)
                stream.synchronize()
                return time.perf_counter() - begin

            for _ in range(self.runs + 1):
                rows.append(
                    {
                        "copy": timed(True, False),
                        "kernel": timed(False, True),
                        "one after the other": timed(True, True),
                        "overlapped": timed(True, True, True),
                    }
                )
        return {"policy": code, "bytes": size} | summary(rows[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families")
    parser.add_argument("proteins")
    parser.add_argument("--sequences", type=int, default=70000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--parts", type=lambda text: text.split(","), default=[*PARTS])
    parser.add_argument("--name", default="filter-threads.json")
    options = parser.parse_args()
    with ExitStack() as stack:
        study = Study(options, stack)
        data = study.tables_data
        found: dict[str, Any] = {
            "device": study.device.name,
            "library": study.device.library,
            "versions": {"mummergpu": __version__},
            "profile": {"name": data.name, "nodes": data.nodes},
            "sequences": data.sizes.size,
            "residues": int(data.block.codes.size),
        }
        study.compiled([data], [*TABLES, *GRID])
        if "tables" in options.parts:
            found["tables"] = study.policies(data, TABLES)
        if "grid" in options.parts:
            known = TABLES if "tables" in options.parts else ()
            found["grid"] = study.policies(data, [code for code in GRID if code not in known])
        if "transfers" in options.parts:
            codes = (PAPERS_BEST.code, *TODAY[1:3])
            found["transfers"] = [study.transfers(code) for code in codes]
        if "families" in options.parts:
            few = shortened(study.any_length, 5000)
            study.compiled([data_of(one, few) for one in study.families], FAMILIES)
            found["families"] = [study.family(one) for one in study.families]
    save(options.name, found)


if __name__ == "__main__":
    main()
