"""What building and searching tables of k-mers costs, and how well the model predicts it.

    python benchmarks/kmer_costs.py [--bases 1e6 1e7 1e8] [--lengths 14 20 31 50 100 200]

For references of several sizes and several minimum lengths, tables with different k-mer lengths
and reference steps are built and searched by one thread: with reads of the reference, which have
one base of a hundred changed, and with random ones. From all figures the costs of the steps are
fitted, and each figure is compared with what the built-in costs predict. Where the model chooses a
table, its time is compared with that of the best one measured.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from measure import machine, save

from mummergpu.index.kmer_plan import (
    PROCESSOR_COSTS,
    KmerJob,
    choose_sampling,
    expected_cost,
    max_table_bytes,
)
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import KmerPage, build_kmer_table
from mummergpu.index.pages import Page
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN, with_margins
from mummergpu.sequence.strand import Strand

READ_BASES = 150
READS_OF_BLOCK = 3000
SCRATCH_BYTES = 1 << 28
QUERY_BASES = (10**6, 10**8, 10**10)
"""The query bases for which the total cost of a choice is compared with the best."""


@dataclass(frozen=True)
class Measured:
    """What one table cost.

    Attributes
    ----------
    bases, minimum_length : int
        The size of the reference, and the fewest bases of a MEM.
    kmer_length, reference_step, query_step : int
        The sampling.
    table_seconds : float
        To build the table, by one thread.
    read_nanoseconds, random_nanoseconds : float
        To search a base of a read of the reference, and of a random one.
    """

    bases: int
    minimum_length: int
    kmer_length: int
    reference_step: int
    query_step: int
    table_seconds: float
    read_nanoseconds: float
    random_nanoseconds: float

    @property
    def sampling(self) -> KmerSampling:
        """The k-mers that the table lists."""
        return KmerSampling(self.kmer_length, self.reference_step)

    def seconds(self, query_bases: int) -> float:
        """Return the time for a table and reads of so many bases."""
        return self.table_seconds + self.read_nanoseconds * 1e-9 * query_bases


def blocks_of(reads: npt.NDArray[np.uint8]) -> list[QueryBlock]:
    names = np.empty(0, dtype=np.uint8)
    found = []
    for first in range(0, len(reads), READS_OF_BLOCK):
        part = reads[first : first + READS_OF_BLOCK]
        offsets = np.arange(len(part) + 1, dtype=np.int64) * READ_BASES
        padded = with_margins(part.reshape(-1))
        found.append(QueryBlock(0, padded, offsets, names, np.zeros_like(offsets)))
    return found


def search_nanoseconds(backend: KmerCpuBackend, blocks: list[QueryBlock], runs: int) -> float:
    """Return the least time for a base of the blocks."""
    best = float("inf")
    for _ in range(runs):
        begin = time.thread_time()
        for block in blocks:
            assert backend.find_mems(block, (Strand.FORWARD,), 1 << 40) is not None
        best = min(best, time.thread_time() - begin)
    return best / sum(block.base_count for block in blocks) * 1e9


def samplings_of(bases: int, minimum_length: int) -> Iterator[KmerSampling]:
    """Yield the tables that are tried: around the reference's size, with several steps."""
    fair = int(np.log2(bases) / 2)
    for kmer_length in range(max(1, fair - 2), min(15, fair + 2) + 1):
        longest = minimum_length - kmer_length + 1
        for step in sorted({1, 2, 3, 5, 8, 13, 20}):
            if step <= longest:
                yield KmerSampling(kmer_length, step)


