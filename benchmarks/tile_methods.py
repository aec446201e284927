"""The tables of the tile-based Viterbi paper, made again: serial, wave-front, streaming, tile.

    python benchmarks/tile_methods.py [--backends cpu,cuda] [--sides 100,...] [--runs 5]

Du, Yin and Bader (2010) align pairs of sequences of 100 to 1,000 residues by four programs (table
I), and pairs of 2,000 to 5,000 by streaming and by tiles (figure 11), on a GeForce 9800 GTX. Here
each pair is a random sequence and its copy, with differences in a tenth of the bases, of which a
tenth are gaps. Times are those of a call in a process that has warmed up: copies to and from the
device and the path are included. `serial` is the whole matrix, row by row, by one thread; `tile`
indexes one sequence, finds the matches of at least 12 bases, chains them, and computes what is
between them. It extends no alignment, so the bases that it aligns are told too.
Writes `results/tile-viterbi/methods.json`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
from measure import RESULTS, save

from mummergpu import Index
from mummergpu.mapping.genomes.options import NUCMER_COSTS
from mummergpu.matching.options import DeviceOptions
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.matrix_opening import open_matrix
from mummergpu.sequence.codes import MARGIN, with_margins
from mummergpu.viterbi.methods import AlignmentMethod
from mummergpu.viterbi.recurrence.tile import Tile
from mummergpu.viterbi.whole.whole_matrix import MatrixScratch, align_whole

SIDES = (100, 200, 300, 400, 500, 1000, 2000, 3000, 4000, 5000, 10_000, 20_000)
DIFFERENT = 0.1
SERIAL_SIDE = 10_000
"""The serial program is not run for longer sequences."""

MATRIX_METHODS = (AlignmentMethod.WAVEFRONT, AlignmentMethod.STREAMING)
Job = Callable[[], Any]


def made_pair(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a random sequence and its copy, as codes."""
    random = np.random.default_rng(side)
    reference = random.integers(0, 4, side, dtype=np.uint8)
    query: list[int] = []
    for base in reference.tolist():
        chance = random.random() / DIFFERENT
        if chance >= 1:
            query.append(base)
        elif chance >= 0.1:
            query.append((base + int(random.integers(1, 4))) % 4)
        elif chance >= 0.05:
            query += [base, *random.integers(0, 4, random.integers(1, 5)).tolist()]
    return np.array(query, dtype=np.uint8), reference


def letters(codes: np.ndarray) -> str:
    """Return codes as text."""
    return "".join("ACGT"[code] for code in codes)


def serial_job(query: np.ndarray, reference: np.ndarray) -> Job:
    """Return what computes the whole matrix row by row."""
    columns = reference.size + 1
    scratch = MatrixScratch(
        np.empty(2 * columns, dtype=np.int64),
        np.empty((query.size + 1) * columns, dtype=np.uint8),
        np.empty(query.size + 1, dtype=np.int64),
    )
    operations = np.empty(query.size + reference.size, dtype=np.uint32)
    codes = with_margins(query), with_margins(reference)
    tile = Tile(MARGIN, query.size, MARGIN, reference.size, 1)

    def run() -> int:
        score, _ = align_whole(*codes, tile, NUCMER_COSTS, -(1 << 40), scratch, operations, 0)
        return score

    return run


def tile_job(query: np.ndarray, reference: np.ndarray) -> Job:
    """Return what aligns by tiles; it returns the bases of the query that are aligned."""
    texts = letters(query), letters(reference)

    def run() -> int:
        with Index.build([("reference", texts[1])], min_length=12) as index:
            found = index.align(texts[0], min_cluster=24, max_gap=500, backend="cpu")
        return int((found.query_end - found.query_start).sum())

    return run


def jobs_of(side: int, matrices: dict[str, Any]) -> Iterator[tuple[str, Job]]:
    """Yield the programs for sequences of a length."""
    query, reference = made_pair(side)
    if side <= SERIAL_SIDE:
        yield "serial", serial_job(query, reference)
    for name, matrix in matrices.items():
        yield name, lambda matrix=matrix: matrix.align(query, reference)[0]
    yield "tile", tile_job(query, reference)


def main() -> None:
    """Time all programs in turn, for each length."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backends", default="cpu,cuda")
    parser.add_argument("--sides", default=",".join(map(str, SIDES)))
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    table: list[dict[str, Any]] = []
    with ExitStack() as stack:
        context = RunContext(len(os.sched_getaffinity(0)), notice=print)
        stack.enter_context(context.executor)
        matrices = {}
        for backend in options.backends.split(","):
            device = DeviceOptions(backend=backend)
            for method in MATRIX_METHODS:
                matrices[f"{method.value} {backend}"] = open_matrix(
                    method, NUCMER_COSTS, device, context, stack
                )
        for side in map(int, options.sides.split(",")):
            seconds: dict[str, list[float]] = {}
            results: dict[str, Any] = {}
            jobs = dict(jobs_of(side, matrices))
            for turn in range(options.runs + 1):
                for name, job in jobs.items():
                    begin = time.perf_counter()
                    results[name] = job()
                    if turn:
                        seconds.setdefault(name, []).append(time.perf_counter() - begin)
            aligned = results.pop("tile")
            assert len(set(results.values())) == 1, results
            medians = {name: statistics.median(each) for name, each in seconds.items()}
            rates = {name: side**2 / each / 1e9 for name, each in medians.items() if name != "tile"}
            table.append(
                {"side": side, "seconds": medians, "gcups": rates, "bases_in_tiles": aligned}
            )
            print(side, {name: round(each * 1e3, 3) for name, each in medians.items()}, aligned)
    (RESULTS / "tile-viterbi").mkdir(parents=True, exist_ok=True)
    save("tile-viterbi/methods.json", {"runs": options.runs, "table": table})


if __name__ == "__main__":
    main()
