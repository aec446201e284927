"""The arrays of a block of records, which a parser fills."""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np

from mummergpu.input.records.byte_runs import STEP
from mummergpu.input.records.parser_state import Columns
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt16Array
from mummergpu.sequence.codes import MARGIN, CodeArray


class BlockArrays:
    """Arrays for so many bases, records and bytes of names, which become longer when needed.

    `codes` is `padded` without its first margin of `codes.MARGIN` codes; `qualities` has no item if
    none are kept. See `Columns`.
    """

    padded: CodeArray
    codes: CodeArray
    offsets: Int64Array
    names: ByteArray
    name_offsets: Int64Array
    qualities: ByteArray
    code_of_byte: ByteArray = np.empty(0, dtype=np.uint8)
    """What symbols of a model are read with."""

    def __init__(
        self, bases: int, records: int, name_bytes: int, keeps_qualities: bool = False
    ) -> None:
        self.padded = np.empty(bases + 2 * MARGIN, dtype=np.uint8)
        self.codes = self.padded[MARGIN:]
        self.offsets = np.empty(records + 1, dtype=np.int64)
        self.names = np.empty(name_bytes, dtype=np.uint8)
        self.name_offsets = np.empty(records + 1, dtype=np.int64)
        self._keeps_qualities = keeps_qualities
        self.qualities = np.empty(bases + STEP if keeps_qualities else 0, dtype=np.uint8)

    @property
    def columns(self) -> Columns:
        """The arrays that a parser fills."""
        names = self.names, self.name_offsets
        return Columns(self.codes, self.offsets, *names, self.qualities, self.code_of_byte)

    def make_room(self, bases: int, records: int, name_bytes: int) -> None:
        """Make the arrays long enough; raise `NoRoomError` if they are not and cannot become so."""
        lengthen(self.padded, MARGIN + bases + max(STEP, MARGIN))
        self.codes = self.padded[MARGIN:]
        lengthen(self.names, name_bytes + STEP)
        lengthen(self.offsets, records + 1)
        lengthen(self.name_offsets, records + 1)
        if self._keeps_qualities:
            lengthen(self.qualities, bases + STEP)

    def give_back(self, bases: int) -> None:
        """Give the memory back that `bases` bases do not need."""
        self.padded.resize(bases + 2 * MARGIN, refcheck=False)
        self.codes = self.padded[MARGIN:]
        if self._keeps_qualities:
            self.qualities.resize(bases, refcheck=False)


class NoRoomError(Exception):
    """Arrays in recycled memory are too short."""


class RecycledMemory:
    """Makes arrays in memory that is used again as soon as no view of it is left.

    New memory is slow to come by, above all while many threads run: the system clears each of its
    pages, and interrupts all processors when it takes them back.
    """

    def __init__(
        self, bases: int, records: int, name_bytes: int, keeps_qualities: bool = False
    ) -> None:
        offset_bytes = (records + 1) * np.dtype(np.int64).itemsize
        base_bytes = MARGIN + bases + max(STEP, MARGIN)
        # What is longest comes last: the end that is never touched takes no memory.
        quality_bytes = bases + STEP if keeps_qualities else 0
        self._sizes = (offset_bytes, offset_bytes, name_bytes + STEP, quality_bytes, base_bytes)
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
        ends = np.cumsum(self._sizes)
        offsets, name_offsets, names, qualities, padded = np.split(lent, ends[:-1])
        return _FixedArrays(
            padded, offsets.view(np.int64), names, name_offsets.view(np.int64), qualities
        )


class _FixedArrays(BlockArrays):
    """Arrays that cannot become longer."""

    def __init__(
        self,
        padded: CodeArray,
        offsets: Int64Array,
        names: ByteArray,
        name_offsets: Int64Array,
        qualities: ByteArray,
    ) -> None:
        self.padded = padded
        self.codes = padded[MARGIN:]
        self.offsets = offsets
        self.names = names
        self.name_offsets = name_offsets
        # As long as `padded` needs them, or empty.
        self.qualities = qualities

    def make_room(self, bases: int, records: int, name_bytes: int) -> None:
        """Check that the arrays are long enough; see `BlockArrays.make_room`."""
        if (
            self.padded.size < MARGIN + bases + max(STEP, MARGIN)
            or self.names.size < name_bytes + STEP
            or self.offsets.size < records + 1
        ):
            raise NoRoomError

    def give_back(self, bases: int) -> None:
        """Keep the memory, for other blocks."""


def lengthen(array: ByteArray | UInt16Array | Int64Array, size: int) -> None:
    """Lengthen an array, to which there is no other reference, to at least `size` items.

    The C library moves the memory pages of a large array instead of copying them. The array becomes
    half as long again at least, or keeps its length.
    """
    if array.size < size:
        array.resize(max(size, array.size + array.size // 2), refcheck=False)