def measure(
    bases: int, minimum_lengths: list[int], query_bases: int, runs: int
) -> Iterator[Measured]:
    random = np.random.default_rng(1)
    codes = with_margins(random.integers(0, 4, bases, dtype=np.uint8))
    starts = random.integers(0, bases - READ_BASES, query_bases // READ_BASES)
    reads = codes[MARGIN + starts[:, None] + np.arange(READ_BASES)]
    changed = random.random(reads.shape) < 0.01
    reads = np.where(changed, (reads + 1) & 3, reads).astype(np.uint8)
    unrelated = random.integers(0, 4, reads.shape, dtype=np.uint8)
    of_reference, of_nothing = blocks_of(reads), blocks_of(unrelated)
    tried = {
        sampling: [length for length in minimum_lengths if length >= sampling.shortest_match]
        for longest in [max(minimum_lengths)]
        for sampling in samplings_of(bases, longest)
    }
    for sampling, lengths in tried.items():
        begin = time.thread_time()
        table = build_kmer_table(codes, 0, bases, sampling, map, max(SCRATCH_BYTES, 2 * bases))
        table_seconds = time.thread_time() - begin
        page = KmerPage(Page(0, 0, bases, bases), table, codes)
        for length in lengths:
            backend = KmerCpuBackend(Stats())
            backend.load_pages([page], length)
            yield Measured(
                bases,
                length,
                *asdict(sampling).values(),
                sampling.query_step(length),
                table_seconds,
                search_nanoseconds(backend, of_reference, runs),
                search_nanoseconds(backend, of_nothing, runs),
            )


def fitted(found: list[Measured]) -> dict[str, float]:
    """Return the costs in nanoseconds that fit references larger than the caches best."""
    large = [one for one in found if one.bases >= 10**7]
    tables = np.array([[one.bases / one.reference_step, 4.0**one.kmer_length] for one in large])
    times = np.array([one.table_seconds * 1e9 for one in large])
    position, offset = np.linalg.lstsq(tables / times[:, None], np.ones(len(large)), rcond=None)[0]
    counts = np.array(
        [[1.0, one.bases / one.reference_step / 4.0**one.kmer_length] for one in large]
    )
    times = np.array([one.random_nanoseconds * one.query_step for one in large])
    lookup, candidate = np.linalg.lstsq(counts / times[:, None], np.ones(len(large)), rcond=None)[0]
    pairs = [
        (one.read_nanoseconds - one.random_nanoseconds) * one.query_step * one.reference_step
        for one in large
    ]
    return {
        "position": position,
        "offset": offset,
        "lookup": lookup,
        "candidate": candidate,
        "pair": float(np.median(pairs)),
    }


def compared(found: list[Measured]) -> dict[str, Any]:
    """Return how far predictions are from the figures, and choices from the best."""
    rows, choices = [], []
    for one in found:
        job = KmerJob(one.bases, one.minimum_length, 10**9)
        expected = expected_cost(job, one.sampling)
        rows.append(
            asdict(one)
            | {
                "table_ratio": expected.table / one.table_seconds,
                "search_ratio": expected.search / one.read_nanoseconds,
            }
        )
    jobs = {(one.bases, one.minimum_length) for one in found}
    for bases, length in sorted(jobs):
        tried = {
            one.sampling: one for one in found if (one.bases, one.minimum_length) == (bases, length)
        }
        for query_bases in QUERY_BASES:
            job = KmerJob(bases, length, query_bases)
            most = max_table_bytes(bases)
            allowed = {key: one for key, one in tried.items() if key.table_bytes(bases) <= most}
            best = min(allowed.values(), key=lambda one: one.seconds(query_bases))
            # Among those that were measured, the one that the model would take.
            taken = min(allowed, key=lambda key: expected_cost(job, key).seconds)
            choices.append(
                asdict(replace(job))
                | {
                    "chosen": asdict(choose_sampling(job, most)),
                    "best_measured": asdict(best.sampling),
                    "taken": asdict(taken),
                    "times_the_best": allowed[taken].seconds(query_bases)
                    / best.seconds(query_bases),
                }
            )
    return {"figures": rows, "choices": choices}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bases", type=float, nargs="+", default=[1e6, 1e7, 1e8])
    parser.add_argument("--lengths", type=int, nargs="+", default=[14, 20, 31, 50, 100, 200])
    parser.add_argument("--query-bases", type=float, default=2e6)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--name", default="kmer-costs.json")
    given = parser.parse_args()
    found: list[Measured] = []
    for bases in given.bases:
        for one in measure(int(bases), given.lengths, int(given.query_bases), given.runs):
            print(one, flush=True)
            found.append(one)
    result = {"machine": machine(), "built_in": asdict(PROCESSOR_COSTS), "fitted": fitted(found)}
    print(result["fitted"])
    result |= compared(found)
    print(save(given.name, result))


if __name__ == "__main__":
    main()
