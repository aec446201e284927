"""Queries as blocks of a few arrays, as the backends search them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from mummergpu.input.records.record_arrays import Records, join_records
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import writable
from mummergpu.runtime.words import say_nothing
from mummergpu.sequence.codes import MARGIN, CodeArray, longest_of


@frozen
class QueryRules:
    """Which query files are accepted, and which function receives warnings.

    Attributes
    ----------
    any_letters : bool
        Accept records whose letters are mostly not DNA or RNA.
    no_empty : bool
        Raise an error if a file has no query.
    warn : callable
        Receives one line for each file without a query, unless `no_empty` is set. The reading
        thread calls it.
    paired : bool
        The queries are pairs of reads: one file in which mates alternate, or first and second mates
        in two files each.
    max_bases : int or None
        The maximum length of a read to map, in bases; None for any length.
    refuses_long : bool
        Raise an error at a longer read; otherwise it stays unmapped, and `warn` receives one line
        about all of these.
    keeps_groups, keeps_comments : bool
        As for `RecordOptions`, for reads to map.
    """

    any_letters: bool = False
    no_empty: bool = False
    warn: Callable[[str], None] = say_nothing
    paired: bool = False
    max_bases: int | None = None
    refuses_long: bool = False
    keeps_groups: bool = False
    keeps_comments: bool = False


@frozen
class QueryBlock:
    """Queries that are read, matched and written together.

    Attributes
    ----------
    index : int
        The number of the block, counted from 0 in the order of the input.
    padded_codes : ndarray, dtype=uint8, shape=(n_bases + 2 * MARGIN,)
        The base codes of all queries, one after the other, on the forward strand. A margin of
        `codes.MARGIN` codes lies at each end: it may be read, but is not part of the block.
    offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        The index in `codes` at which each query begins, and the end of the last.
    names : ndarray, dtype=uint8, shape=(n_name_bytes,)
        The names, one after the other, cut at the first white space.
    name_offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        The index in `names` at which each name begins, and the end of the last.
    file_number : int
        The number of the file that all queries are from, counted from 0 in the order of the input.
    continues : bool
        Whether queries continue beyond their ends, as pieces of long queries do.
    """

    index: int
    padded_codes: CodeArray
    offsets: Int64Array
    names: ByteArray
    name_offsets: Int64Array
    file_number: int = 0
    continues: bool = False

    @classmethod
    def of_records(cls, records: Records, index: int = 0, file_number: int = 0) -> QueryBlock:
        """Return records as a block, in the same arrays."""
        arrays = records.padded_codes, records.offsets, records.names, records.name_offsets
        return QueryBlock(index, *arrays, file_number)

    @property
    def codes(self) -> CodeArray:
        """The base codes without the margins: ndarray, dtype=uint8, shape=(n_bases,), a view."""
        return self.padded_codes[MARGIN : self.padded_codes.size - MARGIN]

    @property
    def query_count(self) -> int:
        """The number of queries."""
        return self.offsets.size - 1

    @property
    def read_count(self) -> int:
        """The number of queries that were read."""
        return self.query_count

    @property
    def base_count(self) -> int:
        """The number of bases, breaks included."""
        return self.padded_codes.size - 2 * MARGIN

    @cached_property
    def longest(self) -> int:
        """The bases of the longest query, 0 if there is none."""
        return longest_of(writable(self.offsets))

    @property
    def reads_of_template(self) -> int:
        """The number of reads per template: 1, or 2 for mates."""
        return 1

    @property
    def can_be_cut(self) -> bool:
        """Whether there are two or more templates; their results can be joined again."""
        return self.query_count > self.reads_of_template

    @property
    def records(self) -> Records:
        """The queries as records, in the same arrays."""
        return Records(self.padded_codes, self.offsets, self.names, self.name_offsets)

    def halves(self) -> tuple[Self, Self]:
        """Return the first and the second half of the queries, as views of their arrays.

        Mates stay together. Only those of a single pair, whose matches may be too many for a
        device, become single reads, which is valid only for a search.
        """
        middle = self.query_count // 2
        if self.query_count > 2:
            middle -= middle % self.reads_of_template
        return self.part(0, middle), self.part(middle, self.query_count)

    def split_at(self, bases: int) -> tuple[Self, Self]:
        """Return the first queries, of about `bases` bases, and the others, as views.

        The query that contains base number `bases` ends the first part. Both parts have at least
        one query; the block must have two or more. Mates stay together as in `halves`.
        """
        step = self.reads_of_template if self.query_count > 2 else 1
        end = int(np.searchsorted(self.offsets, bases))
        end = min(max(end + end % step, step), self.query_count - step)
        return self.part(0, end), self.part(end, self.query_count)

    def part(self, first: int, end: int) -> Self:
        """Return a range of the queries, with the same index, as views of the arrays."""
        return self.with_records(self.records.part(first, end))

    def with_records(self, records: Records, **changes: Any) -> Self:
        """Return records as a block with the same number, and other changes of its fields."""
        return replace(
            self,
            padded_codes=records.padded_codes,
            offsets=records.offsets,
            names=records.names,
            name_offsets=records.name_offsets,
            **changes,
        )


def join_query_blocks(blocks: Sequence[QueryBlock]) -> QueryBlock:
    """Return the queries of one or more consecutive blocks as one block.

    It has the index and the file number of the first. A single block is returned as it is;
    otherwise the arrays are new.
    """
    first = blocks[0]
    if len(blocks) == 1:
        return first
    joined = join_records([block.records for block in blocks])
    return QueryBlock.of_records(joined, first.index, first.file_number)
