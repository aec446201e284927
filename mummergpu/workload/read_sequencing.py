"""Compiled loops that draw reads and pairs from a reference, and write them as FASTQ or FASTA.

A fragment is read as a platform does it, with its errors and qualities.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt64Array
from mummergpu.runtime.jit import inline, jit
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
from mummergpu.workload.splitmix import GAMMA, HALF, LOW_HALF, scramble_compiled

Scalar = Any
"""A whole number inside compiled code; numba infers its width."""

_LOWEST_QUALITY: Final = 2
_QUALITY_ZERO: Final = ord("!")
_16_BITS: Final = np.uint64(0xFFFF)

_LETTERS: Final = np.frombuffer(BASES, dtype=np.uint8)

# Indices in the tally, after the six events that can happen at a base.
BASES_READ, READS_FORWARD = 6, 7

_RECORD: Final = np.frombuffer(b" record=", dtype=np.uint8)
_POSITION: Final = np.frombuffer(b" pos=", dtype=np.uint8)
_SPAN: Final = np.frombuffer(b" span=", dtype=np.uint8)
_FORWARD_STRAND: Final = np.frombuffer(b" strand=+\n", dtype=np.uint8)
_REVERSE_STRAND: Final = np.frombuffer(b" strand=-\n", dtype=np.uint8)
_PLUS: Final = np.frombuffer(b"\n+\n", dtype=np.uint8)
_LINE_END: Final = ord("\n")


class Origin(NamedTuple):
    """What reads are drawn from.

    Attributes
    ----------
    codes : ndarray, dtype=uint8
        The base codes of the joined reference.
    record_bounds : ndarray, dtype=int64, shape=(n_records + 1,)
        Where records begin in the joined reference.
    names : ndarray, dtype=uint8
        The names of the records, one after the other.
    name_offsets : ndarray, dtype=int64, shape=(n_records + 1,)
        Where each name begins.
    runs : ndarray, dtype=int64, shape=(n_runs, 2)
        The runs of bases (`read_simulator.base_runs`).
    run_offsets : ndarray, dtype=int64, shape=(n_runs + 1,)
        Number of bases in all runs before each run.
    """

    codes: ByteArray
    record_bounds: Int64Array
    names: ByteArray
    name_offsets: Int64Array
    runs: Int64Array
    run_offsets: Int64Array


class Platform(NamedTuple):
    """How reads are drawn, and what their text has.

    Attributes
    ----------
    lengths, templates, errors, homopolymer : ndarray
        The tables of `error_profiles`.
    prefix : ndarray, dtype=uint8
        The bytes at the start of each header.
    has_qualities : bool
        True for FASTQ, False for FASTA.
    """

    lengths: Int64Array
    templates: Int64Array
    errors: UInt64Array
    homopolymer: UInt64Array
    prefix: ByteArray
    has_qualities: bool


class _Read(NamedTuple):
    """A read to be: its number, its state of the random stream, and where it begins.

    `available` bases follow without a break, on its strand.
    """

    number: Scalar
    state: Scalar
    begin: Scalar
    is_forward: Scalar
    available: Scalar
    length: Scalar


@inline
def _draw_length(bits: Scalar, lengths: Int64Array) -> Scalar:
    """Return a random length in bases: the sum of four random numbers has nearly a bell curve.

    `lengths` is a table of `error_profiles.length_table`.
    """
    total = (bits & _16_BITS) + (bits >> np.uint64(16) & _16_BITS)
    total += (bits >> HALF & _16_BITS) + (bits >> np.uint64(48))
    away = (np.int64(total) - 2 * 0xFFFF) * lengths[SCALE] >> 32
    return max(lengths[MINIMUM], min(lengths[MAXIMUM], lengths[MEAN] + away))


@inline
def _interval_of(place: Scalar, bounds: Int64Array) -> Scalar:
    """Return the n with ``bounds[n] <= place < bounds[n + 1]``; the bounds ascend."""
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
    homopolymer: UInt64Array,
) -> Scalar:
    """Return how the platform calls the run of equal bases that begins at `position`.

    It is `RIGHT`, `REPETITION` or `DELETION`. `step` is 1 on the forward strand, -1 on the reverse;
    `left` bases follow without a break.
    """
    most = min(left, homopolymer.size)
    length = 1
    while length < most and codes[position + length * step] == codes[position]:
        length += 1
    if (bits & LOW_HALF) >= homopolymer[length - 1]:
        return RIGHT
    return REPETITION if bits >> np.uint64(63) else DELETION


@inline
def _base_event(bits: Scalar, thresholds: UInt64Array) -> Scalar:
    """Return how the platform calls a base: one of the events in `error_profiles`.

    `thresholds` is a row of `error_profiles.error_table`.
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
    """Return the code that the platform reads for a base."""
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
    """Return the quality byte: about the mean for a correct base, about half of it for an error."""
    quality: Scalar = np.int64(mean) + np.int64(bits >> np.uint64(61)) - 4
    if event == UNKNOWN:
        quality = 0
    elif event != RIGHT:
        quality >>= 1
    return _QUALITY_ZERO + max(quality, _LOWEST_QUALITY)


