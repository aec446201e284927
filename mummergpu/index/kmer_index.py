"""The index of the k-mer search: planning, building, writing and reading it.

A sample estimates how likely two positions of the reference are to have the same k-mer. Genomes
have far more equal k-mers than random sequences: they have repeats, runs of few letters, and biased
base composition. Two positions of human chromosomes have the same 12-mer fifty times as often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from math import inf
from typing import Any, ClassVar, Final

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.index.file import IndexFile, write_table
from mummergpu.index.format import IndexHeader, PageEntry
from mummergpu.index.kmer_order import FILE_ORDERED_BASES, order_long_lists
from mummergpu.index.kmer_plan import (
    DEVICE_COSTS,
    PROCESSOR_COSTS,
    SMALL_INDEX_SLOWDOWN,
    SMALLER_IF_WITHIN,
    KmerCost,
    KmerCosts,
    KmerJob,
    choose_sampling,
    expected_cost,
    max_table_bytes,
    picked_instead,
)
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import MAX_TABLE_BASES, KmerPage, build_kmer_page, max_scratch_bytes
from mummergpu.index.options import KmerOptions
from mummergpu.index.pages import Page, groups_within, plan_pages
from mummergpu.index.reference_index import BuildFacts, BuildWork, StorableIndex
from mummergpu.index.writer import SectionWriter
from mummergpu.input.reference import Reference
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, jit
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.extension import MAXIMUM_KMER_LENGTH, kmer_at

SAMPLE: Final = 1 << 17
"""The positions that are compared. It takes some milliseconds."""


@jit
def sample_kmers(padded_codes: CodeArray, count: int, kmers: Int64Array) -> int:
    """Collect k-mers without breaks at `kmers.size` evenly spread positions; return how many."""
    found = 0
    for number in range(kmers.size):
        kmer = kmer_at(padded_codes, MARGIN + number * count // kmers.size, MAXIMUM_KMER_LENGTH)
        if kmer >= 0:
            kmers[found] = kmer
            found += 1
    return found


@jit
def count_equal_pairs(kmers: Int64Array, shift: int) -> int:
    """Return how many ordered pairs of sorted k-mers are equal but for `shift` lowest bits."""
    pairs, run = as_int64(0), as_int64(0)
    for number in range(1, kmers.size):
        is_equal = kmers[number] >> shift == kmers[number - 1] >> shift
        # Each element makes a pair, in both orders, with those of its run before it.
        run = run + 1 if is_equal else as_int64(0)
        pairs += 2 * run
    return pairs


def kmer_likeness(padded_codes: CodeArray) -> tuple[float, ...]:
    """Return the chance that two positions have the same k-mer, for k up to `MAXIMUM_KMER_LENGTH`.

    The first is that for k = 1. The result is empty if hardly any k-mer is without a break.
    """
    bases = padded_codes.size - 2 * MARGIN
    kmers = np.empty(min(SAMPLE, bases), dtype=np.int64)
    kmers = np.sort(kmers[: sample_kmers(padded_codes, bases, kmers)])
    if kmers.size < 2:
        return ()
    # The last bases of a sampled k-mer are its highest bits.
    shifts = range(2 * (MAXIMUM_KMER_LENGTH - 1), -1, -2)
    pairs = kmers.size * (kmers.size - 1)
    return tuple(count_equal_pairs(kmers, shift) / pairs for shift in shifts)


MIN_PAGE_BASES: Final = 1 << 20
"""Too little memory never makes a page smaller than this."""

MIN_SCRATCH_BYTES: Final = 1 << 24
"""The least memory that building a table may take besides the table itself; `max_scratch_bytes`
is the most."""

LEAST_ORDERED_BASES: Final = 16
"""Long lists are sorted by this number of bases before each position, or by a whole sampling step
if that is more: the bases before the k-mers of a window distinguish copies of a repeat."""

CROWDED_OF_CHOSEN: Final = 2048.0
"""The most occurrences of a frequent k-mer that are compared where seeds are chosen: not many more
than those of an unsorted list."""

UNKNOWN_QUERY_BASES: Final = 10**9
"""The bases of queries that are expected where nothing is known of them."""

BASES_WORTH_A_SAMPLE: Final = 1 << 20
"""Searching this many bases takes longer than estimating how alike a reference's k-mers are."""

POSITIONS_WORTH_A_QUERY_BASE: Final = 16
"""Long lists are not sorted where a table has more positions than this for each base of the
queries: looking for long lists would take longer than a search that skips nothing."""

WORTH_A_WARNING: Final = 3.0
SECONDS_OF_WARNING: Final = 5.0
"""How many times as long, and how many seconds of one thread longer, a search with an index file
must take than with the best one to be worth a warning."""


MIN_BASES_WITH_BESIDE: Final = 1 << 26
"""A file has the bases next to positions if the reference is at least this large. A smaller one is
in the caches of a processor: a look there costs as little, and building a table with these bases
takes a sixth longer."""


