"""Matches as columns in the memory of a GPU, for libraries that compute there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mummergpu.api.matches import Matches
from mummergpu.api.query_blocks import no_queries
from mummergpu.api.tables import FoundInReference, SearchedReference, joined, names_of_queries
from mummergpu.input.blocks.queries import QueryBlock, join_query_blocks
from mummergpu.output.matches.match_table import MatchTable
from mummergpu.runtime.words import pluralize
from mummergpu.sequence.codes import Strand

if TYPE_CHECKING:
    from mummergpu.matching.device_columns import DeviceColumns


class DeviceMatches(FoundInReference):
    """The matches of some queries, on a GPU: query by query, forward strand before reverse.

    The columns are those of `Matches`, of the same types, but each is a `DeviceArray`, which other
    libraries use without a copy. Names and lengths of sequences are on the host.

    Attributes
    ----------
    query, reference : DeviceArray, dtype=uint32, shape=(n_matches,)
        The numbers of the query in `query_names`, and of the record in `reference_names`.
    query_start, reference_start : DeviceArray, dtype=int64, shape=(n_matches,)
        0-based, on the forward strand of the query and in the record.
    length : DeviceArray, dtype=int64, shape=(n_matches,)
        In bases.
    reverse : DeviceArray, dtype=bool, shape=(n_matches,)
        Whether the reverse complement of the query matches.
    offsets : DeviceArray, dtype=int64, shape=(n_queries + 1,)
        Where the matches of each query begin, and where the last ones end.
    """

    def __init__(
        self,
        blocks: Sequence[QueryBlock],
        columns: DeviceColumns,
        searched: SearchedReference,
        strands: tuple[Strand, ...],
    ) -> None:
        self._blocks = list(blocks)
        self._searched = searched
        self._strands = strands
        self.query = columns.query
        self.reference = columns.reference
        self.query_start = columns.query_start
        self.reference_start = columns.reference_start
        self.length = columns.length
        self.reverse = columns.reverse
        self.offsets = columns.offsets

    @cached_property
    def query_names(self) -> list[str]:
        """The names of the queries, also of those without a match."""
        return [name for block in self._blocks for name in names_of_queries(block)]

    @property
    def query_lengths(self) -> npt.NDArray[np.int64]:
        """The bases of each query, on the host: ndarray, dtype=int64, shape=(n_queries,)."""
        return joined([np.diff(block.offsets) for block in self._blocks], np.int64)

    def to_host(self) -> Matches:
        """Return the matches on the host.

        Returns
        -------
        Matches
            The result of `Index.match` for the same queries, with the changes that you have made
            to the columns.

        Raises
        ------
        BackendError
            If the device fails.
        """
        block = join_query_blocks(self._blocks) if self._blocks else no_queries()
        table = MatchTable(
            self.query.to_host(),
            self.reference.to_host(),
            self.query_start.to_host(),
            self.reference_start.to_host(),
            self.length.to_host(),
            self.reverse.to_host(),
        )
        return Matches(block, table, self._searched, self._strands)

    def __len__(self) -> int:
        return self.length.size

    def __repr__(self) -> str:
        queries = pluralize(self.offsets.size - 1, "query", "queries")
        return f"<mummergpu.DeviceMatches: {pluralize(len(self), 'match', 'matches')} of {queries}>"
