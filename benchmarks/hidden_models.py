"""Times hidden Markov models on the processor, beside hmmlearn and HMMER 2; prints JSON.

python benchmarks/hidden_models.py > benchmarks/results/hidden_models.json

hmmlearn is taken from the environment, and HMMER 2's programs from the path (Debian: hmmer2), where
they are; without them only this package is measured. Times are user seconds of one thread, and
peers take turns.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from measure import provenance

from mummergpu.api.hidden_markov_model import HiddenMarkovModel
from mummergpu.hmm.language.chain import Chain
from mummergpu.hmm.language.evaluation import CompiledModel, evaluate
from mummergpu.hmm.language.lanes import SymbolBlock, offsets_of_counts
from mummergpu.hmm.language.parser import parse_program
from mummergpu.hmm.language.processor_text import Kept, ProgramKind, program_text
from mummergpu.hmm.language.program import Algorithm, Attribute
from mummergpu.hmm.language.training import fit_model
from mummergpu.runtime.compiled import llvm_text
from mummergpu.version import __version__

TRACE = (Attribute.SCORE, Attribute.TRACEBACK)
LETTERS = "ACDEFGHIKLMNPQRSTVWY"


CASINO = """hmm casino { alphabet [1, 2, 3, 4, 5, 6]; startstate start; endstate end;
state fair emits even; state loaded emits biased;
emission even = [1/6, 1/6, 1/6, 1/6, 1/6, 1/6]; emission biased = [0.1, 0.1, 0.1, 0.1, 0.1, 0.5];
start -> fair 1; fair -> fair 0.95; fair -> loaded 0.05; loaded -> loaded 0.97999;
loaded -> fair 0.02; loaded -> end 0.00001; fair -> end 0.00001; }"""


def profile_text(nodes: int = 10, seed: int = 1) -> str:
    """Return a profile of the shape in the paper, with silent deletions."""
    choice = np.random.default_rng(seed)

    def row() -> str:
        chances = choice.dirichlet(np.full(20, 0.3))
        return ", ".join(f"{chance:.6f}" for chance in chances)

    lines = [f"hmm profile {{ alphabet [{', '.join(LETTERS)}]; startstate s; endstate e;"]
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


def user_seconds(work: Callable[[], Any]) -> float:
    """Return the user seconds of a call, and of the processes that it has waited for."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    before = sum(resource.getrusage(kind).ru_utime for kind in kinds)
    work()
    return round(sum(resource.getrusage(kind).ru_utime for kind in kinds) - before, 4)


