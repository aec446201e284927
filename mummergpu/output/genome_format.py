"""What every format of genome alignments is: a head, the alignments of query after query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mummergpu.input.queries import QueryBlock
from mummergpu.mapping.genomes.columns import GenomeAlignments


@dataclass(frozen=True)
class AlignedQueries:
    """Queries and their alignments, without the bases.

    Attributes
    ----------
    names : list of bytes
        The names of the queries, cut at the first white space.
    lengths : ndarray, dtype=int64, shape=(n_queries,)
        Their lengths in bases.
    alignments : GenomeAlignments
        Their alignments.
    """

    names: list[bytes]
    lengths: npt.NDArray[np.int64]
    alignments: GenomeAlignments

    @classmethod
    def of_block(cls, block: QueryBlock, alignments: GenomeAlignments) -> AlignedQueries:
        """Return the queries of a block with their alignments."""
        text, offsets = block.names.tobytes(), block.name_offsets.tolist()
        names = [text[offsets[n] : offsets[n + 1]] for n in range(block.query_count)]
        return cls(names, np.diff(block.offsets), alignments)

    def forward_ends(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return where each alignment begins and ends on the forward strand of its query."""
        columns = self.alignments
        lengths = self.lengths[columns.queries]
        is_reverse = columns.strands != 0
        begins = np.where(is_reverse, lengths - columns.query_ends, columns.query_starts)
        ends = np.where(is_reverse, lengths - columns.query_starts, columns.query_ends)
        return begins, ends


class GenomeFormat(ABC):
    """A format of genome alignments."""

    def head(self) -> bytes:
        """Return what comes before the first alignment."""
        return b""

    @abstractmethod
    def format_queries(self, queries: AlignedQueries) -> Iterator[bytes]:
        """Yield the bytes of the alignments of some queries, in pieces.

        Parameters
        ----------
        queries : AlignedQueries
            The queries; those of earlier calls come before them in the input.

        Yields
        ------
        bytes
            A piece.
        """
