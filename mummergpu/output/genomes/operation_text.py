"""The operations of long alignments as text: CIGARs, and the distances between gaps."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.output.bytes.number_fields import MOST_DIGITS, put_one_number
from mummergpu.output.bytes.text_stores import LINE_END, OVERSHOOT, TextArray, store
from mummergpu.output.records.cigars import put_cigar
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.jit import as_int64, jit_without_refcounts
from mummergpu.viterbi.recurrence.operations import INSERTION_OPERATION, MATCH_OPERATION

OperationArray = UInt32Array

_MINUS: Final = np.uint8(ord("-"))
_STAR: Final = np.uint8(ord("*"))
_ONE: Final = np.uint8(ord("1"))

Texts = tuple[TextArray, Int64Array]
"""Texts one after the other, and where each begins and the last ends."""


def cigar_texts(cigars: OperationArray, offsets: Int64Array) -> Texts:
    """Return the CIGAR of each alignment as text; ``*`` if it has no operation.

    Parameters
    ----------
    cigars : ndarray, dtype=uint32
        The operations of all alignments, as BAM packs them.
    offsets : ndarray, dtype=int64, shape=(n_alignments + 1,)
        Where those of each alignment begin.

    Returns
    -------
    tuple of ndarray
        The texts, and where each begins.
    """
    size = (MOST_DIGITS + 1) * cigars.size + offsets.size + OVERSHOOT
    text = np.empty(size, dtype=np.uint8)
    text_offsets = np.zeros(offsets.size, dtype=np.int64)
    _write_cigars(cigars, offsets, text, text_offsets)
    return text, text_offsets


def distance_texts(cigars: OperationArray, offsets: Int64Array) -> Texts:
    """Return the distances between the gaps of each alignment, as nucmer's .delta has them.

    Each base of a gap has a line: how many columns it is after the one before. The number is
    negative if the base is missing in the reference, and positive if it is missing in the query.
    """
    gap_bases = int((cigars[cigars & 15 != MATCH_OPERATION] >> 4).sum(dtype=np.int64))
    size = (MOST_DIGITS + 2) * cigars.size + len(b"-1\n") * gap_bases + OVERSHOOT
    text = np.empty(size, dtype=np.uint8)
    text_offsets = np.zeros(offsets.size, dtype=np.int64)
    _write_distances(cigars, offsets, text, text_offsets)
    return text, text_offsets


@jit_without_refcounts
def _write_cigars(
    cigars: OperationArray, offsets: Int64Array, text: TextArray, text_offsets: Int64Array
) -> None:
    """Write a number and a letter for each operation."""
    at = 0
    for row in range(offsets.size - 1):
        at = put_cigar(text, at, cigars, offsets[row], offsets[row + 1], False)
        if offsets[row] == offsets[row + 1]:
            store(text, at, _STAR)
            at += 1
        text_offsets[row + 1] = at


@jit_without_refcounts
def _write_distances(
    cigars: OperationArray, offsets: Int64Array, text: TextArray, text_offsets: Int64Array
) -> None:
    """Write a line for each base of a gap."""
    at = 0
    for row in range(offsets.size - 1):
        columns = 0
        for position in range(offsets[row], offsets[row + 1]):
            operation = as_int64(cigars[position])
            kind, length = operation & 15, operation >> 4
            if kind == MATCH_OPERATION:
                columns += length
                continue
            for base in range(length):
                if kind == INSERTION_OPERATION:
                    store(text, at, _MINUS)
                    at += 1
                if base == 0:
                    at = put_one_number(text, at, columns + 1)
                else:
                    store(text, at, _ONE)
                    at += 1
                store(text, at, LINE_END)
                at += 1
            columns = 0
        text_offsets[row + 1] = at
