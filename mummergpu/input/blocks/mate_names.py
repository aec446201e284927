"""The names of mates, which are equal but for /1 and /2, and the errors if they are not."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.blocks.mates import SUFFIX_BYTES, name_mates
from mummergpu.input.records.record_lines import line_of_record
from mummergpu.input.records.record_reader import printable
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.words import counted


class Named(Protocol):
    """Reads that have names: blocks and records."""

    @property
    def names(self) -> ByteArray: ...  # noqa: D102

    @property
    def name_offsets(self) -> Int64Array: ...  # noqa: D102


class PairNames(NamedTuple):
    """The names of pairs.

    Attributes
    ----------
    names : ndarray, dtype=uint8, shape=(n_bytes,)
        The names of first and second mates in turn.
    offsets : ndarray, dtype=int64, shape=(2 * n_pairs + 1,)
        Where each begins.
    equal : int
        The first pair whose names differ; the number of pairs if there is none. If there is one,
        `names` and `offsets` mean nothing.
    """

    names: ByteArray
    offsets: Int64Array
    equal: int


def names_of_pairs(
    first: Named, second: Named, step: int, pairs: int, with_suffixes: bool
) -> PairNames:
    """Return the names of mates, after a comparison.

    Parameters
    ----------
    first, second : Named
        The first and the second mates.
    step : int
        How many reads there are from one pair to the next: 2 if the mates alternate.
    pairs : int
        The number of pairs.
    with_suffixes : bool
        Whether the names end in ``/1`` and ``/2``.

    Returns
    -------
    PairNames
        The names.
    """
    # Names may be equal although one of them lacks its suffix.
    room = pairs * 2 * SUFFIX_BYTES + first.names.size + second.names.size
    names = np.empty(room, dtype=np.uint8)
    offsets = np.empty(2 * pairs + 1, dtype=np.int64)
    equal = name_mates(
        first.names,
        first.name_offsets,
        second.names,
        second.name_offsets,
        step,
        with_suffixes,
        names,
        offsets,
    )
    return PairNames(names[: offsets[-1]] if equal == pairs else names[:0], offsets, equal)


def name_of(reads: Named, number: int) -> str:
    """Return the name of a read as it should appear in a message.

    Parameters
    ----------
    reads : Named
        The reads.
    number : int
        The number of the read, counted from 0.

    Returns
    -------
    str
        One line of printable characters.
    """
    name = reads.names[reads.name_offsets[number] : reads.name_offsets[number + 1]]
    return printable(name.tobytes())


def not_mates(path: str, number: int, name: str, mate: str) -> InputError:
    """Return the error for a read whose name differs from that of its mate.

    Parameters
    ----------
    path : str
        The file of the second mate.
    number : int
        The number of the second mate in that file, counted from 0.
    name, mate : str
        The names of the second and of the first mate.

    Returns
    -------
    InputError
        With the line of the second mate.
    """
    message = f"not the mate of '{mate}': the names of mates are equal, but for /1 and /2"
    return InputError(message, path, line_of_record(path, number), name)


def without_mate(path: str, number: int, name: str, other: str | None = None) -> InputError:
    """Return the error for a read after the last pair.

    Parameters
    ----------
    path : str
        The file of the read.
    number : int
        The number of the read in that file, counted from 0.
    name : str
        The name of the read.
    other : str, optional
        The file of its mate, if mates do not alternate; it has as many reads as came before.

    Returns
    -------
    InputError
        With the line of the read.
    """
    if other is None:
        message = "the last read has no mate"
    else:
        message = f"the read has no mate: '{other}' has {counted(number, 'read')}"
    return InputError(message, path, line_of_record(path, number), name)
