"""The minimizers of a reference, which are kept beside its table of k-mers for unique matches."""

from __future__ import annotations

from dataclasses import replace

from mummergpu.index.kmer_index import UNKNOWN_QUERY_BASES, KmerIndex
from mummergpu.index.kmer_plan import KmerCost, KmerJob
from mummergpu.index.kmer_plan import expected_cost as expected_kmer_cost
from mummergpu.index.minimizer_index import MinimizerIndex, expected_cost, kept_seconds
from mummergpu.index.options import IndexOptions, KmerOptions
from mummergpu.input.reference import Reference
from mummergpu.matching.options import SearchOptions, Uniqueness
from mummergpu.pipeline.open_search import KeptIndex
from mummergpu.runtime.memory import MemoryBudget


class KeptMinimizers:
    """Says which searches look up minimizers; one thread calls it at a time.

    One table serves every length of a match from that of the index upwards.
    """

    def __init__(self, reference: Reference, options: IndexOptions) -> None:
        self._reference = reference
        self._options = options
        self._kept: KeptIndex[MinimizerIndex] | None = None

    def index_for(
        self, kmers: KmerIndex, search: SearchOptions, query_bases: int | None
    ) -> KeptIndex[MinimizerIndex] | None:
        """Return the minimizers if a search on the processor looks them up, else None.

        That is if only unique matches are wanted, the index need not be small, and the tables of
        k-mers are not expected to be faster. The table of minimizers is counted unless an earlier
        search has had it built.
        """
        kind, length = self._options.kind, self._options.minimum_length
        is_unique = search.uniqueness is not Uniqueness.ALL and search.minimum_length >= length
        if not is_unique or not isinstance(kind, KmerOptions) or kind.purpose == "memory":
            return None
        strands = len(search.strands)
        searched = strands * UNKNOWN_QUERY_BASES if query_bases is None else query_bases
        bases = self._reference.codes.size
        job = KmerJob(bases, search.minimum_length, searched, is_kept=True)
        # Its tables are in memory.
        by_kmers = KmerCost(0.0, expected_kmer_cost(job, kmers.sampling).search)
        if self._kept is not None:
            window = self._kept.plan.window
            cost = expected_cost(self._reference.base_count, searched // strands, window)
            return self._kept if cost.search <= kept_seconds(by_kmers, bases) else None
        budget = MemoryBudget.of(self._options.memory)
        if budget.is_limit:
            tables = max(kmers.peak_bytes(group, 1) for group in kmers.groups)
            budget = replace(budget, host=max(0, budget.host - tables))
        plan = MinimizerIndex.plan(
            *(self._reference, replace(kind, unique_strands=strands), length, budget, searched),
            by_kmers,
        )
        self._kept = None if plan is None else KeptIndex(plan)
        return self._kept
