"""A pair of sequences, aligned by every method on every device: the paper of tiles, made again.

    python benchmarks/tiles.py [--devices cpu,cuda] [--parts pairs,differences,tiles,transfers]

Du, Yin and Bader (2010) align pairs of 100 to 1,000 residues by four programs (Table I), pairs of
2,000 to 5,000 by streaming and by tiles (Figure 11), and measure the share of transfers
(Figure 9) and the side of a tile (Figure 10), on a GeForce 9800 GTX. Here each pair is a random
sequence and a copy with differences, of which a tenth are gaps. Four parts:

    pairs        every method, by the length of the sequences, with 10% differences
    differences  wave-front and tiles, with 1 to 30% differences
    tiles        tiles of one side, between true matches of 12 bases (Figure 10)
    transfers    streaming on a GPU: kernels, and the copies of the directions alone (Figure 9)

`seconds` is a call in a process that has warmed up, with copies and the path; `kernels` is the
device's own time. `serial` is the whole matrix, row by row, by one thread. A tile method indexes
one sequence, finds matches, and aligns between them: `anchors` and `tiles` are the two parts of
that, `aligned` is the share of the query. `tile` has the options of the command, `tile -l 12`
those for more differences (-l 12 -c 24 -g 500). Medians of `--runs`; after `--seconds` no new row
begins. Writes `results/tile-viterbi/pairs.json` after each row.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import numpy as np
from measure import RESULTS, save

from mummergpu import Index
from mummergpu.input.blocks.memory import block_in_memory, reference_in_memory
from mummergpu.mapping.genomes import device_tiles
from mummergpu.mapping.genomes.aligner import GenomeAligner
from mummergpu.mapping.genomes.options import NUCMER_COSTS, ClusterOptions, GenomeOptions
from mummergpu.matching.options import STRANDS, DeviceOptions, SearchOptions, Uniqueness
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.matrix_opening import open_matrix
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN, with_margins
from mummergpu.sequence.mems import MemColumns
from mummergpu.sequence.strand import Strand
from mummergpu.viterbi.recurrence.model import AlignmentMethod
from mummergpu.viterbi.recurrence.tile import Tile
from mummergpu.viterbi.whole.processor_matrix import matrix_fits
from mummergpu.viterbi.whole.whole_matrix import MatrixScratch, align_whole

SIDES = (100, 200, 300, 400, 500, 1000, 2000, 3000, 4000, 5000, 10_000, 20_000, 50_000, 100_000)
SIDES += (200_000,)
DIFFERENT_SIDES = (1000, 5000, 20_000, 200_000)
PERCENTS = (1, 5, 10, 20, 30)
TILE_SIDES = (50, 100, 200, 400, 800, 1400)
TILED_BASES = (20_000, 200_000, 2_000_000)
STREAMED_SIDES = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
SERIAL_SIDE, PROCESSOR_SIDE = 5000, 50_000
"""The longest sequences for one thread, and for whole matrices on the processor."""

WAVEFRONT, STREAMING = AlignmentMethod.WAVEFRONT, AlignmentMethod.STREAMING
ANCHOR = 12
OPTIONS = {
    "tile": (20, ClusterOptions()),
    "tile -l 12": (ANCHOR, ClusterOptions(min_bases=24, max_gap=500)),
}
Job = Callable[[], dict[str, float]]


class Pair(NamedTuple):
    """A sequence and its copy, as codes, and for each base of the sequence its place there."""

    query: np.ndarray
    reference: np.ndarray
    places: np.ndarray  # -1 if the base is not in the copy, or another one


def made_pair(side: int, percent: float) -> Pair:
    """Return a random sequence and its copy; a difference in ten is a gap of 1 to 4 bases."""
    random = np.random.default_rng(side)
    reference = random.integers(0, 4, side, dtype=np.uint8)
    chance = random.random(side) / percent * 100
    shifts = random.integers(1, 4, side, dtype=np.uint8)
    added = np.where((chance < 0.1) & (chance >= 0.05), random.integers(1, 5, side), 0)
    is_there = np.convolve(chance < 0.05, np.ones(2), "full")[:side] == 0
    bases = np.where((chance < 1) & (chance >= 0.1), (reference + shifts) % 4, reference)
    counts = np.where(is_there, 1 + added, 0)
    query = np.repeat(bases.astype(np.uint8), counts)
    starts = np.cumsum(counts) - counts
    inside = np.arange(query.size) - np.repeat(starts, counts)
    query[inside > 0] = random.integers(0, 4, int((inside > 0).sum()), dtype=np.uint8)
    places = np.where(is_there & (bases == reference), starts, -1)
    return Pair(query, reference, places)


def letters(codes: np.ndarray) -> str:
    """Return codes as text."""
    return np.frombuffer(b"ACGT", dtype=np.uint8)[codes].tobytes().decode()


class Bench:
    """The methods on the devices, opened once."""

    def __init__(self, devices: list[str], threads: int, stack: ExitStack) -> None:
        self.stats = Stats()
        self.context = RunContext(threads, self.stats, notice=print)
        self.devices, self.name = devices, None
        stack.enter_context(self.context.executor)
        self.matrices = {
            (method, backend): open_matrix(
                method, NUCMER_COSTS, DeviceOptions(backend=backend), self.context, stack
            )
            for method in (WAVEFRONT, STREAMING)
            for backend in devices
        }
        self.aligners: dict[str, Any] = {"cpu": None}
        if "cuda" in devices:
            self.aligners["cuda"] = self._open_tiles(stack)
            # All tiles of a pair go to the device, however few they are.
            device_tiles.MIN_CELLS = 0

    def _open_tiles(self, stack: ExitStack) -> Any:
        from mummergpu.cuda.kernel_cache import Programs
        from mummergpu.matching.open_cuda import open_device
        from mummergpu.viterbi.device.cuda_program import VITERBI_PROGRAM
        from mummergpu.viterbi.device.device_tiles import DeviceTiles

        device, cache = open_device(DeviceOptions(backend="cuda"), stack, print)
        self.device, self.name = device, device.name
        program = Programs(device, cache).load(VITERBI_PROGRAM)
        tiles = DeviceTiles(device, program, NUCMER_COSTS, device.memory()[0] // 4, self.stats)
        stack.callback(tiles.free)
        return tiles.align

    def kernels(self) -> float:
        """Return the seconds of all kernels so far, by the device's own clock."""
        kernels = self.stats.as_dict()["kernels"].values()
        return sum(float(each["milliseconds"]) for each in kernels) / 1e3

    def matrix_job(self, method: AlignmentMethod, backend: str, pair: Pair) -> Job | None:
        """Return what aligns a pair with its whole matrix, or None if that is too large."""
        matrix = self.matrices[method, backend]
        sizes = pair.query.size, pair.reference.size
        if matrix.check(*sizes) or (backend == "cpu" and max(sizes) > 1.1 * PROCESSOR_SIDE):
            return None
        return lambda: {"score": matrix.align(pair.query, pair.reference)[0]}

    def tile_job(self, name: str, backend: str, pair: Pair) -> Job:
        """Return what aligns a pair in tiles between matches."""
        length, clusters = OPTIONS[name]
        texts = letters(pair.query), letters(pair.reference)
        block = block_in_memory([("query", texts[0])])
        reference = reference_in_memory([("reference", texts[1])])
        options = GenomeOptions(clusters)
        aligner = GenomeAligner(reference, options, self.aligners[backend])
        search = SearchOptions(length, STRANDS["forward"], Uniqueness.IN_REFERENCE)

        def run() -> dict[str, float]:
            begin = time.perf_counter()
            with Index.build([("reference", texts[1])], min_length=length) as index:
                found = index.match(
                    texts[0], mode="mumreference", backend="cpu", threads=self.context.threads
                )
            columns = columns_of(found.query_start, found.reference_start, found.length)
            between = time.perf_counter()
            aligned = aligner.align_block(
                block, {search.strands[0]: columns}, self.context.executor.map
            )
            end = time.perf_counter()
            covered = int((aligned.query_ends - aligned.query_starts).sum())
            return {
                "anchors": between - begin,
                "tiles": end - between,
                "aligned": covered / pair.query.size,
            }

        return run

    def side_job(self, side: int, backend: str, pair: Pair) -> tuple[int, Job]:
        """Return the tiles, and what aligns them, between true matches about `side` bases apart."""
        runs = np.convolve(np.diff(pair.places) == 1, np.ones(ANCHOR - 1), "valid") == ANCHOR - 1
        starts = np.flatnonzero(runs & (pair.places[: runs.size] >= 0))
        wanted = np.arange(0, pair.reference.size, side + ANCHOR)
        chosen = np.searchsorted(starts, wanted)
        starts = np.unique(starts[chosen[chosen < starts.size]])
        starts = starts[np.diff(starts, prepend=-ANCHOR) >= ANCHOR]
        columns = columns_of(pair.places[starts], starts, np.full(starts.size, ANCHOR))
        reference = reference_in_memory([("reference", letters(pair.reference))])
        clusters = ClusterOptions(1, 4 * side, 4 * side, 1.0)
        aligner = GenomeAligner(
            reference, GenomeOptions(clusters, extend=False), self.aligners[backend]
        )
        block = block_in_memory([("query", letters(pair.query))])

        def run() -> dict[str, float]:
            aligned = aligner.align_block(
                block, {Strand.FORWARD: columns}, self.context.executor.map
            )
            covered = int((aligned.query_ends - aligned.query_starts).sum())
            return {"aligned": covered / pair.query.size, "score": int(aligned.scores.sum())}

        return starts.size - 1, run

    def copy_job(self, pair: Pair) -> tuple[int, Job]:
        """Return the bytes, and what copies the directions of a pair's rounds to the host."""
        from mummergpu.viterbi.device.device_matrix import BLOCK_BYTES, BLOCK_COLUMNS, STRIP_ROWS
        from mummergpu.viterbi.whole.processor_matrix import RoundPlan

        plan = RoundPlan(pair.query.size, pair.reference.size, STRIP_ROWS, BLOCK_COLUMNS)

        def run() -> dict[str, float]:
            pinned = self.device.pinned(plan.max_blocks * BLOCK_BYTES, np.uint8)
            with (
                closing(_Freed(self.device.allocate(pinned.size))) as buffer,
                closing(_Freed(self.device.new_stream())) as stream,
            ):
                before = stream.own.mark()
                for number in range(plan.rounds):
                    size = plan.block_count(number) * BLOCK_BYTES
                    stream.own.copy_out(pinned[:size], buffer.own.address)
                after = stream.own.mark()
                stream.own.synchronize()
                return {"copies": after.milliseconds_since(before) / 1e3}

        return int(plan.first_blocks[-1]) * BLOCK_BYTES, run


