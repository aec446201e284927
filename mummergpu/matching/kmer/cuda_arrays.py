"""What a k-mer search on a GPU keeps on the device: tables, and blocks of queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mummergpu.cuda.device import Argument, Program
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.runtime.frozen import frozen


@frozen
class ResidentTable:
    """The k-mer table of a part of the reference, on the device.

    Attributes
    ----------
    offsets, positions : int
        The addresses of its arrays.
    part_begin : int
        Where the part begins in the reference.
    longest_ascending, ordered_bases : int
        Longer lists are sorted by this many bases before each position (`KmerTable`).
    """

    offsets: int
    positions: int
    part_begin: int
    sampling: KmerSampling
    longest_ascending: int
    ordered_bases: int


@frozen
class KmerSearchContext:
    """The data that all searches of a run share.

    Attributes
    ----------
    minimum_length, step, period : int
        The fewest bases of a MEM, and the distances from one sample to the next and from one pair
        of a MEM to the next (`kmer_sampling`), all in bases.
    window : int
        The bases of the window that a MEM has whole (`KmerPage.sample_step`); 0 for all MEMs.
    leads : int
        The places of a window, its last k-mers, of which one is listed.
    reference : int
        The address of the joined reference, as bit planes.
    max_matches : int or None
        Where a query has more matches, with a window if there is one, its seeds are chosen
        (`seed_rule`).
    only_unique : bool
        Whether matches may be left out that are not unique in the reference (`KmerPage`).
    """

    program: Program
    minimum_length: int
    step: int
    period: int
    window: int
    leads: int
    reference: int
    tables: Sequence[ResidentTable]
    max_matches: int | None
    only_unique: bool = False

    @property
    def is_for_mapping(self) -> bool:
        """Whether the matches are a mapper's, in any order (`KmerPage.is_for_mapping`)."""
        return self.window > 0 or self.max_matches is not None

    def arguments(self, table: ResidentTable) -> tuple[Argument, ...]:
        """Return the kernel arguments for a table and the reference."""
        return (
            *(table.offsets, table.positions, table.part_begin, self.reference),
            np.uint32(table.sampling.kmer_length),
            np.uint32(table.longest_ascending),
            np.uint32(table.ordered_bases),
            np.uint32(table.sampling.picked_of),
        )


@frozen
class QuerySamples:
    """The samples of the windows of each query of a block, on the device.

    Attributes
    ----------
    placed : int
        The address of the samples (``PlacedSample`` of the kernels).
    firsts : int
        The address of the array that says how many samples all queries before each one have.
    """

    count: int
    placed: int
    firsts: int


@frozen
class PackedQueries:
    """A block of queries on the device, packed as bit planes.

    Attributes
    ----------
    count, base_count : int
        The number of queries, and the number of their bases together.
    offsets : int
        The address of the array that says where each query begins.
    bit_planes : int
        The address of their bases, as bit planes.
    queries_of_words : int
        The address of the array that names, for each word, the query of its first base.
    samples : QuerySamples or None
        The samples of each query; None if their steps are those of the block, or each table has its
        own.
    continues : bool
        Whether queries go on after their ends (`QueryBlock`).
    """

    count: int
    base_count: int
    offsets: int
    bit_planes: int
    queries_of_words: int
    samples: QuerySamples | None
    continues: bool = False
