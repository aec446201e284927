"""Times hidden Markov models on a GPU, beside the processor and hmmlearn; prints JSON.

python benchmarks/hidden_models_device.py > benchmarks/results/hidden_models_device.json
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np
from measure import provenance

from mummergpu.cuda import nvrtc
from mummergpu.cuda.sources import read_sources
from mummergpu.hmm.language.cuda_text import (
    SHARES_PROGRAM,
    DeviceKind,
    Keeps,
    chain_program,
    paths_program,
    wide_program,
)
from mummergpu.hmm.language.device import DeviceChains
from mummergpu.hmm.language.evaluation import CompiledModel, evaluate
from mummergpu.hmm.language.lanes import SymbolBlock, offsets_of_counts
from mummergpu.hmm.language.parser import parse_program
from mummergpu.hmm.language.program import Algorithm, Attribute
from mummergpu.matching.open_cuda import open_device
from mummergpu.matching.options import DeviceOptions
from mummergpu.runtime.stats import Stats
from mummergpu.version import __version__

CASINO = """hmm casino { alphabet [1, 2, 3, 4, 5, 6]; startstate start; endstate end;
state fair emits even; state loaded emits biased;
emission even = [1/6, 1/6, 1/6, 1/6, 1/6, 1/6]; emission biased = [0.1, 0.1, 0.1, 0.1, 0.1, 0.5];
start -> fair 1; fair -> fair 0.95; fair -> loaded 0.05; loaded -> loaded 0.97999;
loaded -> fair 0.02; loaded -> end 0.00001; fair -> end 0.00001; }"""


def profile_text(nodes: int = 10, seed: int = 1) -> str:
    """Return a profile of the shape in the paper, with silent deletions."""
    choice = np.random.default_rng(seed)
    letters = "ACDEFGHIKLMNPQRSTVWY"

    def row() -> str:
        chances = choice.dirichlet(np.full(20, 0.3))
        return ", ".join(f"{chance:.6f}" for chance in chances)

    lines = [f"hmm profile {{ alphabet [{', '.join(letters)}]; startstate s; endstate e;"]
    lines.append("emission back = [" + ", ".join(["0.05"] * 20) + "];")
    lines += [f"emission m[{k}] = [{row()}];" for k in range(1, nodes + 1)]
    lines.append(
        f"state n; state c; state begin; state done; for k in 1..{nodes} {{"
        " state M[k] emits m[k]; state D[k]; }"
        f" for k in 1..{nodes - 1} {{ state I[k] emits back;"
        " M[k] -> M[k+1] 0.985; M[k] -> I[k] 0.01; M[k] -> D[k+1] 0.005; I[k] -> M[k+1] 0.54;"
        " I[k] -> I[k] 0.46; D[k] -> M[k+1] 0.62; D[k] -> D[k+1] 0.38; }"
        " s -> n 1; n -> n 0.997 emits back; n -> begin 0.003; begin -> M[1] 0.75;"
        f" begin -> D[1] 0.25; M[{nodes}] -> done 1; D[{nodes}] -> done 1; done -> c 1;"
        " c -> c 0.997 emits back; c -> e 0.003; }"
    )
    return "\n".join(lines)


def local_profile_text(nodes: int, seed: int = 2) -> str:
    """Return a profile of which any part may occur, several times, as HMMER searches for them."""
    choice = np.random.default_rng(seed)
    letters = "ACDEFGHIKLMNPQRSTVWY"
    rows = []
    for node in range(1, nodes + 1):
        chances = ", ".join(f"{chance:.6f}" for chance in choice.dirichlet(np.full(20, 0.3)))
        rows.append(f"emission m[{node}] = [{chances}];")
    return (
        f"hmm local {{ alphabet [{', '.join(letters)}]; startstate s; endstate t;"
        f" emission any = [{', '.join(['0.05'] * 20)}]; state N; state B; state E;"
        + "\n".join(rows)
        + "state J; state C; s -> N 1; N -> N 0.99 emits any; N -> B 0.01;"
        + " J -> J 0.99 emits any; J -> B 0.01;"
        f" for k in 1..{nodes} {{ state M[k] emits m[k]; state I[k] emits any; state D[k];"
        f" B -> M[k] {1 / nodes:.6f}; M[k] -> E 0.005; D[k] -> E 0.005; I[k] -> I[k] 0.46; }}"
        f" for k in 1..{nodes - 1} {{ M[k] -> M[k+1] 0.98; M[k] -> I[k] 0.01; M[k] -> D[k+1] 0.005;"
        " I[k] -> M[k+1] 0.54; D[k] -> M[k+1] 0.6; D[k] -> D[k+1] 0.395; }"
        " E -> J 0.5; E -> C 0.5; C -> C 0.99 emits any; C -> t 0.01; }"
    )


def islands_text() -> str:
    """Return the model of CpG islands in the documentation, without its state for gaps."""
    island = (
        *((0.1792, 0.2729, 0.4243, 0.1195), (0.1701, 0.3661, 0.2726, 0.1871)),
        *((0.1604, 0.3376, 0.3734, 0.1245), (0.0787, 0.3536, 0.3825, 0.1811)),
    )
    sea = (
        *((0.2996, 0.2048, 0.2847, 0.2098), (0.3217, 0.2976, 0.0779, 0.3017)),
        *((0.2478, 0.2458, 0.2975, 0.2078), (0.1768, 0.2388, 0.2917, 0.2916)),
    )
    lines = ["hmm islands { alphabet [A, C, G, T]; startstate s;"]
    for number in range(1, 5):
        chances = ", ".join(str(int(number == other)) for other in range(1, 5))
        lines.append(f"emission e[{number}] = [{chances}];")
    lines.append(
        "for k in 1..4 { state sea[k] emits e[k]; state island[k] emits e[k]; s -> sea[k] 0.25;"
        " for j in 1..4 { sea[j] -> island[k] 0.00025; island[j] -> sea[k] 0.001; } }"
    )
    for name, rows in (("island", island), ("sea", sea)):
        for source, row in enumerate(rows, 1):
            lines += [f"{name}[{source}] -> {name}[{to}] {one};" for to, one in enumerate(row, 1)]
    return "\n".join([*lines, "}"])


def random_block(symbols: int, count: int, length: int, spread: float = 0.0) -> SymbolBlock:
    choice = np.random.default_rng(7)
    lengths = np.maximum(1, choice.normal(length, spread * length, count)).astype(np.int64)
    offsets = offsets_of_counts(lengths)
    return SymbolBlock(choice.integers(0, symbols, int(offsets[-1])).astype(np.uint8), offsets)


def hmmlearn_score(numbers: tuple[int, int]) -> float:
    """Score some sequences with hmmlearn; return the seconds."""
    from hmmlearn.hmm import CategoricalHMM

    model = CategoricalHMM(2)
    model.startprob_ = np.array([1.0, 0.0])
    model.transmat_ = np.array([[0.95, 0.05], [0.02, 0.98]])
    model.emissionprob_ = np.array([[1 / 6] * 6, [0.1] * 5 + [0.5]])
    count, length = numbers
    given = np.random.default_rng(count).integers(0, 6, (count * length, 1))
    begin = time.perf_counter()
    model.score(given, [length] * count)
    return time.perf_counter() - begin


def timed(work: Any, rounds: int) -> list[float]:
    found = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        found.append(round(time.perf_counter() - begin, 5))
    return found


WISHES = {
    "forward": (Algorithm.FORWARD, (Attribute.SCORE,)),
    "viterbi": (Algorithm.VITERBI, (Attribute.SCORE,)),
    "viterbi and trace": (Algorithm.VITERBI, (Attribute.SCORE, Attribute.TRACEBACK)),
    "posterior and trace": (Algorithm.POSTERIOR, (Attribute.SCORE, Attribute.TRACEBACK)),
}


def some_of(block: SymbolBlock, states: int) -> SymbolBlock:
    """Return the first sequences of a block, or the beginning of its only one, for a comparison."""
    size = min(3_000_000, 100_000_000 // states)
    count = min(5000, block.offsets.size - 1, int(np.searchsorted(block.offsets, size)))
    if block.offsets.size == 2:
        return SymbolBlock(block.codes[:size], np.array([0, size]))
    return SymbolBlock(block.codes[: block.offsets[count]], block.offsets[: count + 1])


def measure(
    name: str,
    model: CompiledModel,
    block: SymbolBlock,
    opened: tuple[Any, Any, int],
    wishes: Sequence[str],
    threads: int = 0,
) -> list[dict[str, Any]]:
    """Time a model on a device, and with threads on the processor, too."""
    rows = []
    device, cache, memory = opened
    few = some_of(block, model.chain.shape.nodes)
    for double in (False, True):
        for wish in wishes:
            algorithm, wanted = WISHES[wish]
            if double and wish != "forward":
                continue
            stats = Stats()
            chains = DeviceChains(device, cache, memory, stats, double)
            begin = time.perf_counter()
            ours = evaluate(model, algorithm, few, wanted, device=chains)
            first = time.perf_counter() - begin
            expected = evaluate(model, algorithm, few, wanted)
            finite = np.isfinite(expected.scores)
            error = np.abs(ours.scores[finite] / expected.scores[finite] - 1).max()
            is_exact = algorithm is Algorithm.VITERBI
            same = not is_exact or bool((ours.scores == expected.scores).all())
            if ours.runs is not None:
                assert expected.runs is not None
                pairs = zip(ours.runs, expected.runs, strict=True)
                same = same and all(np.array_equal(one, other) for one, other in pairs)
            evaluate(model, algorithm, block, wanted, device=chains)
            kernels, whole = [], []
            for _ in range(4):
                before = milliseconds(stats)
                begin = time.perf_counter()
                evaluate(model, algorithm, block, wanted, device=chains)
                whole.append(round(time.perf_counter() - begin, 5))
                kernels.append(round(milliseconds(stats) - before, 4))
            chains.close()
            if threads and not double and algorithm is not Algorithm.POSTERIOR:
                rows.append(on_all_cores(model, block, wish, threads, name))
            rows.append(
                {
                    "work": name,
                    "what": wish + (" double" if double else ""),
                    "symbols": int(block.offsets[-1]),
                    "kernel_ms": kernels,
                    "whole_s": whole,
                    "first_s": round(first, 4),
                    "largest_relative_error": float(error),
                    "equal_to_processor": same,
                }
            )
            print_note(json.dumps(rows[-2:] if threads else rows[-1:]))
    return rows


def milliseconds(stats: Stats) -> float:
    """Return what all kernels have taken."""
    return sum(one.milliseconds for one in stats.kernels.values())


def on_all_cores(
    model: CompiledModel, block: SymbolBlock, wish: str, threads: int, name: str
) -> dict[str, Any]:
    """Time a model on the processor."""
    algorithm, wanted = WISHES[wish]
    with ThreadPoolExecutor(threads) as executor:

        def work() -> None:
            evaluate(model, algorithm, block, wanted, executor.map)

        work()
        seconds = timed(work, 1)
    return {
        "work": f"{name} on all cores",
        "what": wish,
        "symbols": int(block.offsets[-1]),
        "threads": threads,
        "whole_s": seconds,
    }


def hmmlearn_on_all_cores(runs: int, processes: int) -> dict[str, Any]:
    """Time runs of hmmlearn side by side."""
    try:
        with ProcessPoolExecutor(processes) as pool:
            list(pool.map(hmmlearn_score, [(100, 300)] * processes))
            begin = time.perf_counter()
            each = list(pool.map(hmmlearn_score, [(10_000, 300)] * runs))
            return {
                "runs": runs,
                "sequences_each": 10_000,
                "processes": processes,
                "seconds": round(time.perf_counter() - begin, 4),
                "seconds_each": [round(one, 4) for one in each],
            }
    except Exception as error:
        return {"error": repr(error)}


def compile_seconds(*models: CompiledModel) -> list[dict[str, Any]]:
    """Time NVRTC for the programs of models, and for those that all models share."""
    kinds = (DeviceKind(True), DeviceKind(False), DeviceKind(False, False, Keeps.TRACES))
    programs = [chain_program(one.chain.shape, kind) for one in models for kind in kinds]
    programs += [wide_program(DeviceKind(True, True)), *map(wide_program, kinds[1:])]
    programs += [paths_program(8), SHARES_PROGRAM]
    # The first one loads the compiler.
    nvrtc.compile_program(read_sources(), programs[0], "sm_90")
    found = []
    for program in programs:
        begin = time.process_time()
        nvrtc.compile_program(read_sources(), program, "sm_90")
        found.append({program.name: round(time.process_time() - begin, 4)})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=1_000_000)
    parser.add_argument("--chromosome", type=int, default=100_000_000)
    parser.add_argument("--works", nargs="*", help="those alone, by the names in the rows")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="0: no processor")
    parser.add_argument("--hmmlearn", type=int, default=32, help="runs of 10,000 sequences")
    given = parser.parse_args()
    threads = given.threads
    texts = {
        "casino": CASINO,
        "profile": profile_text(),
        "local": local_profile_text(100),
        "islands": islands_text(),
    }
    models = {name: CompiledModel(parse_program(text).models[name]) for name, text in texts.items()}
    long_model = CompiledModel(parse_program(local_profile_text(400)).models["local"])
    rows: list[dict[str, Any]] = []
    compiling = compile_seconds(models["casino"], models["profile"])
    with ExitStack() as stack:
        options = DeviceOptions(backend="cuda", library="cuda-bindings")
        device, cache = open_device(options, stack, print_note)
        opened = device, cache, int(device.memory()[0] * 0.8)
        wishes = tuple(WISHES)
        works: dict[str, tuple[CompiledModel, tuple[Any, ...], tuple[str, ...], int]] = {
            "CpG islands": (models["islands"], (4, 1, given.chromosome), wishes[:3], threads),
            "profile of 400 nodes": (long_model, (20, 4000, 350, 0.3), wishes, threads),
            "profile of 100 nodes": (models["local"], (20, 20_000, 350, 0.3), wishes, threads),
            "10-state profile": (models["profile"], (20, 75_000, 350, 0.3), wishes, 0),
            "casino": (models["casino"], (6, given.sequences, 300), wishes, 0),
        }
        for work in given.works or works:
            model, size, wanted, beside = works[work]
            rows += measure(work, model, random_block(*size), opened, wanted, beside)
        part = random_block(6, 100_000, 300)
        for wish in wishes[:3] if threads and "casino" in (given.works or works) else ():
            rows.append(on_all_cores(models["casino"], part, wish, threads, "casino"))
        name = device.name
    print_note(json.dumps(compiling))
    peer = hmmlearn_on_all_cores(given.hmmlearn, threads) if given.hmmlearn and threads else {}
    facts = provenance() | {
        "device": name,
        "threads": threads,
        "version": __version__,
        "nvrtc_seconds": compiling,
        "hmmlearn_score": peer,
        "rows": rows,
    }
    print(json.dumps(facts, indent=1))


def print_note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
