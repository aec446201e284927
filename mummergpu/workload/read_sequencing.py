"""Compiled loops that read a fragment as a platform does: they draw errors and qualities."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import inline
from mummergpu.sequence.codes import BASES, BREAK
from mummergpu.workload.error_profiles import (
    BINS,
    DELETION,
    INSERTION,
    MAXIMUM,
    MEAN,
    MINIMUM,
    QUALITY,
    REPETITION,
    RIGHT,
    SCALE,
    SUBSTITUTION,
    UNKNOWN,
)
from mummergpu.workload.splitmix import (
    GAMMA,
    HALF,
    LOW_HALF,
    BitArray,
    scramble_compiled,
)

IntArray = Int64Array
Scalar = Any
"""A whole number inside compiled code; numba infers its width."""


_LOWEST_QUALITY: Final = 2
_QUALITY_ZERO: Final = ord("!")
_16_BITS: Final = np.uint64(0xFFFF)

_LETTERS: Final = np.frombuffer(BASES, dtype=np.uint8)


@inline
def draw_length(bits: Scalar, lengths: IntArray) -> Scalar:
    """Return a random read length: the sum of four random numbers has nearly a bell curve.

    Parameters
    ----------
    bits : uint64
        64 random bits.
    lengths : ndarray, dtype=int64
        The result of `error_profiles.length_table`.

    Returns
    -------
    int
        The length in bases.
    """
    total = (bits & _16_BITS) + (bits >> np.uint64(16) & _16_BITS)
    total += (bits >> HALF & _16_BITS) + (bits >> np.uint64(48))
    away = (np.int64(total) - 2 * 0xFFFF) * lengths[SCALE] >> 32
    return max(lengths[MINIMUM], min(lengths[MAXIMUM], lengths[MEAN] + away))


@inline
def interval_of(place: Scalar, bounds: IntArray) -> Scalar:
    """Return the n with ``bounds[n] <= place < bounds[n + 1]``.

    Parameters
    ----------
    place : int
        A number, at least the first bound and below the last.
    bounds : ndarray, dtype=int64
        Ascending bounds.

    Returns
    -------
    int
        The number of the interval.
    """
    low = 0
    high = bounds.size - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if bounds[middle] <= place:
            low = middle
        else:
            high = middle
    return low


@inline
def _run_event(
    bits: Scalar,
    codes: ByteArray,
    position: Scalar,
    step: Scalar,
    left: Scalar,
    homopolymer: BitArray,
) -> Scalar:
    """Return how the platform calls the run of equal bases that begins at `position`.

    Parameters
    ----------
    bits : uint64
        64 random bits.
    codes : ndarray, dtype=uint8
        The base codes of the joined reference.
    position : int
        A 0-based position in the joined reference.
    step : int
        1 on the forward strand, -1 on the reverse.
    left : int
        Number of bases from the position to the end of the run without a break.
    homopolymer : ndarray, dtype=uint64
        The chance that a run of equal bases is called with a wrong length, in units of 2**-32,
        by the length of the run; empty for platforms without such errors.

    Returns
    -------
    int
        `RIGHT`, `REPETITION` or `DELETION`.
    """
    most = min(left, homopolymer.size)
    length = 1
    while length < most and codes[position + length * step] == codes[position]:
        length += 1
    if (bits & LOW_HALF) >= homopolymer[length - 1]:
        return RIGHT
    return REPETITION if bits >> np.uint64(63) else DELETION


@inline
def _base_event(bits: Scalar, thresholds: BitArray) -> Scalar:
    """Return how the platform calls a base.

    Parameters
    ----------
    bits : uint64
        64 random bits.
    thresholds : ndarray, dtype=uint64
        A row of `error_profiles.error_table`.

    Returns
    -------
    int
        One of the events in `error_profiles`.
    """
    draw = bits & LOW_HALF
    if draw >= thresholds[SUBSTITUTION]:
        return RIGHT
    event = UNKNOWN
    while draw >= thresholds[event]:
        event += 1
    return event


@inline
def _called_letter(base: Scalar, event: Scalar, bits: Scalar) -> Scalar:
    """Return the code that the platform reads for a base.

    Parameters
    ----------
    base : int
        The code of the base.
    event : int
        The event at the base, one of those in `error_profiles`.
    bits : uint64
        64 random bits.

    Returns
    -------
    int
        The code in the read.
    """
    chance = np.int64(bits >> HALF & _16_BITS)
    if event == UNKNOWN:
        return BREAK
    if event == INSERTION:
        return chance & 3
    if event == SUBSTITUTION:
        return (base + 1 + (chance * 3 >> 16)) & 3
    return base


@inline
def _called_quality(mean: Scalar, event: Scalar, bits: Scalar) -> Scalar:
    """Return the quality byte: about the mean for a correct base, about half of it for an error.

    Parameters
    ----------
    mean : int
        The mean quality at this part of the read.
    event : int
        The event at the base, one of those in `error_profiles`.
    bits : uint64
        64 random bits.

    Returns
    -------
    int
        The byte in FASTQ.
    """
    quality: Scalar = np.int64(mean) + np.int64(bits >> np.uint64(61)) - 4
    if event == UNKNOWN:
        quality = 0
    elif event != RIGHT:
        quality >>= 1
    return _QUALITY_ZERO + max(quality, _LOWEST_QUALITY)


@inline
def sequence_fragment(
    state: Scalar, codes: ByteArray, begin: Scalar, step: Scalar, available: Scalar, length: Scalar,
    errors: BitArray, homopolymer: BitArray, letters: ByteArray, qualities: ByteArray,
    tally: IntArray,
) -> Scalar:  # fmt: skip
    """Read `length` bases from `begin`, and return the number of reference bases they span.

    Parameters
    ----------
    state : uint64
        The state of the random stream of the read.
    codes : ndarray, dtype=uint8
        The base codes of the joined reference.
    begin : int
        The 0-based position in the joined reference where the fragment begins.
    step : int
        1 on the forward strand, -1 on the reverse.
    available : int
        Number of bases from there to the end of the run without a break.
    length : int
        Number of bases of the read.
    errors : ndarray, dtype=uint64, shape=(BINS, n)
        The result of `error_profiles.error_table`.
    homopolymer : ndarray, dtype=uint64
        The chance that a run of equal bases is called with a wrong length, in units of 2**-32,
        by the length of the run; empty for platforms without such errors.
    letters : ndarray, dtype=uint8
        Output: the letters of the read.
    qualities : ndarray, dtype=uint8
        Output: the qualities of the read.
    tally : ndarray, dtype=int64
        Counts of events, then of bases and of forward reads; this call adds to them.

    Returns
    -------
    int
        Number of reference bases that the read spans.
    """
    complement = 3 if step < 0 else 0
    part_step = (BINS << 20) // length
    position = begin
    previous: Scalar = -1
    done = 0
    while done < length:
        left = available - (position - begin) * step
        base = np.int64(codes[position])
        event = RIGHT
        if homopolymer.size and base != previous:
            state += GAMMA
            bits = scramble_compiled(state)
            event = _run_event(bits, codes, position, step, left, homopolymer)
        previous = base
        thresholds = errors[done * part_step >> 20]
        state += GAMMA
        bits = scramble_compiled(state)
        if event == RIGHT:
            event = _base_event(bits, thresholds)
        if event == DELETION and left <= length - done:
            # With this deletion, the fragment would be too short for the rest of the read.
            event = RIGHT
        tally[event] += 1
        if event != INSERTION and event != REPETITION:
            position += step
        if event == DELETION:
            continue
        letters[done] = _LETTERS[_called_letter(base ^ complement, event, bits)]
        qualities[done] = _called_quality(thresholds[QUALITY], event, bits)
        done += 1
    return (position - begin) * step
