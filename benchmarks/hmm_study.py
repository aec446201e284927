"""The policies of the profile filters on a GPU, on data of the shape that two papers used.

    python benchmarks/hmm_study.py check|tables|families|curves|schemes ... -o RESULTS.json

`check` compares the scores of all policies that a sweep measures with the processor's, on a few
proteins. `tables` are Tables III to V of S. Ferraz and N. Moreano (2013): a model of 270 nodes and
70,000 sequences of 550 to 1,500 residues, made from a seed. `families` is the shape of their Table
VI: 20 families of 23 to 488 nodes. `curves` are those of CUDAMPF (2016): models of many lengths
(``--models FILE``) with proteins (``--proteins FILE``). `schemes` tells from how many proteins on
threads are better than warps, as they lie in a search. In every run, all scores must be those of
the processor's filters. Seconds are those of the device, for each run; the file is written anew
after each policy.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyhmmer
from measure import provenance

from mummergpu.cuda.bindings_device import BindingsDevice
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.sources import read_sources
from mummergpu.errors import MummergpuError
from mummergpu.hmm.filter_variants import BASIC, BEST, PAPERS_BEST, every_row_policy
from mummergpu.hmm.filters import FilterThresholds, ProfileFilter
from mummergpu.hmm.profiles import Profile, profile_of, read_profiles
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.hmm.tables import BACKGROUND
from mummergpu.studies.profiles.data import ProfileData, chosen, digest_of_scores, suitable
from mummergpu.studies.profiles.device_scores import DeviceScores
from mummergpu.studies.profiles.policies import (
    LADDER,
    device_policy_of,
    factorial,
    filter_of,
    measured_policies,
    neighbours,
    policy_of,
)
from mummergpu.version import __version__

# Table VI: seconds times GCUPS is the families' length, up to a factor that Oxidored_q1 tells.
FAMILIES = (
    *(119, 103, 189, 261, 113, 101, 215, 23, 168, 447),
    *(61, 79, 270, 40, 186, 84, 112, 71, 354, 488),
)
SCHEME_NODES = (23, 40, 61, 79, 112, 168, 215, 270, 354, 447, 600)
HIT_SHARE = 0.003
_ROWS = ("rcs32", "rcc32", "scs32", "lts32", "ltc32", "lcs32", "rcs16", "rcs8")
CURVES = tuple(kind + row for kind in "SMV" for row in _ROWS)


def built(nodes: int) -> Profile:
    """Return a profile of random amino acids; pyhmmer calibrates it."""
    alphabet = pyhmmer.easel.Alphabet.amino()
    random = np.random.default_rng(nodes)
    codes = random.choice(20, nodes, p=BACKGROUND / BACKGROUND.sum()).astype(np.uint8)
    sequence = pyhmmer.easel.DigitalSequence(alphabet, name="made", sequence=codes)
    builder = pyhmmer.plan7.Builder(alphabet)
    hmm, _, _ = builder.build(sequence, pyhmmer.plan7.Background(alphabet))
    return profile_of(hmm)


def made_block(profile: Profile, count: int, shortest: int, longest: int) -> ProteinBlock:
    """Return random proteins, a few of them with a piece of the profile's consensus."""
    random = np.random.default_rng(7)
    sizes = random.integers(shortest, longest + 1, count)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    borders = np.cumsum(BACKGROUND.astype(np.float64) / BACKGROUND.sum())[:-1]
    table = np.searchsorted(borders, (np.arange(65536) + 0.5) / 65536).astype(np.uint8)
    codes = table[random.integers(0, 65536, int(offsets[-1]), dtype=np.uint16)]
    consensus = profile.matches.argmax(axis=1).astype(np.uint8)
    for number in random.choice(count, int(HIT_SHARE * count) + 1, replace=False):
        piece = consensus[: max(8, int(random.integers(8, profile.nodes + 1)))][:shortest].copy()
        noise = random.random(piece.size) < 0.5 * random.random()
        piece[noise] = random.integers(0, 20, int(noise.sum()))
        begin = offsets[number] + random.integers(0, sizes[number] - piece.size + 1)
        codes[begin : begin + piece.size] = piece
    return ProteinBlock(codes, offsets)


def data_of(name: str, profile: Profile, block: ProteinBlock) -> ProfileData:
    data = ProfileData(name, ProfileFilter(profile, FilterThresholds()), block)
    data.check()
    return data


