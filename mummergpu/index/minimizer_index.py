"""The index of minimizers, for one run that wants only matches that are unique in the reference.

Whether a match is unique shows where its first minimizer is looked up, as every other match of the
same bases has that minimizer too (`matching.kmer.unique`). So the search looks up two k-mers in
``window + 1``, and both strands at once, where a search for all matches looks up every few k-mers
of each strand. The whole reference must be one page. Index files hold tables of k-mers, which also
serve searches for all matches; minimizers are listed as well where that is expected to pay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from mummergpu.index.kmer_index import kmer_likeness
from mummergpu.index.kmer_plan import KmerCost, KmerJob, choose_sampling, max_table_bytes
from mummergpu.index.kmer_plan import expected_cost as expected_kmer_cost
from mummergpu.index.minimizer_table import (
    MAX_BASES,
    TABLE_BYTES_OF_MINIMIZER,
    MinimizerTable,
    build_minimizer_table,
    count_minimizers,
    max_build_bytes,
)
from mummergpu.index.options import KmerOptions
from mummergpu.index.pages import Page
from mummergpu.index.reference_index import NEGLIGIBLE_BYTES, BuildWork, ReferenceIndex
from mummergpu.input.reference import Reference
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.sequence.codes import CodeArray
from mummergpu.sequence.contexts import CONTEXT_BASES
from mummergpu.sequence.minimizers import MAXIMUM_WINDOW, minimizers_expected

KMER_LENGTHS: Final = (9, 11, 13, 15)
"""The lengths of k-mers to choose from."""

BASES_PER_KMER: Final = 2
"""The most bases of a reference for each k-mer of a length, unless it is the longest."""

GOOD_WINDOW: Final = CONTEXT_BASES
"""Longer k-mers than needed are chosen while windows have at least this many k-mers: in windows
with more, contexts do not show whether a match begins before the window."""

MIN_WINDOW: Final = 6
"""With shorter windows, a table of k-mers at every few positions takes less time and memory."""


@frozen
class MinimizerCosts:
    """What the steps of building and searching a table cost, in nanoseconds of one thread."""

    # To rank the k-mer at a base of the reference or of a query, and to see if it is a minimizer.
    base: float
    listed: float  # To list a minimizer of the reference.
    # To look up a minimizer of a query on both strands, in main memory and in the caches.
    lookup: float
    cached_lookup: float
    cache_bytes: int  # The bytes of a table that the caches hold.


COSTS: Final = MinimizerCosts(
    base=2.5, listed=20.0, lookup=100.0, cached_lookup=45.0, cache_bytes=8 << 20
)
"""The costs on a processor of about 2024."""


FEW_QUERY_BASES: Final = 1 << 18
FEW_REFERENCE_BASES: Final = 1 << 22
"""If both the queries and the reference have fewer bases, the likeness of the reference's k-mers is
not measured: that takes some milliseconds, and a table of more bases ten times as long."""

SLOWDOWN_BEYOND_CACHES: Final = 1.6
"""How many times as long as its costs predict a search of a table of k-mers takes for unique
matches, relative to minimizers, if the caches do not hold the reference: it finds all matches, and
those that are not unique are dropped. Measured: 1.2 for 20 Mbp of human, 1.7 for 100 Mbp; 1 for
reads of a bacterial genome."""


@frozen
class MinimizerPage:
    """A whole reference and the table of its minimizers: the input of a unique search."""

    page: Page
    table: MinimizerTable
    padded_reference: CodeArray


class MinimizerIndex(ReferenceIndex[MinimizerPage]):
    """One page with a table of minimizers (`reference_index.ReferenceIndex`).

    The table and its construction take at most `build_bytes`.
    """

    search: ClassVar[str] = KmerOptions.search

    def __init__(
        self,
        reference: Reference,
        search_length: int,
        kmer_length: int,
        window: int,
        build_bytes: int,
        job: KmerJob,
        expected: KmerCost,
    ) -> None:
        bases = reference.codes.size
        super().__init__(reference, [[Page(0, 0, bases, bases)]], bases, search_length)
        self.kmer_length = kmer_length
        self.window = window
        self._build_bytes = build_bytes
        self._job = job
        self._expected = expected

    @classmethod
    def plan(
        cls,
        reference: Reference,
        options: KmerOptions,
        minimum_length: int,
        budget: MemoryBudget,
        query_bases: int,
        kept: KmerCost | None = None,
    ) -> MinimizerIndex | None:
        """Choose the minimizers of a reference, or return None where k-mers are better.

        That is if the options ask for something else, if a table of k-mers is expected to cost
        less, or if the reference does not fit the memory as a whole. `kept` is the expected cost of
        existing tables of k-mers; without it they would have to be built.
        """
        bases = reference.codes.size
        if budget.device is not None:
            return None
        # The bases that can match are counted only where needed: they may be in a file.
        if kept is not None and kept_seconds(kept, bases) < bases * COSTS.base * 1e-9:
            return None
        chosen = choose_minimizers(bases, reference.base_count, minimum_length, options)
        if chosen is None:
            return None
        kmer_length, window = chosen
        build_bytes = _build_bytes_within(budget, reference, kmer_length, window)
        if build_bytes is None:
            return None
        job = KmerJob(reference.base_count, minimum_length, query_bases)
        cost = expected_cost(reference.base_count, query_bases // options.unique_strands, window)
        if kept is not None:
            worth = kept_seconds(kept, bases)
        else:
            worth = kmer_seconds(job)
            is_few = query_bases < FEW_QUERY_BASES and bases < FEW_REFERENCE_BASES
            if worth < cost.seconds and not is_few:
                # The occurrences of k-mers of repeats make a search of tables of k-mers dearer.
                job = replace(job, likeness=kmer_likeness(reference.padded_codes))
                worth = kmer_seconds(job)
        if cost.seconds > worth:
            return None
        return cls(reference, minimum_length, kmer_length, window, build_bytes, job, cost)

    def load_pages(self, group: Sequence[Page], work: BuildWork) -> list[MinimizerPage]:
        """Return the page with its table (`reference_index.ReferenceIndex.load_pages`)."""
        (page,) = group
        padded = self.reference.padded_codes
        with work.stats.stage("table_construction"):
            table = build_minimizer_table(
                padded, self.kmer_length, self.window, work.executor.map, work.share_of_next
            )
        work.stats.add_bytes(tables=table.byte_count)
        work.page_is_ready()
        return [MinimizerPage(page, table, padded)]

    def settings(self) -> dict[str, Any]:
        """Return the report's facts about the index."""
        return {
            "kmer_length": self.kmer_length,
            "minimizer_window": self.window,
            "expected_query_bases": self._job.query_bases,
            "expected_table_seconds": self._expected.table,
            "expected_search_seconds": self._expected.search,
        }

    def describe(self) -> str:
        """Describe the search in a few words."""
        return (
            f"search of the minimizers among {self.window} {self.kmer_length}-mers, for matches "
            "that are unique in the reference"
        )

    def peak_bytes(self, group: Sequence[Page], threads: int) -> int:
        """Return the most bytes that the table and its construction take."""
        return self._build_bytes


