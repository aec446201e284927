"""Pairs of reads: the names of mates, and two sequences of reads as one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mummergpu.runtime.jit import jit
from mummergpu.sequence.codes import CodeArray

TextArray = npt.NDArray[np.uint8]
OffsetArray = npt.NDArray[np.int64]

SUFFIX_BYTES = 2
"""The bytes of ``/1`` and ``/2``."""


@jit
def name_mates(
    first: TextArray,
    first_offsets: OffsetArray,
    second: TextArray,
    second_offsets: OffsetArray,
    step: int,
    names: TextArray,
    name_offsets: OffsetArray,
) -> int:
    """Write the names of pairs, with ``/1`` and ``/2``, which they may have already.

    Parameters
    ----------
    first, second : ndarray, dtype=uint8, shape=(n_bytes,)
        The names of the first and of the second mates, one after the other.
    first_offsets, second_offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where each name begins.
    step : int
        How many names there are from one pair to the next: 2 if the mates alternate.
    names : ndarray, dtype=uint8
        Output: the names of first and second mates in turn; `SUFFIX_BYTES` longer, for each, than
        the names before.
    name_offsets : ndarray, dtype=int64, shape=(2 * n_pairs + 1,)
        Output: where each begins.

    Returns
    -------
    int
        The first pair whose names differ; the number of pairs if there is none.
    """
    end = 0
    name_offsets[0] = 0
    pairs = (name_offsets.size - 1) // 2
    for pair in range(pairs):
        one = first_offsets[pair * step]
        one_length = first_offsets[pair * step + 1] - one
        other = second_offsets[pair * step]
        other_length = second_offsets[pair * step + 1] - other
        if one_length >= 2 and first[one + one_length - 2] == 47:  # '/'
            if first[one + one_length - 1] == 49:  # '1'
                one_length -= 2
        if other_length >= 2 and second[other + other_length - 2] == 47:
            if second[other + other_length - 1] == 50:  # '2'
                other_length -= 2
        if one_length != other_length:
            return pair
        for place in range(one_length):
            letter = first[one + place]
            if letter != second[other + place]:
                return pair
            names[end + place] = letter
            names[end + one_length + 2 + place] = letter
        end += one_length
        names[end] = 47
        names[end + 1] = 49
        end += 2
        name_offsets[2 * pair + 1] = end
        end += one_length
        names[end] = 47
        names[end + 1] = 50
        end += 2
        name_offsets[2 * pair + 2] = end
    return pairs


@jit
def interleave(
    first: CodeArray,
    first_offsets: OffsetArray,
    second: CodeArray,
    second_offsets: OffsetArray,
    codes: CodeArray,
    begin: int,
    offsets: OffsetArray,
) -> None:
    """Write the bases of first and second mates in turn.

    Parameters
    ----------
    first, second : ndarray, dtype=uint8, shape=(n_bases,)
        The base codes of the first and of the second mates.
    first_offsets, second_offsets : ndarray, dtype=int64, shape=(n_pairs + 1,)
        Where each begins.
    codes : ndarray, dtype=uint8
        Output: the base codes, from `begin` on.
    begin : int
        Where the first base is written.
    offsets : ndarray, dtype=int64, shape=(2 * n_pairs + 1,)
        Output: where each begins, counted from `begin`.
    """
    end = 0
    offsets[0] = 0
    for pair in range(first_offsets.size - 1):
        source = first_offsets[pair]
        size = first_offsets[pair + 1] - source
        for place in range(size):
            codes[begin + end + place] = first[source + place]
        end += size
        offsets[2 * pair + 1] = end
        source = second_offsets[pair]
        size = second_offsets[pair + 1] - source
        for place in range(size):
            codes[begin + end + place] = second[source + place]
        end += size
        offsets[2 * pair + 2] = end