class Bench:
    """A device, and the rows of results."""

    def __init__(self, arguments: argparse.Namespace, stack: ExitStack) -> None:
        self.arguments = arguments
        self.began = time.perf_counter()
        self.device = BindingsDevice(0)
        stack.callback(self.device.close)
        stack.enter_context(self.device.current())
        folder = Path(arguments.kernels) if arguments.kernels else None
        self.cache = KernelCache(folder, print)
        self.executor = stack.enter_context(ThreadPoolExecutor(os.cpu_count()))
        self.rows: list[dict[str, Any]] = []

    def left(self) -> float:
        """Return the seconds in which something may still begin."""
        return float(self.arguments.limit) - (time.perf_counter() - self.began)

    def say(self, text: str) -> None:
        """Print a line with the time."""
        print(f"[{time.perf_counter() - self.began:6.1f}] {text}", flush=True)

    def compile(self, pairs: Iterable[tuple[DeviceScores, str]]) -> None:
        """Compile the programs of policies, several at a time."""
        sources = read_sources()
        programs = {scores.program_of(device_policy_of(code)) for scores, code in pairs} - {None}

        def one(program: Any) -> None:
            self.cache.cubin(sources, program, self.device.architecture)

        list(self.executor.map(one, programs))
        self.say(f"{len(programs)} programs compiled")

    def measure(
        self,
        part: str,
        data: ProfileData,
        codes: Sequence[str],
        runs: int,
        as_searched: bool = False,
    ) -> None:
        """Measure policies in turn; stop when there is no time left."""
        expected = {
            kind: digest_of_scores(data.expected(kind, self.executor.map))
            for kind in {filter_of(policy_of(code)) for code in codes}
        }
        self.say(f"{part}: {data.name}: the processor is done")
        scores = DeviceScores(self.device, self.cache, data, as_searched)
        try:
            self.compile((scores, code) for code in codes)
            for code in dict.fromkeys(codes):
                if self.left() < 0:
                    self.say(f"no time for {code} and those after it")
                    break
                self._measure(part, data, code, runs, scores, expected)
        finally:
            scores.close()
        self.write()

    def _measure(
        self,
        part: str,
        data: ProfileData,
        code: str,
        runs: int,
        scores: DeviceScores,
        expected: dict[str, str],
    ) -> None:
        policy = device_policy_of(code)
        if scores.program_of(policy) is None:
            return
        try:
            prepared = scores.prepare(policy)
            found = [scores.run(prepared) for _ in range(runs + 1)]
        except MummergpuError as error:
            self.say(f"{code}: {error}")
            self.rows.append({"part": part, "data": data.name, "policy": code, "error": str(error)})
            return
        kind = filter_of(policy)
        digests = {digest_of_scores(data.settled(kind, one.scores)) for one in found}
        is_right = digests == {expected[kind]}
        seconds = [sum(one.milliseconds.values()) / 1000 for one in (found[1:] or found)]
        median = statistics.median(seconds)
        resources = prepared.program.resources(prepared.launch.kernel)
        self.rows.append(
            {
                "part": part,
                "data": data.name,
                "nodes": data.nodes,
                "proteins": data.sizes.size,
                "residues": int(data.block.codes.size),
                "policy": code,
                "right": is_right,
                "seconds": seconds,
                "kernels": found[-1].milliseconds,
                "gcups": data.cells / median / 1e9,
                "again": found[-1].again,
                "registers": resources.registers,
                "local_bytes": resources.local_bytes,
                "threads": prepared.launch.shape.threads,
                "blocks": prepared.launch.blocks,
                "shared_bytes": prepared.launch.shape.shared_bytes,
            }
        )
        self.say(
            f"{part} {data.name} {code}: {1000 * median:9.2f} ms {data.cells / median / 1e9:8.1f} "
            f"GCUPS, {resources.registers} registers, {resources.local_bytes} local, "
            f"{found[-1].again} again{'' if is_right else '  WRONG'}"
        )

    def write(self) -> None:
        """Write all rows."""
        value = provenance() | {
            "device": self.device.name,
            "versions": {"mummergpu": __version__, "pyhmmer": metadata.version("pyhmmer")},
            "rows": self.rows,
        }
        Path(self.arguments.output).write_text(json.dumps(value, indent=1) + "\n")


def single_policies() -> list[str]:
    """Tables III to V, and each choice beside the paper's final accelerator and beside tiles."""
    every = [*(one for _, one in LADDER), *neighbours(BASIC), *neighbours(BEST)]
    return list(dict.fromkeys(one.code for one in (*every, *neighbours(PAPERS_BEST))))


