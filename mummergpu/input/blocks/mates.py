"""Pairs of reads: the names of mates, and two sequences of reads as one."""

from __future__ import annotations

from mummergpu.input.records.byte_runs import copy_bytes
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, jit_without_refcounts
from mummergpu.sequence.codes import CodeArray

TextArray = ByteArray
OffsetArray = Int64Array

SUFFIX_BYTES = 2
"""The bytes of ``/1`` and ``/2``."""


@jit_without_refcounts
def name_mates(
    first: TextArray,
    first_offsets: OffsetArray,
    second: TextArray,
    second_offsets: OffsetArray,
    step: int,
    with_suffixes: bool,
    names: TextArray,
    name_offsets: OffsetArray,
) -> int:
    """Write the names of pairs, which may end in ``/1`` and ``/2``.

    Parameters
    ----------
    first, second : ndarray, dtype=uint8, shape=(n_bytes,)
        The names of the first and of the second mates, one after the other.
    first_offsets, second_offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where each name begins.
    step : int
        How many names there are from one pair to the next: 2 if the mates alternate.
    with_suffixes : bool
        Whether the names that are written end in ``/1`` and ``/2``.
    names : ndarray, dtype=uint8
        Output: the names of first and second mates in turn. Has room for the names before; with
        suffixes, for `SUFFIX_BYTES` more of each.
    name_offsets : ndarray, dtype=int64, shape=(2 * n_pairs + 1,)
        Output: where each begins.

    Returns
    -------
    int
        The first pair whose names differ; the number of pairs if there is none.
    """
    end = 0
    name_offsets[0] = 0
    suffix = SUFFIX_BYTES if with_suffixes else 0
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
            letter = first[as_index(one + place)]
            if letter != second[as_index(other + place)]:
                return pair
            names[as_index(end + place)] = letter
            names[as_index(end + one_length + suffix + place)] = letter
        for mate in range(2):
            end += one_length
            if with_suffixes:
                names[end] = 47
                names[end + 1] = 49 + mate
                end += 2
            name_offsets[2 * pair + mate + 1] = end
    return pairs


@jit_without_refcounts
def cut_suffixes(names: TextArray, name_offsets: OffsetArray) -> int:
    """Remove the ``/1`` or ``/2`` at the ends of names.

    Parameters
    ----------
    names : ndarray, dtype=uint8, shape=(n_bytes,)
        The names, one after the other, changed in place.
    name_offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where each begins, changed in place.

    Returns
    -------
    int
        The number of bytes of all names.
    """
    end = 0
    begin = name_offsets[0]
    for number in range(name_offsets.size - 1):
        behind = name_offsets[number + 1]
        length = behind - begin
        if length >= 2 and names[behind - 2] == 47:  # '/'
            if names[behind - 1] == 49 or names[behind - 1] == 50:  # '1' or '2'
                length -= 2
        if end != begin:
            for place in range(length):
                names[end + place] = names[begin + place]
        begin = behind
        end += length
        name_offsets[number + 1] = end
    return end


@jit_without_refcounts
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
        copy_bytes(first, source, codes, begin + end, size)
        end += size
        offsets[2 * pair + 1] = end
        source = second_offsets[pair]
        size = second_offsets[pair + 1] - source
        copy_bytes(second, source, codes, begin + end, size)
        end += size
        offsets[2 * pair + 2] = end