@inline
def _sequence_fragment(
    read: _Read, origin: Origin, platform: Platform, letters: ByteArray, qualities: ByteArray,
    tally: Int64Array,
) -> Scalar:  # fmt: skip
    """Draw the letters and the qualities of a read; return how many reference bases it spans."""
    state, codes, length = read.state, origin.codes, read.length
    step = 1 if read.is_forward else -1
    complement = 3 if step < 0 else 0
    part_step = (BINS << 20) // length
    position = read.begin
    previous: Scalar = -1
    done = 0
    while done < length:
        left = read.available - (position - read.begin) * step
        base = np.int64(codes[position])
        event = RIGHT
        if platform.homopolymer.size and base != previous:
            state += GAMMA
            bits = scramble_compiled(state)
            event = _run_event(bits, codes, position, step, left, platform.homopolymer)
        previous = base
        thresholds = platform.errors[done * part_step >> 20]
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
    return (position - read.begin) * step


@inline
def _append_number(number: Scalar, out: ByteArray, end: Scalar) -> Scalar:
    """Write a number that is not negative in decimal, and return the new end of the text."""
    digits = 1
    rest = number // 10
    while rest:
        digits += 1
        rest //= 10
    for place in range(end + digits - 1, end - 1, -1):
        out[place] = 48 + number % 10
        number //= 10
    return end + digits


@inline
def _append(text: ByteArray, begin: Scalar, stop: Scalar, out: ByteArray, end: Scalar) -> Scalar:
    """Copy ``text[begin:stop]``, and return the new end of the text."""
    for place in range(begin, stop):
        out[end] = text[place]
        end += 1
    return end


@inline
def _append_read(
    read: _Read, origin: Origin, platform: Platform, letters: ByteArray, qualities: ByteArray,
    out: ByteArray, end: Scalar, tally: Int64Array,
) -> Scalar:  # fmt: skip
    """Sequence a read, write it behind `end`, and return where the text ends then."""
    span = _sequence_fragment(read, origin, platform, letters, qualities, tally)
    tally[BASES_READ] += read.length
    tally[READS_FORWARD] += read.is_forward
    end = _append(platform.prefix, 0, platform.prefix.size, out, end)
    end = _append_number(read.number + 1, out, end)
    if platform.has_qualities:
        leftmost = read.begin if read.is_forward else read.begin - span + 1
        record = _interval_of(leftmost, origin.record_bounds)
        offsets = origin.name_offsets
        end = _append(_RECORD, 0, _RECORD.size, out, end)
        end = _append(origin.names, offsets[record], offsets[record + 1], out, end)
        end = _append(_POSITION, 0, _POSITION.size, out, end)
        end = _append_number(leftmost - origin.record_bounds[record] + 1, out, end)
        end = _append(_SPAN, 0, _SPAN.size, out, end)
        end = _append_number(span, out, end)
        strand = _FORWARD_STRAND if read.is_forward else _REVERSE_STRAND
        end = _append(strand, 0, strand.size, out, end)
        end = _append(letters, 0, read.length, out, end)
        end = _append(_PLUS, 0, _PLUS.size, out, end)
        end = _append(qualities, 0, read.length, out, end)
    else:
        out[end] = _LINE_END
        end = _append(letters, 0, read.length, out, end + 1)
    out[end] = _LINE_END
    return end + 1