class _Freed(NamedTuple):
    """Something of a device that is freed in the end."""

    own: Any

    def close(self) -> None:
        self.own.free()


def columns_of(query: Any, reference: Any, lengths: Any) -> MemColumns:
    """Return matches of the only query."""
    arrays = (np.ascontiguousarray(each, dtype=np.int64) for each in (query, reference, lengths))
    return MemColumns(np.array([0, len(query)]), *arrays)


def serial_job(pair: Pair) -> Job:
    """Return what computes the whole matrix row by row."""
    query, reference = pair.query, pair.reference
    columns = reference.size + 1
    scratch = MatrixScratch(
        np.empty(2 * columns, dtype=np.int64),
        np.empty((query.size + 1) * columns, dtype=np.uint8),
        np.empty(query.size + 1, dtype=np.int64),
    )
    operations = np.empty(query.size + reference.size, dtype=np.uint32)
    codes = with_margins(query), with_margins(reference)
    tile = Tile(MARGIN, query.size, MARGIN, reference.size, 1)

    def run() -> dict[str, float]:
        found = align_whole(*codes, tile, NUCMER_COSTS, -(1 << 40), scratch, operations, 0)
        return {"score": int(found[0])}

    return run


def timed(bench: Bench, jobs: dict[str, Job], runs: int) -> dict[str, dict[str, float]]:
    """Run jobs in turn, after one uncounted turn; return the medians of each."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in jobs}
    for turn in range(runs + 1):
        for name, job in jobs.items():
            before, begin = bench.kernels(), time.perf_counter()
            own = job()
            seconds = time.perf_counter() - begin
            if turn:
                own |= {"seconds": seconds}
                if "cuda" in name:
                    own["kernels"] = bench.kernels() - before
                found[name].append(own)
    scores = {each[0]["score"] for each in found.values() if "score" in each[0]}
    assert len(scores) <= 1, f"methods differ: {scores}"
    return {
        name: {key: float(f"{statistics.median(one[key] for one in each):.4g}") for key in each[0]}
        for name, each in found.items()
    }


def pair_jobs(bench: Bench, pair: Pair, methods: tuple[AlignmentMethod, ...]) -> dict[str, Job]:
    """Return the methods for a pair, by name and device."""
    jobs: dict[str, Job] = {}
    if pair.reference.size <= SERIAL_SIDE and STREAMING in methods:
        jobs["serial"] = serial_job(pair)
    for backend in bench.devices:
        for method in methods:
            if job := bench.matrix_job(method, backend, pair):
                jobs[f"{method.value} {backend}"] = job
        for name in OPTIONS:
            jobs[f"{name} {backend}"] = bench.tile_job(name, backend, pair)
    return jobs


Row = tuple[dict[str, Any], dict[str, Job]]
"""What is measured, and the jobs."""


def pair_rows(bench: Bench, longest: int) -> Iterator[Row]:
    """Yield pairs with 10% differences, by length."""
    for side in (side for side in SIDES if side <= longest):
        row = {"side": side, "percent": 10}
        yield row, pair_jobs(bench, made_pair(side, 10), (WAVEFRONT, STREAMING))


def difference_rows(bench: Bench, longest: int) -> Iterator[Row]:
    """Yield pairs by length and differences; the whole matrix is that of ``--method auto``."""
    for side in (side for side in DIFFERENT_SIDES if side <= longest):
        for percent in PERCENTS:
            pair = made_pair(side, percent)
            is_whole = bool(matrix_fits(np.array([pair.query.size]), side)[0])
            row = {"side": side, "percent": percent, "auto is whole": is_whole}
            yield row, pair_jobs(bench, pair, (WAVEFRONT,) if is_whole else ())


def tile_rows(bench: Bench, longest: int) -> Iterator[Row]:
    """Yield pairs by length and side of a tile."""
    for bases in (bases for bases in TILED_BASES if bases <= 10 * longest):
        pair = made_pair(bases, 10)
        for side in TILE_SIDES:
            jobs = {name: bench.side_job(side, name, pair) for name in bench.devices}
            row = {"bases": bases, "side": side, "tiles": jobs[bench.devices[0]][0]}
            yield row, {f"tile {name}": job for name, (_, job) in jobs.items()}


def transfer_rows(bench: Bench, longest: int) -> Iterator[Row]:
    """Yield pairs by length, if there is a device: copies alone, and both whole matrices."""
    for side in (side for side in STREAMED_SIDES if side <= longest and "cuda" in bench.devices):
        pair = made_pair(side, 10)
        size, copies = bench.copy_job(pair)
        jobs = {"copies cuda": copies}
        for method in (WAVEFRONT, STREAMING):
            if job := bench.matrix_job(method, "cuda", pair):
                jobs[f"{method.value} cuda"] = job
        yield {"side": side, "bytes": size}, jobs


PARTS = {
    "pairs": pair_rows,
    "differences": difference_rows,
    "tiles": tile_rows,
    "transfers": transfer_rows,
}


def main() -> None:
    """Measure the parts, and write all rows after each one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", default="cpu,cuda")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--longest", type=int, default=SIDES[-1], help="The longest sequences.")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--name", default="tile-viterbi/pairs.json")
    options = parser.parse_args()
    begin = time.perf_counter()
    results: dict[str, Any] = {"runs": options.runs}
    (RESULTS / options.name).parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        bench = Bench(options.devices.split(","), len(os.sched_getaffinity(0)), stack)
        results["device"] = bench.name
        for part in options.parts.split(","):
            results[part] = []
            for row, jobs in PARTS[part](bench, options.longest):
                if time.perf_counter() - begin > options.seconds:
                    print(f"no time for {part} {row}")
                    continue
                is_long = max(row["side"], row.get("bases", 0)) >= 50_000
                found = timed(bench, jobs, 1 if is_long else options.runs)
                results[part].append(row | {"methods": found})
                shown = {name: round(each["seconds"] * 1e3, 2) for name, each in found.items()}
                print(part, row, shown, flush=True)
                save(options.name, results)


if __name__ == "__main__":
    main()
