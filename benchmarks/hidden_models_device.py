"""Times hidden Markov models on a GPU, beside the processor and hmmlearn; prints JSON.

python benchmarks/hidden_models_device.py > benchmarks/results/hidden_models_device.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np

from mummergpu.cuda import nvrtc
from mummergpu.cuda.sources import read_sources
from mummergpu.hmm.language.cuda_text import chain_program
from mummergpu.hmm.language.device import DeviceChains
from mummergpu.hmm.language.evaluation import CompiledModel, evaluate
from mummergpu.hmm.language.lanes import SymbolBlock
from mummergpu.hmm.language.parser import parse_program
from mummergpu.hmm.language.program import Algorithm, Attribute
from mummergpu.matching.open_cuda import open_first_device
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


def random_block(symbols: int, count: int, length: int, spread: float = 0.0) -> SymbolBlock:
    choice = np.random.default_rng(7)
    lengths = np.maximum(1, choice.normal(length, spread * length, count)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
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


def measure(
    name: str, model: CompiledModel, block: SymbolBlock, device: Any, cache: Any, memory: int
) -> list[dict[str, Any]]:
    rows = []
    wishes = {
        "forward": (Algorithm.FORWARD, (Attribute.SCORE,)),
        "viterbi": (Algorithm.VITERBI, (Attribute.SCORE,)),
        "viterbi and trace": (Algorithm.VITERBI, (Attribute.SCORE, Attribute.TRACEBACK)),
    }
    few = SymbolBlock(block.codes[: block.offsets[5000]], block.offsets[:5001])
    for double in (False, True):
        for wish, (algorithm, wanted) in wishes.items():
            if double and algorithm is Algorithm.VITERBI:
                continue
            stats = Stats()
            chains = DeviceChains(device, cache, memory, stats, double)
            begin = time.perf_counter()
            ours = evaluate(model, algorithm, few, wanted, device=chains)
            first = time.perf_counter() - begin
            expected = evaluate(model, algorithm, few, wanted)
            finite = np.isfinite(expected.scores)
            error = np.abs(ours.scores[finite] / expected.scores[finite] - 1).max()
            same = wish == "forward" or bool((ours.scores == expected.scores).all())
            if ours.runs is not None:
                pairs = zip(ours.runs, expected.runs, strict=True)
                same = same and all(np.array_equal(one, other) for one, other in pairs)
            evaluate(model, algorithm, block, wanted, device=chains)
            kernels = []
            for _ in range(3):
                before = milliseconds(stats)
                evaluate(model, algorithm, block, wanted, device=chains)
                kernels.append(round(milliseconds(stats) - before, 4))
            whole = timed(
                lambda a=algorithm, w=wanted, c=chains: evaluate(model, a, block, w, device=c), 3
            )
            chains.close()
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
    return rows


def milliseconds(stats: Stats) -> float:
    """Return what all kernels have taken."""
    return sum(one.milliseconds for one in stats.kernels.values())


def on_all_cores(
    model: CompiledModel, block: SymbolBlock, wish: Algorithm, threads: int
) -> dict[str, Any]:
    with ThreadPoolExecutor(threads) as executor:

        def work() -> None:
            evaluate(model, wish, block, map_parts=executor.map)

        work()
        seconds = timed(work, 3)
    return {
        "work": "casino on all cores",
        "what": wish.value,
        "symbols": int(block.offsets[-1]),
        "threads": threads,
        "whole_s": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=1_000_000)
    parser.add_argument("--hmmlearn", type=int, default=32, help="runs of 10,000 sequences")
    given = parser.parse_args()
    threads = os.cpu_count() or 1
    casino = CompiledModel(parse_program(CASINO).models["casino"])
    profile = CompiledModel(parse_program(profile_text()).models["profile"])
    rows: list[dict[str, Any]] = []
    compiling = []
    for model in (casino, profile):
        for kind in ((True, False, False), (False, False, True)):
            begin = time.process_time()
            program = chain_program(model.chain.shape, *kind)
            nvrtc.compile_program(read_sources(), program, "sm_90")
            compiling.append(round(time.process_time() - begin, 4))
    with ExitStack() as stack:
        options = DeviceOptions(backend="cuda", numbers=(0,), library="cuda-bindings")
        device, cache = open_first_device(options, stack, print_note)
        memory = int(device.memory()[0] * 0.8)
        block = random_block(6, given.sequences, 300)
        rows += measure("casino", casino, block, device, cache, memory)
        proteins = random_block(20, 75_000, 350, 0.3)
        rows += measure("10-state profile", profile, proteins, device, cache, memory)
        name = device.name
    part = SymbolBlock(block.codes[: block.offsets[100_000]], block.offsets[:100_001])
    for wish in (Algorithm.FORWARD, Algorithm.VITERBI):
        rows.append(on_all_cores(casino, part, wish, threads))
    peer: dict[str, Any] = {}
    try:
        with ProcessPoolExecutor(threads) as pool:
            list(pool.map(hmmlearn_score, [(100, 300)] * threads))
            begin = time.perf_counter()
            each = list(pool.map(hmmlearn_score, [(10_000, 300)] * given.hmmlearn))
            peer = {
                "runs": given.hmmlearn,
                "sequences_each": 10_000,
                "processes": threads,
                "seconds": round(time.perf_counter() - begin, 4),
                "seconds_each": [round(one, 4) for one in each],
            }
    except Exception as error:
        peer = {"error": repr(error)}
    facts = {
        "command": " ".join(sys.argv),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "device": name,
        "cores": threads,
        "python": platform.python_version(),
        "version": __version__,
        "nvrtc_seconds": compiling,
        "hmmlearn_score": peer,
        "rows": rows,
    }
    print(json.dumps(facts, indent=1))


def print_note(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