class KmerIndex(StorableIndex[KmerPage]):
    """Pages with tables of k-mers (`reference_index.StorableIndex`).

    Pages do not overlap: matches are extended in the whole reference. Building a table takes about
    `scratch_bytes` besides the table.
    """

    search: ClassVar[str] = KmerOptions.search

    only_unique = False
    """Whether only matches matter that are unique in the reference (`KmerPage`)."""

    chooses_seeds = False
    """Whether a search looks at few occurrences of a query's frequent seeds (`KmerOptions`)."""

    is_small = False
    """Whether a file leaves out the optional arrays (``--for memory``)."""

    def __init__(
        self,
        reference: Reference,
        groups: list[list[Page]],
        page_size: int,
        search_length: int,
        sampling: KmerSampling,
        job: KmerJob,
        costs: KmerCosts,
        scratch_bytes: int,
        file: IndexFile | None = None,
    ) -> None:
        super().__init__(reference, groups, page_size, search_length, file)
        self.sampling = sampling
        self._job = job
        self._costs = costs
        self.scratch_bytes = scratch_bytes
        self.query_step = sampling.query_step(search_length)

    @classmethod
    def plan(
        cls,
        reference: Reference,
        options: KmerOptions,
        minimum_length: int,
        budget: MemoryBudget,
        query_bases: int = UNKNOWN_QUERY_BASES,
    ) -> KmerIndex:
        """Divide a reference into the fewest pages that memory allows, and the pages into groups.

        The plan depends on the arguments only; no table is built yet. The queries have about
        `query_bases`, on all strands that are searched.
        """
        bases = reference.codes.size
        # A table lists only positions of bases that can match.
        max_positions = reference.base_count
        page_size = min(options.page_size or bases, MAX_TABLE_BASES)
        room = max(0, budget.host - reference.padded_codes.nbytes)
        max_scratch = max_scratch_bytes(min(page_size, max_positions))
        scratch_bytes = min(max(room // 4, MIN_SCRATCH_BYTES), max_scratch)
        max_bytes = max(0, room - scratch_bytes)
        if budget.device is not None:
            max_bytes = min(max_bytes, budget.device)
        costs = _costs_within(budget)
        job = replace(
            KmerJob.of_purpose(options.purpose, max_positions, minimum_length, query_bases),
            max_crowded=CROWDED_OF_CHOSEN if options.chooses_seeds else inf,
        )
        if options.sampling is None and job.query_bases >= BASES_WORTH_A_SAMPLE:
            job = replace(job, likeness=kmer_likeness(reference.padded_codes))
        page_size, sampling = _choose_tables(options, job, costs, page_size, max_bytes)
        groups = groups_within(
            plan_pages(bases, page_size, 0),
            max_bytes,
            lambda page: _table_bytes(page, max_positions, sampling),
        )
        index = cls(
            reference, groups, page_size, minimum_length, sampling, job, costs, scratch_bytes
        )
        index.is_small = options.purpose == "memory"
        return index

    @classmethod
    def from_file(
        cls,
        file: IndexFile,
        minimum_length: int,
        budget: MemoryBudget,
        query_bases: int = UNKNOWN_QUERY_BASES,
    ) -> KmerIndex:
        """Divide the pages of an index file into groups.

        `OptionError` is raised if its k-mers are longer than the minimum match length.
        """
        header = file.header
        sampling = header.sampling
        if minimum_length < sampling.shortest_match:
            raise OptionError(
                "min_length",
                f"the index '{file.path}' finds no matches of less than {sampling.shortest_match} "
                f"bases; make one with 'mummergpu index -l {minimum_length}'",
            )
        return cls(
            file.reference,
            file.groups_within(budget),
            header.page_size,
            minimum_length,
            sampling,
            KmerJob(header.bases, minimum_length, query_bases, is_kept=True),
            _costs_within(budget),
            0,
            file,
        )

    def load_pages(self, group: Sequence[Page], work: BuildWork) -> list[KmerPage]:
        """Return pages with their tables (`reference_index.ReferenceIndex.load_pages`)."""
        if self.file is not None:
            self.file.bring_in(group)
        return [self._load_for_search(page, work) for page in group]

    def write_pages(self, writer: SectionWriter, work: BuildWork) -> Iterator[PageEntry]:
        """Build the tables one after the other, and write each as soon as it is ready."""
        for page in self.pages:
            built = self._load_page(page, work, is_kept=True)
            with work.stats.stage("table_construction"):
                table = order_long_lists(built, FILE_ORDERED_BASES, work.executor.map).table
            work.page_is_ready()
            with work.stats.stage("results_to_disk"):
                write_table(writer, page, table)
            yield PageEntry(page.begin, page.end, page.owned_end)

    def header(self, build: BuildFacts) -> IndexHeader:
        """Return the header of a file that holds the index."""
        return replace(super().header(build), **asdict(self.sampling))

    def settings(self) -> dict[str, Any]:
        """Return the report's facts about the index."""
        expected = self.expected_cost()
        return asdict(self.sampling) | {
            "query_step": self.query_step,
            "expected_query_bases": self._job.query_bases,
            "expected_table_seconds": expected.table,
            "expected_search_seconds": expected.search,
        }

    def describe(self) -> str:
        """Describe the search in a few words."""
        sampling = self.sampling
        return (
            f"k-mer search of {sampling.kmer_length}-mers {sampling.describe_places()} of the "
            f"reference and every {self.query_step} of a query"
        )

    def expected_cost(self) -> KmerCost:
        """Return the expected cost of the tables and the search."""
        return expected_cost(self._job, self.sampling, self._costs)

    def expected_cost_of_repeats(self) -> KmerCost:
        """Return the same, including the cost of the occurrences of k-mers of repeats."""
        if self._job.query_bases < BASES_WORTH_A_SAMPLE:
            return self.expected_cost()
        job = replace(self._job, likeness=kmer_likeness(self.reference.padded_codes))
        return expected_cost(job, self.sampling, self._costs)

    def slow_search_warning(self) -> str | None:
        """Return a warning if an index file for this minimum length would be much faster."""
        if self.file is None:
            return None
        job = self._job
        best = choose_sampling(job, max_table_bytes(job.bases, is_kept=True), self._costs)
        expected, possible = self.expected_cost(), expected_cost(job, best, self._costs)
        slowdown = expected.seconds / possible.seconds
        if slowdown < WORTH_A_WARNING or expected.seconds - possible.seconds < SECONDS_OF_WARNING:
            return None
        return (
            f"the index '{self.file.path}' is made for -l {self.file.header.minimum_length}: about "
            f"{slowdown:.0f} times as slow here as one made with 'mummergpu index -l "
            f"{job.minimum_length}'"
        )

    def peak_bytes(self, group: Sequence[Page], threads: int) -> int:
        """Return the most bytes that a group's tables and their construction take."""
        if self.file is not None:
            return sum(self.file.page_bytes(page.index) for page in group)
        positions = self.reference.base_count
        tables = sum(_table_bytes(page, positions, self.sampling) for page in group)
        return tables + self.scratch_bytes

    def _load_for_search(self, page: Page, work: BuildWork) -> KmerPage:
        loaded = replace(self._load_page(page, work), only_unique=self.only_unique)
        if self._job.query_bases * POSITIONS_WORTH_A_QUERY_BASE >= loaded.table.positions.size:
            with work.stats.stage("table_construction"):
                least = FILE_ORDERED_BASES if self.chooses_seeds else LEAST_ORDERED_BASES
                bases = max(loaded.sampling_step(self.search_length), least)
                loaded = order_long_lists(loaded, bases, work.executor.map)
        work.page_is_ready()
        return loaded

    @property
    def _is_large(self) -> bool:
        return self.reference.codes.size >= MIN_BASES_WITH_BESIDE

    def _load_page(self, page: Page, work: BuildWork, is_kept: bool = False) -> KmerPage:
        if self.file is None:
            # The bases next to positions take scratch memory, and are left out if there is little.
            scratch_bytes = self.scratch_bytes
            bases = page.owned_end - page.begin
            beside_bytes = self.sampling.positions_expected(bases)
            keeps_more = is_kept and not self.is_small and self._is_large
            with_bases_beside = keeps_more and 2 * scratch_bytes >= 3 * beside_bytes
            scratch_bytes -= beside_bytes if with_bases_beside else 0
            # A bit for each base marks where picked k-mers begin.
            scratch_bytes -= bases // 8 if self.sampling.is_picked else 0
            loaded = build_kmer_page(
                self.reference,
                page,
                self.sampling,
                max(scratch_bytes, 0),
                work.stats,
                work.executor.map,
                work.share_of_next,
                with_bases_beside,
            )
        else:
            loaded = KmerPage(
                page, self.file.table(page), self.reference.padded_codes, self.file.path
            )
        work.stats.add_bytes(tables=loaded.table.byte_count)
        return loaded


def _costs_within(budget: MemoryBudget) -> KmerCosts:
    """Return the costs of the steps where the tables are searched: on a device if there is one."""
    return PROCESSOR_COSTS if budget.device is None else DEVICE_COSTS


def _choose_tables(
    options: KmerOptions, job: KmerJob, costs: KmerCosts, page_size: int, max_bytes: int
) -> tuple[int, KmerSampling]:
    """Return the bases of a page, and the k-mers that its table lists.

    Unless the user asks for a page size, pages are halved until a table fits the memory.
    """
    slowdown = SMALL_INDEX_SLOWDOWN if options.purpose == "memory" else SMALLER_IF_WITHIN
    while True:
        positions = min(page_size, job.bases)
        sampling = options.sampling or choose_sampling(
            replace(job, bases=positions),
            min(max_bytes, max_table_bytes(positions, job.is_kept)),
            costs,
            slowdown,
        )
        fits = sampling.table_bytes(positions) <= max_bytes
        if fits or options.page_size is not None or page_size <= MIN_PAGE_BASES:
            if options.purpose == "reads" and options.sampling is None:
                picked = picked_instead(sampling)
                sampling = picked if picked.table_bytes(positions) <= max_bytes else sampling
            return page_size, sampling
        page_size = -(-page_size // 2)


def _table_bytes(page: Page, max_positions: int, sampling: KmerSampling) -> int:
    """Return the most bytes that the table of a page takes."""
    return sampling.table_bytes(min(page.end - page.begin, max_positions))
