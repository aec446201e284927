"""Base codes, complements and strands.

Inside the package a sequence is an array of codes, one byte a base: A, C, G and T are 0
to 3; every other character, the border between two records and the end of a page are
`BREAK`. A break matches nothing, not even another break.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.compiled import compiled, inlined_borrower

CodeArray = npt.NDArray[np.uint8]

BREAK: Final = 4
"""The code of whatever is not A, C, G or T."""

BASES: Final = b"ACGTN"
"""The letter of each code, for people to read."""


class Strand(IntEnum):
    """The strand of the query that a match lies on."""

    FORWARD = 0
    REVERSE = 1


def _code_of_byte() -> CodeArray:
    table = np.full(256, BREAK, dtype=np.uint8)
    for code, letter in enumerate("ACGT"):
        table[ord(letter)] = code
        table[ord(letter.lower())] = code
    return table


CODE_OF_BYTE: Final[CodeArray] = _code_of_byte()
"""The code of each byte of text: ndarray, dtype=uint8, shape=(256,)."""


def encode(text: bytes) -> CodeArray:
    """Return the codes of a piece of sequence text.

    Parameters
    ----------
    text : bytes
        Letters of either case; white space is not removed.

    Returns
    -------
    ndarray, dtype=uint8, shape=(len(text),)
        Codes 0 to 3, and `BREAK`.

    Examples
    --------
    >>> encode(b"ACgtN").tolist()
    [0, 1, 2, 3, 4]
    """
    return CODE_OF_BYTE[np.frombuffer(text, dtype=np.uint8)]


def decode(codes: CodeArray) -> bytes:
    """Return the letters of codes: ``ACGT``, and ``N`` for a break.

    Parameters
    ----------
    codes : ndarray, dtype=uint8
        Codes 0 to 4.

    Returns
    -------
    bytes
        One letter a code.

    Examples
    --------
    >>> decode(encode(b"acgu"))
    b'ACGN'
    """
    return np.frombuffer(BASES, dtype=np.uint8)[codes].tobytes()


@compiled
def reverse_complement_each(codes: CodeArray, offsets: npt.NDArray[np.int64]) -> CodeArray:
    """Return the reverse complement of each sequence, at the same offsets.

    Parameters
    ----------
    codes : ndarray, dtype=uint8, shape=(n_bases,)
        Sequences one behind the other.
    offsets : ndarray, dtype=int64, shape=(n_sequences + 1,)
        Where each begins, and where the last ends.

    Returns
    -------
    ndarray, dtype=uint8, shape=(n_bases,)
        A new array; breaks stay breaks.
    """
    result = np.empty_like(codes)
    for sequence in range(offsets.size - 1):
        begin = offsets[sequence]
        last = offsets[sequence + 1] - 1
        for position in range(begin, last + 1):
            code = codes[position]
            result[begin + last - position] = code if code >= BREAK else 3 - code
    return result


@inlined_borrower
def extend_match(
    joined_reference: CodeArray,
    codes: CodeArray,
    start: int,
    end: int,
    reference_start: int,
    length: int,
) -> int:
    """Return how long a match is that may go on where the search has ended.

    Parameters
    ----------
    joined_reference : ndarray, dtype=uint8
        The codes of the whole reference.
    codes : ndarray, dtype=uint8
        The codes of the queries, on the strand that was searched.
    start, end : int
        Where in `codes` the match begins and its query ends.
    reference_start : int
        Where in the reference the match begins.
    length : int
        The bases known to match.

    Returns
    -------
    int
        `length`, and the bases behind that match as well.
    """
    while (
        start + length < end
        and reference_start + length < joined_reference.size
        and codes[start + length] != BREAK
        and codes[start + length] == joined_reference[reference_start + length]
    ):
        length += 1
    return length