def check(bench: Bench) -> None:
    for nodes, count, codes in (
        (270, 700, measured_policies("cuda")),
        (23, 333, single_policies()),
    ):
        profile = built(nodes)
        data = data_of(f"made-{nodes}", profile, made_block(profile, count, 20, 300))
        bench.measure("check", data, codes, 1)


def tables(bench: Bench) -> None:
    arguments, profile = bench.arguments, built(270)
    made = data_of("made", profile, made_block(profile, arguments.proteins_made, 550, 1500))
    codes = single_policies()
    if arguments.only:
        codes = arguments.only.split(",")
    bench.measure("tables", made, codes, arguments.runs)
    if arguments.factorial:
        rows = [one.code for one in every_row_policy()]
        more = [*rows, *(one.code for one in factorial())]
        bench.measure("tables", made, [one for one in more if one not in codes], arguments.runs)


def real(bench: Bench, profiles: Sequence[Profile], times: int) -> ProteinBlock:
    with pyhmmer.easel.SequenceFile(bench.arguments.proteins, digital=True) as file:
        codes = [np.frombuffer(bytes(one.sequence), dtype=np.uint8) for one in file.read_block()]
    offsets = np.cumsum([0, *(one.size for one in codes)], dtype=np.int64)
    block = ProteinBlock(np.concatenate(codes), offsets)
    block = chosen(block, suitable(block))
    sizes = np.tile(np.diff(block.offsets), times)
    return ProteinBlock(np.tile(block.codes, times), np.concatenate([[0], np.cumsum(sizes)]))


def proteome(bench: Bench) -> None:
    profile = built(270)
    block = real(bench, [profile], bench.arguments.times)
    bench.measure("proteome", data_of("proteome", profile, block), single_policies(), 3)


def families(bench: Bench) -> None:
    block = made_block(built(FAMILIES[0]), bench.arguments.proteins_made, 550, 1500)
    for nodes in FAMILIES:
        if bench.left() < 0:
            break
        profile = built(nodes)
        codes = [PAPERS_BEST.code, BEST.code, "Vrcs32"]
        data = data_of(f"family-{nodes}", profile, block)
        bench.measure("families", data, codes, bench.arguments.runs)


def curves(bench: Bench) -> None:
    profiles = list(read_profiles(bench.arguments.models))
    block = real(bench, profiles, bench.arguments.times)
    codes = [*CURVES, BEST.code]
    for profile in profiles:
        if bench.left() < 0:
            break
        bench.measure("curves", data_of(profile.name, profile, block), codes, bench.arguments.runs)


def schemes(bench: Bench) -> None:
    every = bench.arguments.proteins_made
    block = made_block(built(100), every, 100, 900)
    for nodes in SCHEME_NODES:
        profile = built(nodes)
        for part in (32, 16, 8, 4, 2, 1):
            own = chosen(block, np.arange(every) < every // part)
            data = data_of(f"scheme-{nodes}-{every // part}", profile, own)
            if bench.left() > 0:
                bench.measure("schemes", data, ["t8hrrrs", "Vrcs32"], bench.arguments.runs, True)


def main() -> None:
    parts = {one.__name__: one for one in (check, tables, proteome, families, curves, schemes)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=parts)
    parser.add_argument("-o", "--output", default="hmm-study.json")
    parser.add_argument("--models", help="a file of profiles, for curves")
    parser.add_argument("--proteins", help="a file of proteins, for curves and proteome")
    parser.add_argument("--times", type=int, default=16, help="repeat those proteins so often")
    parser.add_argument("--proteins-made", type=int, default=70_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--factorial", action="store_true", help="and all that a sweep measures")
    parser.add_argument("--only", help="policies of tables, separated by commas")
    parser.add_argument("--kernels", help="the folder where compiled kernels are kept")
    parser.add_argument("--limit", type=float, default=1e9, help="begin nothing after SECONDS")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        bench = Bench(arguments, stack)
        bench.say(f"{bench.device.name}, {bench.device.resident_blocks} resident blocks")
        for part in arguments.parts:
            parts[part](bench)
        wrong = [one for one in bench.rows if not one.get("right", True)]
        bench.say(f"{len(bench.rows)} rows, {len(wrong)} wrong")
        bench.write()
        if wrong:
            sys.exit(1)


if __name__ == "__main__":
    main()
