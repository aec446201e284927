"""The arrays of a block of records, which a parser fills."""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np

from mummergpu.input.records.byte_runs import STEP
from mummergpu.input.records.parser_state import Columns
from mummergpu.input.records.record_arrays import NO_SPANS, NOTHING, Records, Spans
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt16Array
from mummergpu.sequence.codes import MARGIN, CodeArray, fill_margins


class BlockArrays:
    """Arrays for bases, records and bytes of names, which become longer when needed.

    `padded` begins with a margin of `codes.MARGIN` codes; `qualities` has no item if none are kept.
    See `Columns`.
    """

    code_of_byte: ByteArray = NOTHING
    """The code of each byte, for symbols of a model."""

    def __init__(
        self, bases: int = 0, records: int = 0, name_bytes: int = 0, keeps_qualities: bool = False
    ) -> None:
        self.padded: CodeArray = np.empty(bases + 2 * MARGIN, dtype=np.uint8)
        # Zeros would touch the end of an array too, which a block with fewer records never needs.
        self.offsets: Int64Array = np.empty(records + 1, dtype=np.int64)
        self.names: ByteArray = np.empty(name_bytes, dtype=np.uint8)
        self.name_offsets: Int64Array = np.empty(records + 1, dtype=np.int64)
        self.offsets[0] = self.name_offsets[0] = 0
        self._keeps_qualities = keeps_qualities
        self.qualities: ByteArray = np.empty(bases + STEP if keeps_qualities else 0, dtype=np.uint8)
        self.flags: UInt16Array = np.empty(0, dtype=np.uint16)
        self.tags: ByteArray = np.empty(0, dtype=np.uint8)
        self.tag_offsets: Int64Array = np.zeros(1, dtype=np.int64)

    @property
    def columns(self) -> Columns:
        """The arrays that a parser fills."""
        return Columns(
            *(self.padded[MARGIN:], self.offsets, self.names, self.name_offsets, self.qualities),
            *(self.code_of_byte, self.flags, self.tags, self.tag_offsets),
        )

    def make_room(
        self, bases: int, records: int, name_bytes: int, tag_bytes: int | None = None
    ) -> None:
        """Make the arrays long enough, including those of flags and tags if there may be any.

        Raise `NoRoomError` if they are too short and cannot be lengthened.
        """
        lengthen(self.padded, MARGIN + bases + max(STEP, MARGIN))
        lengthen(self.names, name_bytes + STEP)
        lengthen(self.offsets, records + 1)
        lengthen(self.name_offsets, records + 1)
        if self._keeps_qualities:
            lengthen(self.qualities, bases + STEP)
            if tag_bytes is not None:
                lengthen(self.flags, records)
                lengthen(self.tags, tag_bytes)
                lengthen(self.tag_offsets, records + 1)

    def give_back(self, bases: int, records: int, name_bytes: int, tag_bytes: int = 0) -> None:
        """Free the memory beyond these sizes, unless it is reused for other blocks."""
        for array, size in (
            *((self.padded, bases + 2 * MARGIN), (self.qualities, bases)),
            *((self.names, name_bytes), (self.offsets, records + 1)),
            *((self.name_offsets, records + 1), (self.flags, records)),
            *((self.tags, tag_bytes), (self.tag_offsets, records + 1)),
        ):
            if array.base is None and array.size > size:
                array.resize(size, refcheck=False)

    def records(self, count: int, bases: int, name_bytes: int, tag_bytes: int = 0) -> Records:
        """Return the records that a parser has written, as views, between margins."""
        padded = self.padded[: bases + 2 * MARGIN]
        fill_margins(padded)
        return Records(
            padded,
            self.offsets[: count + 1],
            self.names[:name_bytes],
            self.name_offsets[: count + 1],
            self.qualities[:bases],
            self.flags[:count],
            Spans(self.tags[:tag_bytes], self.tag_offsets[: count + 1]) if tag_bytes else NO_SPANS,
        )


class NoRoomError(Exception):
    """Arrays in recycled memory are too short."""


class RecycledMemory:
    """Makes arrays in memory that is reused as soon as no view of it is left.

    New memory is slow, above all while many threads run: the system clears each of its pages, and
    interrupts all processors when it takes them back.
    """

    def __init__(
        self, bases: int, records: int, name_bytes: int, keeps_qualities: bool = False
    ) -> None:
        offset_bytes = (records + 1) * np.dtype(np.int64).itemsize
        base_bytes = MARGIN + bases + max(STEP, MARGIN)
        # The longest array comes last: its end, never touched, takes no memory.
        quality_bytes = bases + STEP if keeps_qualities else 0
        self._sizes = (offset_bytes, offset_bytes, name_bytes + STEP, quality_bytes, base_bytes)
        self._keeps_qualities = keeps_qualities
        self._spare: deque[ByteArray] = deque()

    def new_arrays(self) -> BlockArrays:
        """Return arrays whose memory comes back when they and all their views are gone."""
        try:
            memory = self._spare.pop()
        except IndexError:
            memory = np.empty(sum(self._sizes), dtype=np.uint8)
        # Views of an array in the memory of another object than an array keep that array alive.
        lent: ByteArray = np.frombuffer(memory.data, dtype=np.uint8)
        weakref.finalize(lent, self._spare.append, memory).atexit = False
        offsets, name_offsets, *others = np.split(lent, np.cumsum(self._sizes)[:-1])
        arrays = BlockArrays(keeps_qualities=self._keeps_qualities)
        arrays.offsets, arrays.name_offsets = offsets.view(np.int64), name_offsets.view(np.int64)
        arrays.names, arrays.qualities, arrays.padded = others
        return arrays


def lengthen(array: ByteArray | UInt16Array | Int64Array, size: int) -> None:
    """Lengthen an array, to which there is no other reference, to at least `size` items.

    The C library moves the memory pages of a large array instead of copying them. The array becomes
    half as long again at least, or keeps its length. Raise `NoRoomError` for a view.
    """
    if array.size < size:
        if array.base is not None:
            raise NoRoomError
        array.resize(max(size, array.size + array.size // 2), refcheck=False)
