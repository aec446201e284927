"""Counts the bases that the matches of a run cover, their lengths, and the queries with a match.

The counts are for the report of ``--stats``. A bit for each base of the reference marks whether a
match covers it, so the memory does not grow with the matches.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.runtime.arrays import UInt64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import jit, writable
from mummergpu.runtime.stats import MATCH_PARTS, Stats
from mummergpu.sequence.mems import ColumnArray, MemColumns, match_count
from mummergpu.sequence.strand import Strand


@frozen
class LengthCount:
    """How many matches have a length within a range."""

    # The shortest and the longest length in bases; the same for a range of one length.
    first: int
    last: int
    matches: int  # The number of matches.


@frozen
class FileCounts:
    """The counts of one file of queries."""

    path: str  # The file as the user named it.
    # The number of its queries, and of their bases.
    queries: int
    query_bases: int
    queries_with_match: int  # The number of its queries that have a match on any strand.
    matches: int  # The number of matches of its queries.


@frozen
class StrandCounts:
    """The counts of one strand of the queries."""

    strand: str  # ``forward`` or ``reverse``.
    queries_with_match: int  # The number of queries that have a match on this strand.
    matches: int  # The number of matches on this strand.


@frozen
class MatchCounts:
    """The counts of the matches of a run."""

    bases_covered: int  # The number of bases of the reference that lie in a match, on any strand.
    # The lengths of the matches, in ascending order, without empty ranges.
    lengths: tuple[LengthCount, ...]
    files: tuple[FileCounts, ...]  # The counts of each file of queries, in the order of the input.
    strands: tuple[StrandCounts, ...]  # The counts of each strand that was searched.

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


BitArray = UInt64Array

EXACT_BITS: Final = 10
"""Lengths of fewer bits are counted one by one."""

BIN_BITS: Final = 5
"""Longer ones are counted in 2**5 ranges from one power of two to the next."""

LENGTH_BINS: Final = (1 << EXACT_BITS) + (63 - EXACT_BITS << BIN_BITS)
"""The number of ranges of lengths."""


class MatchSummary:
    """Collects counts of the matches of blocks; any thread may call `add`.

    `reference_size` is the number of codes of the joined reference.
    """

    def __init__(
        self, reference_size: int, paths: Sequence[str], strands: Sequence[Strand], stats: Stats
    ) -> None:
        self._paths = tuple(paths)
        self._stats = stats
        self._lock = threading.Lock()
        self._reference_size = reference_size
        self._covered: BitArray = np.zeros(-(-reference_size // 64), dtype=np.uint64)
        self._bases_covered = 0
        self._lengths = np.zeros(LENGTH_BINS, dtype=np.int64)
        # In each row: queries, their bases, queries with a match, matches.
        self._files = np.zeros((len(self._paths), 4), dtype=np.int64)
        self._strands = {strand: np.zeros(2, dtype=np.int64) for strand in strands}

    def add(self, block: QueryBlock, mems: Mapping[Strand, MemColumns]) -> None:
        """Count the matches of a block on all strands that were searched, once."""
        with self._stats.stage("summary"):
            has_match = np.zeros(block.query_count, dtype=np.bool_)
            of_strands = {}
            for strand, columns in mems.items():
                has_some = np.diff(columns.offsets) > 0
                has_match |= has_some
                of_strands[strand] = np.array([np.count_nonzero(has_some), columns.count])
            matches = match_count(mems)
            of_file = block.query_count, block.base_count, np.count_nonzero(has_match), matches
            with self._lock:
                self._files[block.file_number] += np.array(of_file)
                for strand, columns in mems.items():
                    self._strands[strand] += of_strands[strand]
                    self._bases_covered += count_matches(
                        writable(columns.reference_starts),
                        writable(columns.lengths),
                        self._reference_size,
                        self._covered,
                        self._lengths,
                    )

    def report(self) -> None:
        """Put the counts of all blocks into the statistics, once."""
        filled = np.flatnonzero(self._lengths).tolist()
        files = zip(self._paths, self._files.tolist(), strict=True)
        strands = self._strands.items()
        self._stats.set_match_counts(
            MatchCounts(
                self._bases_covered,
                tuple(LengthCount(*bin_range(n), int(self._lengths[n])) for n in filled),
                tuple(FileCounts(path, *row) for path, row in files),
                tuple(StrandCounts(strand.name.lower(), *row.tolist()) for strand, row in strands),
            )
        )


def summary_bytes(reference_size: int) -> int:
    """Return about how many bytes a `MatchSummary` takes."""
    return reference_size // 8


def bin_range(number: int) -> tuple[int, int]:
    """Return the shortest and the longest length that `count_matches` counts in a range."""
    beyond = number - (1 << EXACT_BITS)
    if beyond < 0:
        return number, number
    octave, place = divmod(beyond, 1 << BIN_BITS)
    shift = EXACT_BITS - BIN_BITS + octave
    first = (1 << BIN_BITS) + place << shift
    return first, first + (1 << shift) - 1


@jit
def count_matches(
    reference_starts: ColumnArray,
    lengths: ColumnArray,
    reference_size: int,
    covered: BitArray,
    length_counts: ColumnArray,
) -> int:
    """Mark the bases that matches cover, count their lengths, and return how many bases are new.

    The lowest bit of a word of `covered` is its first base. Matches outside the reference, which
    only a damaged index can give, mark nothing.
    """
    all_bits = ~np.uint64(0)
    fresh_count = np.int64(0)
    for row in range(lengths.size):
        length = lengths[row]
        begin = reference_starts[row]
        end = begin + length
        if length <= 0 or begin < 0 or end > reference_size:
            continue
        octave = 0
        while length >> octave >= 1 << EXACT_BITS:
            octave += 1
        if octave == 0:
            length_counts[length] += 1
        else:
            place = (length >> (EXACT_BITS - BIN_BITS + octave - 1)) - (1 << BIN_BITS)
            length_counts[(1 << EXACT_BITS) + ((octave - 1) << BIN_BITS) + place] += 1
        first_word = begin >> 6
        last_word = (end - 1) >> 6
        for word in range(first_word, last_word + 1):
            mask = all_bits
            if word == first_word:
                mask &= all_bits << np.uint64(begin & 63)
            if word == last_word:
                mask &= all_bits >> np.uint64(63 - ((end - 1) & 63))
            fresh = mask & ~covered[word]
            if fresh != np.uint64(0):
                covered[word] |= fresh
                # Add the bits of neighbouring pairs, of neighbouring sums, and so on.
                bits = fresh - ((fresh >> np.uint64(1)) & np.uint64(0x5555555555555555))
                bits = (bits & np.uint64(0x3333333333333333)) + (
                    (bits >> np.uint64(2)) & np.uint64(0x3333333333333333)
                )
                bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
                fresh_count += np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))
    return fresh_count  # type: ignore[return-value]
