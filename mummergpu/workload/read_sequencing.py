"""How a platform reads a fragment: the compiled loops that draw lengths, errors and qualities."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

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

IntArray = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]
Scalar = Any
"""A whole number inside compiled code, of the width that numba finds."""


_LOWEST_QUALITY: Final = 2
_QUALITY_ZERO: Final = ord("!")
_16_BITS: Final = np.uint64(0xFFFF)

_LETTERS: Final = np.frombuffer(BASES, dtype=np.uint8)


@inline
def draw_length(bits: Scalar, lengths: IntArray) -> Scalar:
    """Return a read length: four dice make the bell curve.

    Parameters
    ----------
    bits : uint64
        64 random bits.
    lengths : ndarray, dtype=int64
        What `error_profiles.length_table` gives.

    Returns
    -------
    int
        In bases.
    """
    total = (bits & _16_BITS) + (bits >> np.uint64(16) & _16_BITS)
    total += (bits >> HALF & _16_BITS) + (bits >> np.uint64(48))
    away = (np.int64(total) - 2 * 0xFFFF) * lengths[SCALE] >> 32
    return max(lengths[MINIMUM], min(lengths[MAXIMUM], lengths[MEAN] + away))


@inline
def interval_of(place: Scalar, bounds: IntArray) -> Scalar:
    """Return the n for which `place` lies from ``bounds[n]`` to before ``bounds[n + 1]``.

    Parameters
    ----------
    place : int
        A number from the first bound on, below the last.
    bounds : ndarray, dtype=int64
        Ascending bounds.

    Returns
    -------
    int
        Its number.
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
    """Return how the run of equal bases from `position` on is called.

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
        How many bases the run still has from the position on.
    homopolymer : ndarray, dtype=uint64
        The chance that a run of equal bases is called wrong, by its length, of 2**32; empty
        for platforms without such errors.

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
    """Return how a base is called.

    Parameters
    ----------
    bits : uint64
        64 random bits.
    thresholds : ndarray, dtype=uint64
        A row of `error_profiles.error_table`.

    Returns
    -------
    int
        One of the events.
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
    """Return the code that is read where `base` stands.

    Parameters
    ----------
    base : int
        The code of the base.
    event : int
        What happens at the base, of the names in `error_profiles`.
    bits : uint64
        64 random bits.

    Returns
    -------
    int
        A code.
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
    """Return the quality byte: about the mean if right, about half of it if not.

    Parameters
    ----------
    mean : int
        The mean quality there.
    event : int
        What happens at the base, of the names in `error_profiles`.
    bits : uint64
        64 random bits.

    Returns
    -------
    int
        A byte of FASTQ.
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
    """Read `length` bases from `begin` on; return how many of the reference they took.

    Parameters
    ----------
    state : uint64
        The state of the random stream of the read.
    codes : ndarray, dtype=uint8
        The base codes of the joined reference.
    begin : int
        Where the fragment begins.
    step : int
        1 on the forward strand, -1 on the reverse.
    available : int
        The bases from there to the end of the run.
    length : int
        The bases of the read.
    errors : ndarray, dtype=uint64, shape=(BINS, n)
        What `error_profiles.error_table` gives.
    homopolymer : ndarray, dtype=uint64
        The chance that a run of equal bases is called wrong, by its length, of 2**32; empty
        for platforms without such errors.
    letters : ndarray, dtype=uint8
        Output: the letters of the read.
    qualities : ndarray, dtype=uint8
        Output: its qualities.
    tally : ndarray, dtype=int64
        Counts of events, then of bases and of forward reads; added to.

    Returns
    -------
    int
        The bases of the reference that the read spans.
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
            # The fragment would be too short for the rest of the read.
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
