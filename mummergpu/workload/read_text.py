"""Compiled loops that draw reads and pairs, and write them as FASTQ or FASTA."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import inline, jit
from mummergpu.workload.error_profiles import (
    MAXIMUM,
    MINIMUM,
)
from mummergpu.workload.read_sequencing import (
    IntArray,
    Scalar,
    draw_length,
    interval_of,
    sequence_fragment,
)
from mummergpu.workload.splitmix import (
    GAMMA,
    HALF,
    BitArray,
    scramble_compiled,
)

# Indices in the tally, after the six events that can happen at a base.
BASES_READ, READS_FORWARD = 6, 7

_RECORD: Final = np.frombuffer(b" record=", dtype=np.uint8)
_POSITION: Final = np.frombuffer(b" pos=", dtype=np.uint8)
_SPAN: Final = np.frombuffer(b" span=", dtype=np.uint8)
_FORWARD_STRAND: Final = np.frombuffer(b" strand=+\n", dtype=np.uint8)
_REVERSE_STRAND: Final = np.frombuffer(b" strand=-\n", dtype=np.uint8)
_PLUS: Final = np.frombuffer(b"\n+\n", dtype=np.uint8)
_LINE_END: Final = ord("\n")


@inline
def _append_number(number: Scalar, out: ByteArray, end: Scalar) -> Scalar:
    """Write a number in decimal, and return the new end of the text.

    Parameters
    ----------
    number : int
        The number, at least 0.
    out : ndarray, dtype=uint8
        Output: the text.
    end : int
        Where the text ends before this call.

    Returns
    -------
    int
        Where the text ends after this call.
    """
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
    """Copy bytes, and return the new end of the text.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        The bytes to copy from.
    begin : int
        Where the copied bytes begin.
    stop : int
        Where the copied bytes end.
    out : ndarray, dtype=uint8
        Output: the text.
    end : int
        Where the text ends before this call.

    Returns
    -------
    int
        Where the text ends after this call.
    """
    for place in range(begin, stop):
        out[end] = text[place]
        end += 1
    return end


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
    errors: BitArray
    homopolymer: BitArray
    prefix: ByteArray
    has_qualities: bool


class _Read(NamedTuple):
    """A read to be: its number, its state of the random stream, and where it begins."""

    number: Scalar
    state: Scalar
    begin: Scalar
    is_forward: Scalar
    available: Scalar
    length: Scalar


@inline
def _append_read(
    read: _Read, origin: Origin, platform: Platform, letters: ByteArray, qualities: ByteArray,
    out: ByteArray, end: Scalar, tally: IntArray,
) -> Scalar:  # fmt: skip
    """Sequence a read, write it behind `end`, and return where the text ends then."""
    span = sequence_fragment(
        read.state, origin.codes, read.begin, 1 if read.is_forward else -1, read.available,
        read.length, platform.errors, platform.homopolymer, letters, qualities, tally,
    )  # fmt: skip
    tally[BASES_READ] += read.length
    tally[READS_FORWARD] += read.is_forward
    end = _append(platform.prefix, 0, platform.prefix.size, out, end)
    end = _append_number(read.number + 1, out, end)
    if platform.has_qualities:
        leftmost = read.begin if read.is_forward else read.begin - span + 1
        record = interval_of(leftmost, origin.record_bounds)
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
    key: np.uint64, first: int, last: int, origin: Origin, platform: Platform, out: ByteArray,
    tally: IntArray,
) -> int:  # fmt: skip
    """Write reads `first` to `last`, counted from 0, and return the number of bytes.

    Parameters
    ----------
    key : uint64
        The key that the random streams of all reads derive from.
    first, last : int
        The half-open range of reads.
    origin, platform
        What is read, and how.
    out : ndarray, dtype=uint8
        Output: the text.
    tally : ndarray, dtype=int64
        Counts of events, then of bases and of forward reads; this call adds to them.
    """
    lengths, runs = platform.lengths, origin.runs
    letters = np.empty(lengths[MAXIMUM], dtype=np.uint8)
    qualities = np.empty(lengths[MAXIMUM], dtype=np.uint8)
    all_bases = np.uint64(origin.run_offsets[-1])
    end = 0
    for number in range(first, last):
        state = scramble_compiled(key + np.uint64(number) * GAMMA)
        state += GAMMA
        length = draw_length(scramble_compiled(state), lengths)
        available = 0
        # Too near to the end of a run there is no read: another place is drawn.
        while available < lengths[MINIMUM]:
            state += GAMMA
            bits = scramble_compiled(state)
            forward = (bits & np.uint64(1)) == 0
            place: Scalar = np.int64((bits >> HALF) * all_bases >> HALF)
            run = interval_of(place, origin.run_offsets)
            begin = runs[run, 0] + place - origin.run_offsets[run]
            available = runs[run, 1] - begin if forward else begin - runs[run, 0] + 1
        read = _Read(number, state, begin, forward, available, min(length, available))
        end = _append_read(read, origin, platform, letters, qualities, out, end, tally)
    return end


@jit
def write_pairs(
    key: np.uint64, first: int, last: int, origin: Origin, platform: Platform, out: ByteArray,
    mates: ByteArray, ends: IntArray, tally: IntArray,
) -> None:  # fmt: skip
    """Write pairs `first` to `last`, counted from 0: the ends of templates, towards each other.

    Parameters
    ----------
    key, first, last, origin, platform, tally
        As for `write_reads`. Each run holds the longest template.
    out, mates : ndarray, dtype=uint8
        Output: the text of first mates, and that of second ones.
    ends : ndarray, dtype=int64, shape=(2,)
        Output: the bytes of both.
    """
    lengths, runs = platform.lengths, origin.runs
    letters = np.empty(lengths[MAXIMUM], dtype=np.uint8)
    qualities = np.empty(lengths[MAXIMUM], dtype=np.uint8)
    all_bases = np.uint64(origin.run_offsets[-1])
    for number in range(first, last):
        state = scramble_compiled(key + np.uint64(number) * GAMMA)
        state += GAMMA
        length = draw_length(scramble_compiled(state), lengths)
        state += GAMMA
        template = draw_length(scramble_compiled(state), platform.templates)
        available = 0
        while available < template:
            state += GAMMA
            bits = scramble_compiled(state)
            is_first_forward = (bits & np.uint64(1)) == 0
            place: Scalar = np.int64((bits >> HALF) * all_bases >> HALF)
            run = interval_of(place, origin.run_offsets)
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
