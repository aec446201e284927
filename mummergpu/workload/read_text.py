"""A compiled loop that draws reads and writes them as FASTQ or FASTA."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.runtime.arrays import ByteArray
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


@jit
def write_reads(
    key: np.uint64, first: int, last: int, codes: ByteArray, record_bounds: IntArray,
    names: ByteArray, name_offsets: IntArray, runs: IntArray, run_offsets: IntArray,
    lengths: IntArray, errors: BitArray, homopolymer: BitArray,
    prefix: ByteArray, has_qualities: bool, out: ByteArray, tally: IntArray,
) -> int:  # fmt: skip
    """Write reads `first` to `last` as FASTQ or FASTA, and return the number of bytes.

    Parameters
    ----------
    key : uint64
        The key that the random streams of all reads derive from.
    first, last : int
        The half-open range of reads, counted from 0.
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
    lengths : ndarray, dtype=int64
        The result of `error_profiles.length_table`.
    errors : ndarray, dtype=uint64, shape=(BINS, n)
        The result of `error_profiles.error_table`.
    homopolymer : ndarray, dtype=uint64
        The chance that a run of equal bases is called with a wrong length, in units of 2**-32,
        by the length of the run; empty for platforms without such errors.
    prefix : ndarray, dtype=uint8
        The bytes at the start of each header.
    has_qualities : bool
        True for FASTQ, False for FASTA.
    out : ndarray, dtype=uint8
        Output: the text.
    tally : ndarray, dtype=int64
        Counts of events, then of bases and of forward reads; this call adds to them.

    Returns
    -------
    int
        The number of bytes of the text.
    """
    letters = np.empty(lengths[MAXIMUM], dtype=np.uint8)
    qualities = np.empty(lengths[MAXIMUM], dtype=np.uint8)
    all_bases = np.uint64(run_offsets[-1])
    end = 0
    for read in range(first, last):
        state = scramble_compiled(key + np.uint64(read) * GAMMA)
        state += GAMMA
        length = draw_length(scramble_compiled(state), lengths)
        available = 0
        while available < lengths[MINIMUM]:
            state += GAMMA
            bits = scramble_compiled(state)
            forward = (bits & np.uint64(1)) == 0
            place: Scalar = np.int64((bits >> HALF) * all_bases >> HALF)
            run = interval_of(place, run_offsets)
            begin = runs[run, 0] + place - run_offsets[run]
            available = runs[run, 1] - begin if forward else begin - runs[run, 0] + 1
        length = min(length, available)
        span = sequence_fragment(
            state, codes, begin, 1 if forward else -1, available, length,
            errors, homopolymer, letters, qualities, tally,
        )  # fmt: skip
        tally[BASES_READ] += length
        tally[READS_FORWARD] += forward
        end = _append(prefix, 0, prefix.size, out, end)
        end = _append_number(read + 1, out, end)
        if has_qualities:
            leftmost = begin if forward else begin - span + 1
            record = interval_of(leftmost, record_bounds)
            end = _append(_RECORD, 0, _RECORD.size, out, end)
            end = _append(names, name_offsets[record], name_offsets[record + 1], out, end)
            end = _append(_POSITION, 0, _POSITION.size, out, end)
            end = _append_number(leftmost - record_bounds[record] + 1, out, end)
            end = _append(_SPAN, 0, _SPAN.size, out, end)
            end = _append_number(span, out, end)
            strand = _FORWARD_STRAND if forward else _REVERSE_STRAND
            end = _append(strand, 0, strand.size, out, end)
            end = _append(letters, 0, length, out, end)
            end = _append(_PLUS, 0, _PLUS.size, out, end)
            end = _append(qualities, 0, length, out, end)
        else:
            out[end] = _LINE_END
            end = _append(letters, 0, length, out, end + 1)
        out[end] = _LINE_END
        end += 1
    return end