@jit
def write_reads(
    key: UInt64Array, first: int, last: int, origin: Origin, platform: Platform,
    scratch: ByteArray, out: ByteArray, tally: Int64Array,
) -> int:  # fmt: skip
    """Write reads `first` to `last`, counted from 0, and return the number of bytes.

    The random streams of all reads derive from the number in `key`. `scratch` has two rows for the
    longest read. This call adds to the tally: counts of events, then of bases and of forward reads.
    """
    lengths, runs = platform.lengths, origin.runs
    letters, qualities = scratch[0], scratch[1]
    all_bases = np.uint64(origin.run_offsets[-1])
    end = 0
    for number in range(first, last):
        state = scramble_compiled(key[0] + np.uint64(number) * GAMMA)
        state += GAMMA
        length = _draw_length(scramble_compiled(state), lengths)
        available = 0
        # Too near to the end of a run there is no read: another place is drawn.
        while available < lengths[MINIMUM]:
            state += GAMMA
            bits = scramble_compiled(state)
            forward = (bits & np.uint64(1)) == 0
            place: Scalar = np.int64((bits >> HALF) * all_bases >> HALF)
            run = _interval_of(place, origin.run_offsets)
            begin = runs[run, 0] + place - origin.run_offsets[run]
            available = runs[run, 1] - begin if forward else begin - runs[run, 0] + 1
        read = _Read(number, state, begin, forward, available, min(length, available))
        end = _append_read(read, origin, platform, letters, qualities, out, end, tally)
    return end


@jit
def write_pairs(
    key: UInt64Array, first: int, last: int, origin: Origin, platform: Platform,
    scratch: ByteArray, out: ByteArray, mates: ByteArray, ends: Int64Array, tally: Int64Array,
) -> None:  # fmt: skip
    """Write pairs `first` to `last`, counted from 0: the ends of templates, towards each other.

    Parameters
    ----------
    key, first, last, origin, platform, scratch, tally
        As for `write_reads`. Each run holds the longest template.
    out, mates : ndarray, dtype=uint8
        Output: the text of first mates, and that of second ones.
    ends : ndarray, dtype=int64, shape=(2,)
        Output: the bytes of both.
    """
    lengths, runs = platform.lengths, origin.runs
    letters, qualities = scratch[0], scratch[1]
    all_bases = np.uint64(origin.run_offsets[-1])
    for number in range(first, last):
        state = scramble_compiled(key[0] + np.uint64(number) * GAMMA)
        state += GAMMA
        length = _draw_length(scramble_compiled(state), lengths)
        state += GAMMA
        template = _draw_length(scramble_compiled(state), platform.templates)
        available = 0
        while available < template:
            state += GAMMA
            bits = scramble_compiled(state)
            is_first_forward = (bits & np.uint64(1)) == 0
            place: Scalar = np.int64((bits >> HALF) * all_bases >> HALF)
            run = _interval_of(place, origin.run_offsets)
            begin = runs[run, 0] + place - origin.run_offsets[run]
            available = runs[run, 1] - begin
        # Each mate has a stream of its own: the bits of two states that differ so are unlike.
        for mate in range(2):
            is_forward = is_first_forward == (mate == 0)
            start = begin if is_forward else begin + template - 1
            own = state if mate == 0 else ~state
            read = _Read(number, own, start, is_forward, template, length)
            text = out if mate == 0 else mates
            ends[mate] = _append_read(
                read, origin, platform, letters, qualities, text, ends[mate], tally
            )
