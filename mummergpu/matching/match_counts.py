"""What a run counts about its matches, for the report of ``--stats``."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.stats import MATCH_PARTS


@frozen
class LengthCount:
    """How many matches have a length within a range.

    Attributes
    ----------
    first, last : int
        The shortest and the longest length in bases; the same for a range of one length.
    matches : int
        The number of matches.
    """

    first: int
    last: int
    matches: int


@frozen
class FileCounts:
    """The counts of one file of queries.

    Attributes
    ----------
    path : str
        The file as the user named it.
    queries, query_bases : int
        The number of its queries, and of their bases.
    queries_with_match : int
        The number of its queries that have a match on any strand.
    matches : int
        The number of matches of its queries.
    """

    path: str
    queries: int
    query_bases: int
    queries_with_match: int
    matches: int


@frozen
class StrandCounts:
    """The counts of one strand of the queries.

    Attributes
    ----------
    strand : str
        ``forward`` or ``reverse``.
    queries_with_match : int
        The number of queries that have a match on this strand.
    matches : int
        The number of matches on this strand.
    """

    strand: str
    queries_with_match: int
    matches: int


@frozen
class MatchCounts:
    """What is counted about the matches of a run.

    Attributes
    ----------
    bases_covered : int
        The number of bases of the reference that lie in a match, on any strand.
    lengths : tuple of LengthCount
        The lengths of the matches, in ascending order, without empty ranges.
    files : tuple of FileCounts
        The counts of each file of queries, in the order of the input.
    strands : tuple of StrandCounts
        The counts of each strand that was searched.
    """

    bases_covered: int
    lengths: tuple[LengthCount, ...]
    files: tuple[FileCounts, ...]
    strands: tuple[StrandCounts, ...]

    @property
    def queries_with_match(self) -> int:
        """The number of queries that have a match on any strand."""
        return sum(file.queries_with_match for file in self.files)

    def as_dict(self) -> dict[str, Any]:
        """Return the parts of the report of a run (`mummergpu.runtime.stats.MATCH_PARTS`)."""
        parts = self.files, self.strands, self.lengths
        return {
            name: [dict(vars(row)) for row in part]
            for name, part in zip(MATCH_PARTS, parts, strict=True)
        }


def visit_counts(visits: Int64Array) -> Counter[str]:
    """Return how many occurrences all queries have visited, and a histogram by powers of two."""
    # The exponent of a number is the bits that it has.
    reads = np.bincount(np.frexp(visits)[1])
    found = Counter(
        {f"reads_visiting_{1 << bits >> 1}": int(reads[bits]) for bits in np.flatnonzero(reads)}
    )
    found["occurrences_visited"] = int(visits.sum())
    return found
