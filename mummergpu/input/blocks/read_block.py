"""Reads that are mapped together: queries with base qualities, in pairs or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.records.qualities import NO_QUALITY
from mummergpu.input.records.record_arrays import NO_SPANS, Records, Spans
from mummergpu.input.records.tags import number_groups, without_groups
from mummergpu.runtime.arrays import BoolArray, ByteArray, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import writable
from mummergpu.sequence.codes import BREAK, MARGIN, padded_reverse_complements, with_margins


@frozen
class ReadBlock(QueryBlock):
    """Reads with their qualities; they are searched as any `QueryBlock`.

    Names have no ``/1`` or ``/2`` at their ends.

    Attributes
    ----------
    base_qualities : ndarray, dtype=uint8, shape=(n_bases,)
        The qualities on Phred's scale, 0 to 93, at the indices of `codes`; `qualities.NO_QUALITY`
        for all bases of a read without qualities.
    paired : bool
        Whether reads 2i and 2i + 1 are mates, the first and the second of a template. A single
        read among them has a second mate that is `missing`.
    written : Records or None
        The reads as written, if they differ from the searched ones (`searchable`).
    tags : Spans
        The tags of the input records, other than those that a mapper writes.
    has_groups : bool
        Whether the tags have the read groups; otherwise, the reads belong to the group of the run.
    """

    base_qualities: ByteArray = field(kw_only=True)
    paired: bool = field(default=False, kw_only=True)
    written: Records | None = field(default=None, kw_only=True)
    tags: Spans = field(default=NO_SPANS, kw_only=True)
    has_groups: bool = field(default=False, kw_only=True)

    @classmethod
    def of_reads(cls, records: Records, paired: bool) -> ReadBlock:
        """Return records with qualities as a block with index 0, in the same arrays."""
        return cls(
            0,
            records.padded_codes,
            records.offsets,
            records.names,
            records.name_offsets,
            base_qualities=records.qualities,
            paired=paired,
            tags=records.tags,
        )

    @property
    def records(self) -> Records:
        """The reads as records, in the same arrays."""
        return super().records._replace(qualities=self.base_qualities, tags=self.tags)

    @property
    def as_written(self) -> Records:
        """The reads as written to the output."""
        return self.written or self.records

    @property
    def has_letters(self) -> bool:
        """Whether letters that stand for several bases are written; searched reads have none."""
        return self.written is not None and self.written.has_letters

    def searchable(self, max_bases: int | None) -> ReadBlock:
        """Return the block with searchable reads, and the original ones in `written`.

        Reads of more than `max_bases` are searched as reads without bases, and letters that stand
        for several bases as breaks. The same object is returned if nothing has to change.
        """
        written, lengths = self.as_written, np.diff(self.offsets)
        is_short = max_bases is None or self.longest <= max_bases
        if is_short and not written.has_letters:
            return self
        codes, offsets, qualities = self.codes, self.offsets, self.base_qualities
        if max_bases is not None and not is_short:
            is_searched = np.repeat(lengths <= max_bases, lengths)
            codes, qualities = codes[is_searched], qualities[is_searched]
            ends = np.cumsum(np.where(lengths <= max_bases, lengths, 0), dtype=np.int64)
            offsets = np.concatenate((np.zeros(1, dtype=np.int64), ends))
        return replace(
            self,
            padded_codes=with_margins(np.minimum(codes, BREAK)),
            offsets=offsets,
            base_qualities=qualities,
            written=written,
        )

    @property
    def pair_count(self) -> int:
        """The number of pairs, 0 if the reads are not paired."""
        return self.query_count // 2 if self.paired else 0

    @property
    def has_qualities(self) -> bool:
        """Whether any base has a quality."""
        # In most files with qualities, the first base has one.
        first = self.base_qualities[:1]
        return any(
            one.min(initial=NO_QUALITY) != NO_QUALITY for one in (first, self.base_qualities)
        )

    def numbered(self, index: int, file_number: int, has_groups: bool) -> ReadBlock:
        """Return the same reads as another block of the input."""
        return replace(self, index=index, file_number=file_number, has_groups=has_groups)

    def without_groups(self) -> ReadBlock:
        """Return the same reads without the read groups in their tags."""
        if not self.has_groups:
            return self
        return replace(self, tags=without_groups(self.tags), has_groups=False)

    def part(self, first: int, end: int) -> Self:
        """Return a range of the reads, with the same index, as views of the arrays.

        They are paired if the block is, and the range separates no mates.
        """
        return self.with_records(
            self.records.part(first, end),
            paired=self.paired and first % 2 == 0 and end % 2 == 0,
            written=None if self.written is None else self.written.part(first, end),
        )

    def with_records(self, records: Records, **changes: Any) -> Self:
        """Return records with qualities as a block with the same number (`QueryBlock`)."""
        own = {"base_qualities": records.qualities, "tags": records.tags}
        return super().with_records(records, **own, **changes)

    @property
    def read_count(self) -> int:
        """The number of reads, without the missing mates of single reads."""
        return self.query_count - self.single_count

    @property
    def single_count(self) -> int:
        """The number of single reads among pairs."""
        ends = self.name_offsets[1:]
        # In most blocks, all mates have names.
        if not self.paired or not (ends[1::2] == ends[0::2]).any():
            return 0
        return int(np.count_nonzero(self.missing))

    @cached_property
    def missing(self) -> BoolArray:
        """Which reads are placeholders for the missing mates of single reads among pairs.

        They have neither bases nor a name.
        """
        sizes = np.diff(self.name_offsets)
        missing = np.zeros(sizes.size, dtype=np.bool_)
        if self.paired:
            missing[1::2] = (sizes[1::2] == 0) & (sizes[0::2] > 0)
        return missing

    def libraries(self, groups: Sequence[bytes]) -> Int64Array:
        """Return the library of each template: its read group, or otherwise its file.

        It is the index of the read group in `groups`, which are IDs; or the number of `groups` plus
        the number of the file.
        """
        step = self.reads_of_template
        found = np.full(self.query_count // step, len(groups) + self.file_number, dtype=np.int64)
        if groups and self.has_groups and self.tags.are_kept:
            ids = np.frombuffer(b"".join(groups), dtype=np.uint8)
            ends = np.cumsum([0, *map(len, groups)], dtype=np.int64)
            offsets = np.ascontiguousarray(self.tags.offsets[::step])
            number_groups(writable(self.tags.content), offsets, (writable(ids), ends), found)
        return found

    def with_mates_reversed(self, which: Int64Array) -> ReadBlock:
        """Return pairs with some mates reverse-complemented; they are written unchanged.

        `which` has a row of two truth values for each pair, or one row for all.
        """
        is_reversed = np.broadcast_to(which, (self.pair_count, 2)).reshape(-1) != 0
        padded = padded_reverse_complements(self.padded_codes, self.offsets)
        is_reversed_base = np.repeat(is_reversed, np.diff(self.offsets))
        codes = padded[MARGIN : padded.size - MARGIN]
        np.copyto(codes, self.codes, where=~is_reversed_base)
        # The index of the mirrored base in its read.
        sums = self.offsets[:-1] + self.offsets[1:] - 1
        bases = np.arange(self.base_count)
        source = np.where(is_reversed_base, np.repeat(sums, np.diff(self.offsets)) - bases, bases)
        return replace(
            self,
            padded_codes=padded,
            base_qualities=self.base_qualities[source],
            written=self.as_written,
        )

    @property
    def reads_of_template(self) -> int:
        """The number of reads per template: 2 if they are mates."""
        return 2 if self.paired else 1