def in_turns(works: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each of some works, which take turns; the first turn warms up."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            seconds = user_seconds(work)
            if turn:
                found[name].append(seconds)
    return found


def hmmlearn_works(chain: Chain, block: SymbolBlock) -> dict[str, Callable[[], Any]]:
    """Return the work of hmmlearn, whose rows of transitions must sum to 1: it has no end."""
    try:
        from hmmlearn.hmm import CategoricalHMM
    except ImportError:
        return {}
    count = chain.shape.nodes
    steps = np.zeros((count, count))
    for (source, target), chance in zip(chain.shape.steps, chain.probabilities, strict=True):
        steps[source, target] = chance
    model = CategoricalHMM(count)
    model.startprob_ = chain.start
    model.transmat_ = steps / steps.sum(axis=1, keepdims=True)
    model.emissionprob_ = chain.emissions[list(chain.shape.emissions)]
    given, lengths = block.codes.reshape(-1, 1).astype(np.int64), block.lengths.tolist()
    return {
        "hmmlearn score": lambda: model.score(given, lengths),
        "hmmlearn decode": lambda: model.decode(given, lengths),
    }


def casino_rows(rounds: int) -> list[dict[str, Any]]:
    model = CompiledModel(parse_program(CASINO).models["casino"])
    rows = []
    for count in (2500, 5000, 7500, 10_000):
        block = random_block(6, count, 300)
        works: dict[str, Callable[[], Any]] = {
            "forward": lambda b=block: evaluate(model, Algorithm.FORWARD, b),
            "viterbi": lambda b=block: evaluate(model, Algorithm.VITERBI, b),
            "viterbi and trace": lambda b=block: evaluate(model, Algorithm.VITERBI, b, TRACE),
            **hmmlearn_works(model.chain, block),
        }
        seconds = in_turns(works, rounds)
        rows.append({"work": "casino", "sequences": count, "length": 300, "user_s": seconds})
    return rows


def training_rows(rounds: int) -> list[dict[str, Any]]:
    """Measure iterations of Baum-Welch, beside both implementations of hmmlearn."""
    choice = np.random.default_rng(11)
    rows = []
    for states, symbols in ((2, 6), (4, 4), (8, 20)):
        chances = [choice.dirichlet(np.ones(size), states) for size in (states, symbols)]
        block = random_block(symbols, 2000, 300)
        model = HiddenMarkovModel(map(str, range(states)), *chances)
        works: dict[str, Callable[[], Any]] = {
            "mummergpu": lambda m=model, b=block: fit_model(m._compiled, b, 5, -np.inf),
            **hmmlearn_training(chances, block),
        }
        seconds = in_turns(works, rounds)
        rows.append(
            {"work": "training, 5 iterations", "states": states, "symbols": symbols}
            | {"sequences": 2000, "length": 300, "user_s": seconds}
        )
    return rows


def hmmlearn_training(
    chances: list[npt.NDArray[np.float64]], block: SymbolBlock
) -> dict[str, Callable[[], Any]]:
    """Return training by hmmlearn from the same model."""
    try:
        from hmmlearn.hmm import CategoricalHMM
    except ImportError:
        return {}
    given, lengths = block.codes.reshape(-1, 1).astype(np.int64), block.lengths.tolist()
    steps, emissions = chances

    def fit(implementation: str) -> None:
        model = CategoricalHMM(
            len(steps), n_iter=5, tol=-np.inf, init_params="", implementation=implementation
        )
        model.startprob_ = np.full(len(steps), 1 / len(steps))
        model.transmat_, model.emissionprob_ = steps, emissions
        model.fit(given, lengths)

    return {f"hmmlearn, {name}": lambda n=name: fit(n) for name in ("log", "scaling")}


def training_differences(models: int = 30, iterations: int = 15) -> list[dict[str, Any]]:
    """Compare trained models with those of both implementations of hmmlearn, number by number."""
    try:
        from hmmlearn.hmm import CategoricalHMM
    except ImportError:
        return []
    choice, worst = np.random.default_rng(5), 0.0
    for _ in range(models):
        states, symbols = int(choice.integers(1, 6)), int(choice.integers(2, 7))
        start = choice.dirichlet(np.ones(states))
        steps, emissions = (choice.dirichlet(np.ones(n), states) for n in (states, symbols))
        lengths = choice.integers(1, 60, 25)
        codes = choice.integers(0, symbols, int(lengths.sum()))
        model = HiddenMarkovModel(map(str, range(states)), steps, emissions, start=start)
        parts = np.split(codes, np.cumsum(lengths)[:-1])
        fit = model.fit(parts, iterations=iterations, tolerance=1e-3)
        for name in ("log", "scaling"):
            peer = CategoricalHMM(
                states, n_iter=iterations, tol=1e-3, init_params="", implementation=name
            )
            peer.n_features, peer.startprob_ = symbols, start
            peer.transmat_, peer.emissionprob_ = steps, emissions
            peer.fit(codes.reshape(-1, 1), lengths.tolist())
            pairs = (
                (fit.scores, np.array(peer.monitor_.history)),
                (fit.model.transitions, peer.transmat_),
                (fit.model.emissions, peer.emissionprob_),
                (fit.model.start, peer.startprob_),
            )
            worst = max(worst, *(float(abs(one - other).max()) for one, other in pairs))
    row = {"work": "training beside hmmlearn", "models": models, "iterations": iterations}
    return [row | {"largest_difference": worst}]


def islands_rows(rounds: int) -> list[dict[str, Any]]:
    model = CompiledModel(parse_program(islands_text()).models["islands"])
    block = random_block(4, 1, 2_000_000)
    works: dict[str, Callable[[], Any]] = {
        "forward": lambda: evaluate(model, Algorithm.FORWARD, block),
        "viterbi": lambda: evaluate(model, Algorithm.VITERBI, block),
        "viterbi and trace": lambda: evaluate(model, Algorithm.VITERBI, block, TRACE),
        **hmmlearn_works(model.chain, block),
    }
    seconds = in_turns(works, rounds)
    return [{"work": "CpG islands", "bases": int(block.offsets[-1]), "user_s": seconds}]


def scale_rows(rounds: int) -> list[dict[str, Any]]:
    """Measure models with a common scale of their states, and such as have none."""
    two = "state a emits x; state b emits y; s -> a 0.5; s -> b 0.5;"
    four = "state c[1] emits x; state c[2] emits y; state c[3] emits x; state c[4] emits y;"
    four += " s -> c[1] 1; for k in 1..3 { c[k] -> c[k+1] 0.01; }"
    stays = "for k in 1..4 { c[k] -> c[k] 0.99; }"
    texts = {
        "two states that meet": f"{two} a -> a 0.9; a -> b 0.1; b -> b 0.9; b -> a 0.1;",
        "two states that never meet": f"{two} a -> a 1; b -> b 1;",
        "four states in a ring": f"{four} {stays} c[4] -> c[1] 0.01;",
        "four states in a row": f"{four} {stays}",
    }
    block = random_block(2, 1, 2_000_000)
    rows = []
    for work, text in texts.items():
        head = "alphabet [A, B]; startstate s; emission x = [0.9, 0.1]; emission y = [0.3, 0.7];"
        model = CompiledModel(parse_program(f"hmm m {{ {head} {text} }}").models["m"])
        works: dict[str, Callable[[], Any]] = {
            "forward": lambda m=model: evaluate(m, Algorithm.FORWARD, block),
            "posterior": lambda m=model: evaluate(m, Algorithm.POSTERIOR, block, TRACE),
        }
        seconds = in_turns(works, rounds)
        rows.append({"work": work, "symbols": int(block.offsets[-1]), "user_s": seconds})
    return rows


def hmmer_profile(folder: Path, nodes: int) -> Path | None:
    """Return a profile of HMMER 2 with so many match states, made of a few random sequences."""
    build = shutil.which("hmm2build")
    if build is None:
        return None
    choice = np.random.default_rng(3)
    first = "".join(choice.choice(list(LETTERS), nodes))
    lines = ["# STOCKHOLM 1.0", ""]
    lines += [f"seq{number} {first}" for number in range(5)]
    (folder / "a.sto").write_text("\n".join([*lines, "//", ""]))
    command = [build, "-F", str(folder / "a.hmm"), str(folder / "a.sto")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "a.hmm"


def write_fasta(path: Path, block: SymbolBlock) -> None:
    letters = np.frombuffer(LETTERS.encode(), dtype=np.uint8)[block.codes].tobytes().decode()
    bounds = block.offsets.tolist()
    with path.open("w") as file:
        for number, (begin, end) in enumerate(pairwise(bounds)):
            file.write(f">p{number}\n{letters[begin:end]}\n")


def profile_rows(rounds: int, counts: list[int]) -> list[dict[str, Any]]:
    model = CompiledModel(parse_program(profile_text()).models["profile"])
    search = shutil.which("hmm2search")
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        profile = hmmer_profile(folder, 10)
        for count in counts:
            block = random_block(20, count, 350, 0.3)
            works: dict[str, Callable[[], Any]] = {
                "viterbi": lambda b=block: evaluate(model, Algorithm.VITERBI, b),
                "viterbi and trace": lambda b=block: evaluate(model, Algorithm.VITERBI, b, TRACE),
            }
            if profile is not None and search is not None:
                fasta = folder / f"{count}.fa"
                write_fasta(fasta, block)
                command = [search, "--cpu", "0", "-E", "1e-9", str(profile), str(fasta)]
                works["hmm2search"] = lambda c=command: subprocess.run(
                    c, check=True, capture_output=True
                )
                program = folder / "profile.program"
                program.write_text(
                    f"{profile_text()} main() {{ print viterbi(new profile()).score; }}"
                )
                ours = [sys.executable, "-m", "mummergpu", "hmm", "-q", "-t", "1", str(program)]
                ours += [str(fasta), "-o", str(folder / "scores.tsv")]
                works["mummergpu hmm"] = lambda c=ours: subprocess.run(c, check=True)
            seconds = in_turns(works, rounds)
            size = int(block.offsets[-1])
            rows.append(
                {"work": "10-state profile", "sequences": count, "residues": size}
                | {"user_s": seconds}
            )
    return rows


def compile_rows() -> list[dict[str, Any]]:
    """Measure what compiling takes, with nothing kept."""
    texts = {"casino": (CASINO, "casino"), "10-state profile": (profile_text(), "profile")}
    kinds = {
        "forward": ProgramKind(True),
        "viterbi": ProgramKind(False),
        "viterbi and trace": ProgramKind(False, Kept.TRACE),
    }
    kept, llvm_text.usable_levels = llvm_text.usable_levels, tuple
    rows = []
    for work, (text, name) in texts.items():
        for what, kind in kinds.items():

            def compile_one(t: str = text, n: str = name, k: ProgramKind = kind) -> None:
                shape = CompiledModel(parse_program(t).models[n]).chain.shape
                llvm_text._called.clear()
                llvm_text.compiled_text(program_text(shape, k), 9)

            compile_one()
            seconds = [user_seconds(compile_one) for _ in range(3)]
            rows.append({"work": f"compiling: {work}", "what": what, "user_s": seconds})
    llvm_text.usable_levels = kept
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--works", nargs="*", help="some of casino, training, islands, scales, profile, compiling"
    )
    parser.add_argument("--profiles", type=int, nargs="*", default=[5000, 13_355, 50_000, 75_000])
    given = parser.parse_args()
    works: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "casino": lambda: casino_rows(given.rounds),
        "training": lambda: training_rows(min(3, given.rounds)) + training_differences(),
        "islands": lambda: islands_rows(given.rounds),
        "scales": lambda: scale_rows(given.rounds),
        "profile": lambda: profile_rows(given.rounds, given.profiles),
        "compiling": compile_rows,
    }
    rows = [row for work in given.works or works for row in works[work]()]
    print(json.dumps(provenance() | {"version": __version__, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
