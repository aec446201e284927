"""Choose which k-mers a table lists: the cheapest choice by a model of the costs.

The model counts what a run does. Building visits each listed position and each of the ``4**k``
offsets. A search looks up every query-step-th position of the queries, compares the reference at
the other occurrences of a k-mer, and extends the pairs that lie in true matches. Each of these has
a cost (`KmerCosts`), measured by ``benchmarks/kmer_costs.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, expm1, inf
from typing import Final

from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import ENTRY_BYTES, max_scratch_bytes
from mummergpu.runtime.frozen import frozen
from mummergpu.sequence.extension import MAXIMUM_KMER_LENGTH
from mummergpu.sequence.picked_kmers import MAX_BASES


@frozen
class KmerCosts:
    """What the steps of building and searching a table cost, in nanoseconds of one thread."""

    position: float  # To list a position of the reference.
    # To visit a position once more, in each further pass of the construction.
    passed_position: float
    offset: float  # To make the offset of one of all possible k-mers.
    load_byte: float  # To load a byte of a table from a file into memory.
    query_base: float  # To read a base of a query.
    # To look up a k-mer of a query, in main memory and in the caches.
    lookup: float
    cached_lookup: float
    # To find that a k-mer occurs by chance, besides comparing the reference there.
    first_candidate: float
    # To compare the reference where a k-mer occurs by chance.
    candidate: float
    cached_candidate: float
    # To do so where a k-mer of a repeat occurs, which has many such places.
    crowded_candidate: float
    # To extend a pair that lies in a match, and for each base of the sampling step besides.
    pair: float
    pair_base: float
    # To sort a match among those of its k-mer, if the sampling step is more than one base.
    sorted_match: float
    # To sort a match among those of its query, if the reference step is more than one base.
    resorted_match: float
    cache_bytes: int  # The bytes of the offsets or of the reference that the caches hold.


PROCESSOR_COSTS: Final = KmerCosts(
    position=13.0,
    passed_position=8.0,
    offset=1.8,
    load_byte=0.1,
    query_base=0.25,
    lookup=18.5,
    cached_lookup=9.5,
    first_candidate=38.0,
    candidate=25.0,
    cached_candidate=4.0,
    crowded_candidate=3.0,
    pair=17.0,
    pair_base=0.4,
    sorted_match=60.0,
    resorted_match=30.0,
    cache_bytes=8 << 20,
)
"""The costs on a processor of about 2023."""

THREADS_BESIDE_DEVICE: Final = 16
"""The threads of a processor whose time counts as much as that of a GPU in `DEVICE_COSTS`."""

DEVICE_COSTS: Final = KmerCosts(
    position=13.0,
    passed_position=8.0,
    offset=2.2,
    load_byte=0.3,
    query_base=0.02,
    lookup=2.0,
    cached_lookup=1.0,
    first_candidate=0.0,
    candidate=1.2,
    cached_candidate=0.25,
    crowded_candidate=0.15,
    pair=1.0,
    pair_base=0.01,
    sorted_match=0.8,
    resorted_match=4.5,
    cache_bytes=32 << 20,
)
"""The costs if a GPU of about 2023 searches: its time counts `THREADS_BESIDE_DEVICE` times, as the
threads that build and upload the table wait for it."""


MAX_REFERENCE_STEP: Final = 64
"""The largest reference step that is considered: a larger one saves hardly any time or memory."""

SMALLER_IF_WITHIN: Final = 1.05
"""The smallest table is chosen among those that cost at most this many times the least."""

BYTES_PER_BASE: Final = 8
MIN_TABLE_BYTES: Final = 64 << 20
MIN_PASSING_BYTES: Final = 512 << 20
LARGE_TABLE_BYTES: Final = 6 * 10**9
BYTES_PER_BASE_OF_LARGE: Final = 1.9
"""The bounds of the size of a table (`max_table_bytes`); one that is in no file may be larger."""

BASES_OF_MANY_READS: Final = 10**10
"""The bases of queries that an index file for reads is made for."""

QUERIES_OF_GENOMES: Final = 2
"""The bases of queries for each base of the reference that an index file for genomes is made for:
another genome, on both strands."""

SLOWDOWN_FOR_MEMORY: Final = 4.0
"""How many times the least possible cost a table may cost because memory is short."""

LONGEST_EXTENSION: Final = 100
"""The bases by which pairs are extended to the left at most, on average."""

SMALL_INDEX_SLOWDOWN: Final = 3.0
"""How much longer searches may take with the smallest index file than with the fastest."""


@frozen
class KmerJob:
    """The work that a table is chosen for."""

    bases: int  # The bases of the reference, or of a part of it, that can match.
    minimum_length: int  # The minimum length of a MEM in bases.
    query_bases: int  # The bases of all queries, on all strands that are searched.
    is_kept: bool = False  # Whether the table is in a file; else it is built for this work alone.
    # The chance that two positions of the reference have the same k-mer, for k from 1 on
    # (`kmer_index.kmer_likeness`); empty to take all k-mers as equally likely.
    likeness: tuple[float, ...] = ()
    max_crowded: float = inf  # The most occurrences of a k-mer of a repeat that are compared.

    @classmethod
    def of_purpose(
        cls, purpose: str | None, bases: int, minimum_length: int, query_bases: int
    ) -> KmerJob:
        """Return the work of one run, or that of an index file with a purpose (`KmerOptions`)."""
        if purpose is None:
            return cls(bases, minimum_length, query_bases)
        expected = BASES_OF_MANY_READS if purpose == "reads" else QUERIES_OF_GENOMES * bases
        return cls(bases, minimum_length, expected, is_kept=True)


@frozen
class KmerCost:
    """The expected cost of a choice, in seconds of one thread."""

    table: float  # To build the table, or to bring it into memory.
    search: float  # To search the queries.

    @property
    def seconds(self) -> float:
        """The sum."""
        return self.table + self.search


def expected_cost(
    job: KmerJob, sampling: KmerSampling, costs: KmerCosts = PROCESSOR_COSTS
) -> KmerCost:
    """Return the expected cost of a job with a table.

    The times are proportional to the counts of the steps, so they hold for several threads if these
    share the steps evenly.
    """
    return _CostsOfLength(job, sampling.kmer_length, costs).of(sampling)


class _CostsOfLength:
    """The expected cost of a job with each table of k-mers of one length."""

    def __init__(self, job: KmerJob, kmer_length: int, costs: KmerCosts) -> None:
        self._job = job
        self._costs = costs
        self.kmer_length = kmer_length
        self._kmers = kmers = float(4**kmer_length)
        self._scratch_bytes = max_scratch_bytes(job.bases)
        cache = costs.cache_bytes
        self._lookup = _memory_cost(4 * kmers, cache, costs.cached_lookup, costs.lookup)
        self._candidate = _memory_cost(job.bases, cache, costs.cached_candidate, costs.candidate)
        # Genomes have k-mers that occur more often than by chance, many of them side by side.
        likeness = job.likeness[kmer_length - 1] if job.likeness else 0.0
        self._crowded = max(0.0, likeness - 1 / kmers)
        # A base of a query begins this number of matches by chance.
        matches = job.bases * 4.0 ** -min(job.minimum_length, LONGEST_EXTENSION)
        self._sorting = matches * costs.sorted_match
        self._resorting = matches * costs.resorted_match

    def of(self, sampling: KmerSampling) -> KmerCost:
        """Return the expected cost of the job with one of these tables."""
        job, costs, kmers = self._job, self._costs, self._kmers
        step = sampling.query_step(job.minimum_length)
        sampling_step = sampling.reference_step * step
        positions = sampling.positions_expected(job.bases)
        if job.is_kept:
            table = 4 * (positions + kmers) * costs.load_byte
        else:
            passes = ceil(ENTRY_BYTES * positions / self._scratch_bytes)
            position = costs.position + (passes - 1) * costs.passed_position
            table = positions * position + kmers * costs.offset
        candidates = positions / kmers
        of_kmer = self._lookup + costs.first_candidate * -expm1(-candidates)
        of_kmer += candidates * self._candidate
        of_kmer += min(positions * self._crowded, job.max_crowded) * costs.crowded_candidate
        # Most bases of most queries lie in a match, and a match has a pair in every sampling step.
        pair = costs.pair + costs.pair_base * min(sampling_step, LONGEST_EXTENSION)
        lookups, pairs = 1 / step, 1 / sampling_step
        if sampling.is_picked:
            # Spans side by side share picked k-mers; each that is looked up in a match is a pair.
            lookups = pairs = min(lookups, positions / job.bases)
        search = costs.query_base + of_kmer * lookups + pair * pairs
        if sampling_step > 1:
            search += self._sorting
        if sampling.reference_step > 1:
            search += self._resorting
        return KmerCost(table * 1e-9, search * job.query_bases * 1e-9)

    def min_seconds(self) -> float:
        """Return a lower bound on the seconds of the job, whatever the reference step is."""
        job, costs, kmers = self._job, self._costs, self._kmers
        table = kmers * (4 * costs.load_byte if job.is_kept else costs.offset)
        # The longest sampling step gives the fewest candidates for each base of a query.
        longest_step = job.minimum_length - self.kmer_length + 1
        search = costs.query_base + job.bases / kmers * self._candidate / longest_step
        return (table + search * job.query_bases) * 1e-9


def choose_sampling(
    job: KmerJob,
    max_bytes: int,
    costs: KmerCosts = PROCESSOR_COSTS,
    slowdown: float = SMALLER_IF_WITHIN,
) -> KmerSampling:
    """Return the k-mers that a table should list: the smallest table that is good enough.

    It costs at most `slowdown` times the least (`slowdown` is at least 1), and takes at most
    `max_bytes`. If every table so small costs more than `SLOWDOWN_FOR_MEMORY` times the cheapest of
    any size, the smallest table within that cost is returned: several pages are then better than
    one with a tiny table.
    """
    lengths = range(1, min(job.minimum_length, MAXIMUM_KMER_LENGTH) + 1)
    models = [_CostsOfLength(job, length, costs) for length in lengths]
    tables: list[tuple[KmerSampling, int, float]] = []
    least = inf
    for model in sorted(models, key=_CostsOfLength.min_seconds):
        # However short memory is, a table that costs more than this is not chosen.
        if model.min_seconds() > slowdown * SLOWDOWN_FOR_MEMORY * least:
            break
        for sampling in _possible_samplings(job.minimum_length, model.kmer_length):
            seconds = model.of(sampling).seconds
            least = min(least, seconds)
            tables.append((sampling, sampling.table_bytes(job.bases), seconds))
    worst = SLOWDOWN_FOR_MEMORY * least
    max_bytes = max(max_bytes, min(size for _, size, seconds in tables if seconds <= worst))
    fitting = [table for table in tables if table[1] <= max_bytes]
    bound = slowdown * min(seconds for _, _, seconds in fitting)
    good = [(size, sampling) for sampling, size, seconds in fitting if seconds <= bound]
    # Of two tables of one size, that of shorter k-mers.
    return min(good, key=lambda table: (table[0], table[1].kmer_length))[1]


def picked_instead(sampling: KmerSampling) -> KmerSampling:
    """Return picked k-mers in place of those at a step, for many reads, or the same.

    K-mers at a step take less memory, but each window of a read needs as many lookups as the step.
    """
    picked = replace(sampling, is_picked=True)
    several = sampling.reference_step > 1
    return picked if several and picked.lookup_bases <= MAX_BASES else sampling


def max_table_bytes(bases: int, is_kept: bool = False) -> int:
    """Return how many bytes a table may take for the sake of speed.

    That is `BYTES_PER_BASE` bytes for each base, but at least `MIN_TABLE_BYTES`, or
    `MIN_PASSING_BYTES` without a file, and at most `LARGE_TABLE_BYTES`, or
    `BYTES_PER_BASE_OF_LARGE` for each base if that is more.
    """
    large = max(LARGE_TABLE_BYTES, int(BYTES_PER_BASE_OF_LARGE * bases))
    least = MIN_TABLE_BYTES if is_kept else MIN_PASSING_BYTES
    return max(least, min(BYTES_PER_BASE * bases, large))


def _memory_cost(size: float, cache_bytes: int, cached: float, uncached: float) -> float:
    """Return the cost of a random access to an array of `size` bytes."""
    in_cache = min(1.0, cache_bytes / max(size, 1.0))
    return in_cache * cached + (1 - in_cache) * uncached


def _possible_samplings(minimum_length: int, kmer_length: int) -> Iterator[KmerSampling]:
    """Yield the tables of k-mers of a length that can find all matches."""
    most = min(minimum_length - kmer_length + 1, MAX_REFERENCE_STEP)
    for reference_step in range(1, most + 1):
        yield KmerSampling(kmer_length, reference_step)