def _build_bytes_within(
    budget: MemoryBudget, reference: Reference, kmer_length: int, window: int
) -> int | None:
    """Return the most bytes that a table and its construction take; None if that is too much."""
    bases = reference.codes.size
    room = budget.host - reference.padded_codes.nbytes

    def bytes_of(minimizers: int) -> int:
        return max_build_bytes(bases, window, minimizers)

    needed = bytes_of(minimizers_expected(bases, window))
    if budget.is_limit:
        room += NEGLIGIBLE_BYTES
        most = bytes_of(bases)
        if most <= room:
            return most
        if needed <= room:
            # How many minimizers a reference with many repeats has is known only by finding them.
            needed = bytes_of(count_minimizers(reference.padded_codes, kmer_length, window))
    return needed if needed <= room else None


def choose_minimizers(
    joined_bases: int, bases: int, minimum_length: int, options: KmerOptions
) -> tuple[int, int] | None:
    """Return the bases of a k-mer and the k-mers of a window, or None.

    `joined_bases` includes the breaks between records, `bases` counts only what can match. None is
    returned if the options ask for something else, if the reference is too large, or if windows
    would be too short.
    """
    asks_for_pages = options.page_size is not None and options.page_size < joined_bases
    if asks_for_pages or options.sampling is not None or joined_bases > MAX_BASES:
        return None
    kmer_length = _kmer_length_for(bases, minimum_length)
    if kmer_length is None:
        return None
    return kmer_length, min(minimum_length - kmer_length + 1, MAXIMUM_WINDOW)


def expected_cost(bases: int, query_bases: int, window: int) -> KmerCost:
    """Return the expected cost of a table of minimizers and a search of one strand."""
    costs = COSTS
    listed = minimizers_expected(bases, window)
    in_cache = min(1.0, costs.cache_bytes / (TABLE_BYTES_OF_MINIMIZER * listed))
    lookup = in_cache * costs.cached_lookup + (1 - in_cache) * costs.lookup
    table = bases * costs.base + listed * costs.listed
    search = query_bases * costs.base + minimizers_expected(query_bases, window) * lookup
    return KmerCost(table * 1e-9, search * 1e-9)


def kept_seconds(kept: KmerCost, bases: int) -> float:
    """Return how long unique matches are expected to take with existing tables of k-mers."""
    in_cache = min(1.0, COSTS.cache_bytes / bases)
    return kept.table + kept.search * (in_cache + (1 - in_cache) * SLOWDOWN_BEYOND_CACHES)


def kmer_seconds(job: KmerJob) -> float:
    """Return the expected seconds of the cheapest table of k-mers and its search."""
    sampling = choose_sampling(job, max_table_bytes(job.bases))
    return expected_kmer_cost(job, sampling).seconds


def _kmer_length_for(bases: int, minimum_length: int) -> int | None:
    """Return the length of k-mers for a reference; None if windows would be too short.

    Longer k-mers have fewer entries that occur by chance, and more minimizers.
    """
    found = None
    for length in KMER_LENGTHS:
        window = minimum_length - length + 1
        is_enough = found is not None and BASES_PER_KMER * 4**found >= bases
        if window < MIN_WINDOW or (is_enough and window < GOOD_WINDOW):
            break
        found = length
    is_longest = found == KMER_LENGTHS[-1]
    if found is None or not (is_longest or BASES_PER_KMER * 4**found >= bases):
        return None
    return found
