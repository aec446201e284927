"""The arrays of a block of records, which a parser fills."""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np

from mummergpu.input.records.byte_runs import STEP, Text
from mummergpu.input.records.parser_state import Offsets
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt16Array
from mummergpu.sequence.codes import MARGIN, CodeArray


class BlockArrays:
    """Arrays for the records of a block, which become longer when needed.

    Parameters
    ----------
    bases, records, name_bytes : int
        For how much there is room at first.
    keeps_qualities : bool, default False
        Whether there is room for the qualities of the bases.

    Attributes
    ----------
    padded : ndarray, dtype=uint8
        The base codes between two margins of `codes.MARGIN` codes.
    codes : ndarray, dtype=uint8
        `padded` without its first margin.
    offsets : ndarray, dtype=int64
        Where in `codes` each record begins; one item more than there are records.
    names : ndarray, dtype=uint8
        The names.
    name_offsets : ndarray, dtype=int64
        Where in `names` each name begins; as long as `offsets`.
    qualities : ndarray, dtype=uint8
        The qualities of the bases, at the indices of `codes`; without an item if none are kept.
    """

    padded: CodeArray
    codes: CodeArray
    offsets: Offsets
    names: Text
    name_offsets: Offsets
    qualities: Text

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

    def make_room(self, bases: int, records: int, name_bytes: int) -> None:
        """Make the arrays long enough.

        Parameters
        ----------
        bases, records, name_bytes : int
            For how much there must be room.

        Raises
        ------
        NoRoomError
            If the arrays are not long enough, and cannot become longer.
        """
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

    Parameters
    ----------
    bases, records, name_bytes : int
        For how much there is room in the arrays of a block.
    keeps_qualities : bool, default False
        Whether there is room for the qualities of the bases.
    """

    def __init__(
        self, bases: int, records: int, name_bytes: int, keeps_qualities: bool = False
    ) -> None:
        offset_bytes = (records + 1) * np.dtype(np.int64).itemsize
        base_bytes = MARGIN + bases + max(STEP, MARGIN)
        # What is longest comes last: the end that is never touched takes no memory.
        quality_bytes = bases + STEP if keeps_qualities else 0
        self._sizes = (offset_bytes, offset_bytes, name_bytes + STEP, quality_bytes, base_bytes)
        self._spare: deque[Text] = deque()

    def new_arrays(self) -> BlockArrays:
        """Return arrays whose memory comes back when they and all their views are gone."""
        try:
            memory = self._spare.pop()
        except IndexError:
            memory = np.empty(sum(self._sizes), dtype=np.uint8)
        # Views of an array in the memory of another object than an array keep that array alive.
        lent: Text = np.frombuffer(memory.data, dtype=np.uint8)
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
        offsets: Offsets,
        names: Text,
        name_offsets: Offsets,
        qualities: Text,
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

    The C library moves the memory pages of a large array instead of copying them.

    Parameters
    ----------
    array : ndarray, dtype=uint8, uint16 or int64, shape=(n_items,)
        The array, changed in place. It becomes half as long again at least, or keeps its length.
    size : int
        How many items it must have.
    """
    if array.size < size:
        array.resize(max(size, array.size + array.size // 2), refcheck=False)
