"""Reads: fragments of a reference, with a platform's lengths, errors and qualities.

Read number n has a random stream of its own, so it is the same in a small set as in a
large one. A fragment lies within a run of bases: it holds no N of the reference and
crosses no record border. Every N of a read is one that the platform did not call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mummergpu.errors import InputError
from mummergpu.input.reference import Reference
from mummergpu.runtime.jit import compiled, inlined
from mummergpu.sequence.codes import BASES, BREAK
from mummergpu.workload.declaration import Reads
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
    error_table,
    homopolymer_table,
    length_table,
)
from mummergpu.workload.splitmix import (
    GAMMA,
    HALF,
    LOW_HALF,
    BitArray,
    scramble_compiled,
    stream_key,
)

IntArray = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]
Scalar = Any
"""A whole number inside compiled code, of the width that numba finds."""

# Places in the tally, behind the six things that can happen at a base.
_BASES, _FORWARD = 6, 7

_LOWEST_QUALITY: Final = 2
_QUALITY_ZERO: Final = ord("!")
_BLOCK_BYTES: Final = 4 << 20
_MAXIMUM_BASES: Final = 1 << 32
_16_BITS: Final = np.uint64(0xFFFF)

_LETTERS: Final = np.frombuffer(BASES, dtype=np.uint8)
_RECORD: Final = np.frombuffer(b" record=", dtype=np.uint8)
_POSITION: Final = np.frombuffer(b" pos=", dtype=np.uint8)
_SPAN: Final = np.frombuffer(b" span=", dtype=np.uint8)
_FORWARD_STRAND: Final = np.frombuffer(b" strand=+\n", dtype=np.uint8)
_REVERSE_STRAND: Final = np.frombuffer(b" strand=-\n", dtype=np.uint8)
_PLUS: Final = np.frombuffer(b"\n+\n", dtype=np.uint8)
_LINE_END: Final = ord("\n")


@dataclass
class Tally:
    """What a set of reads holds.

    Attributes
    ----------
    counts : ndarray, dtype=int64, shape=(8,)
        How often each thing happened at a base, the bases, and the reads on the forward
        strand.
    """

    counts: IntArray = field(default_factory=lambda: np.zeros(8, dtype=np.int64))

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        counts = self.counts.tolist()
        return {
            "bases": counts[_BASES],
            "forward_reads": counts[_FORWARD],
            "substitutions": counts[SUBSTITUTION],
            "insertions": counts[INSERTION] + counts[REPETITION],
            "deletions": counts[DELETION],
            "unknown_bases": counts[UNKNOWN],
        }


def sequence_reads(
    reference: Reference, reads: Reads, count: int, name: str, seed: int, tally: Tally
) -> Iterator[memoryview]:
    """Draw reads and write them as text: FASTQ, or FASTA if they have no qualities.

    Parameters
    ----------
    reference : Reference
        What is sequenced.
    reads : Reads
        How.
    count : int
        The number of reads.
    name : str
        The reads are called ``name.1``, ``name.2`` and so on.
    seed : int
        Any whole number.
    tally : Tally
        Counts what is made, block by block.

    Yields
    ------
    memoryview
        The text of some reads, valid until the next is asked for. In FASTQ the description
        of a read tells the truth: the record, the leftmost position (1-based) and the span
        of its fragment on the forward strand, and its own strand.

    Raises
    ------
    InputError
        If no run of bases of the reference is as long as the shortest read, or the bases
        are too many for the 32-bit numbers that choose among them.
    """
    runs = base_runs(reference)
    runs = runs[runs[:, 1] - runs[:, 0] >= reads.length_minimum]
    if not runs.size:
        raise InputError(
            f"no {reads.length_minimum} bases in a row to take a read from", reference.path
        )
    run_offsets = _offsets(runs[:, 1] - runs[:, 0])
    if run_offsets[-1] > _MAXIMUM_BASES:
        raise InputError(f"more than {_MAXIMUM_BASES} bases to choose from", reference.path)
    has_qualities = bool(reads.quality)
    mark = "@" if has_qualities else ">"
    prefix = np.frombuffer(bytearray(f"{mark}{name}.".encode()), dtype=np.uint8)
    record_bounds = np.append(reference.record_starts, reference.codes.size + 1)
    names = np.frombuffer(bytearray(b"".join(reference.names) + b"\n"), dtype=np.uint8)
    name_lengths = [len(record) for record in reference.names]
    name_offsets = _offsets(name_lengths)
    lengths, errors, homopolymer = length_table(reads), error_table(reads), homopolymer_table(reads)
    key = np.uint64(stream_key(seed, name, "reads"))
    # Four numbers of at most 20 digits, the fixed words, and four line ends.
    read_bytes = 2 * reads.length_maximum + prefix.size + max(name_lengths) + 128
    block_reads = max(1, _BLOCK_BYTES // read_bytes)
    buffer = np.empty(block_reads * read_bytes, dtype=np.uint8)
    for first in range(0, count, block_reads):
        last = min(first + block_reads, count)
        size = _write_reads(
            key, first, last, reference.codes, record_bounds, names, name_offsets,
            runs, run_offsets, lengths, errors, homopolymer, prefix, has_qualities, buffer,
            tally.counts,
        )  # fmt: skip
        yield buffer[:size].data


def _offsets(lengths: npt.ArrayLike) -> IntArray:
    return np.append(0, np.cumsum(lengths)).astype(np.int64)


def base_runs(reference: Reference) -> IntArray:
    """Return where the runs of bases without a break lie.

    Parameters
    ----------
    reference : Reference
        Its records are joined by breaks, so no run crosses a border.

    Returns
    -------
    ndarray, dtype=int64, shape=(n_runs, 2)
        Begin and end of each, in the joined reference.
    """
    is_base = np.zeros(reference.codes.size + 2, dtype=bool)
    is_base[1:-1] = reference.codes != BREAK
    return np.flatnonzero(is_base[1:] != is_base[:-1]).astype(np.int64).reshape(-1, 2)


@inlined
def _draw_length(bits: Scalar, lengths: IntArray) -> Scalar:
    """Return a read length: four dice make the bell curve."""
    total = (bits & _16_BITS) + (bits >> np.uint64(16) & _16_BITS)
    total += (bits >> HALF & _16_BITS) + (bits >> np.uint64(48))
    away = (np.int64(total) - 2 * 0xFFFF) * lengths[SCALE] >> 32
    return max(lengths[MINIMUM], min(lengths[MAXIMUM], lengths[MEAN] + away))


@inlined
def _interval_of(place: Scalar, bounds: IntArray) -> Scalar:
    """Return the n for which `place` lies from ``bounds[n]`` to before ``bounds[n + 1]``."""
    low = 0
    high = bounds.size - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if bounds[middle] <= place:
            low = middle
        else:
            high = middle
    return low


@inlined
def _run_event(
    bits: Scalar,
    codes: ByteArray,
    position: Scalar,
    step: Scalar,
    left: Scalar,
    homopolymer: BitArray,
) -> Scalar:
    """Return how the run of equal bases from `position` on is called."""
    most = min(left, homopolymer.size)
    length = 1
    while length < most and codes[position + length * step] == codes[position]:
        length += 1
    if (bits & LOW_HALF) >= homopolymer[length - 1]:
        return RIGHT
    return REPETITION if bits >> np.uint64(63) else DELETION


@inlined
def _base_event(bits: Scalar, thresholds: BitArray) -> Scalar:
    """Return how a base is called."""
    draw = bits & LOW_HALF
    if draw >= thresholds[SUBSTITUTION]:
        return RIGHT
    event = UNKNOWN
    while draw >= thresholds[event]:
        event += 1
    return event


@inlined
def _called_letter(base: Scalar, event: Scalar, bits: Scalar) -> Scalar:
    """Return the code that is read where `base` stands."""
    chance = np.int64(bits >> HALF & _16_BITS)
    if event == UNKNOWN:
        return BREAK
    if event == INSERTION:
        return chance & 3
    if event == SUBSTITUTION:
        return (base + 1 + (chance * 3 >> 16)) & 3
    return base


@inlined
def _called_quality(mean: Scalar, event: Scalar, bits: Scalar) -> Scalar:
    """Return the quality byte: about the mean if right, about half of it if not."""
    quality: Scalar = np.int64(mean) + np.int64(bits >> np.uint64(61)) - 4
    if event == UNKNOWN:
        quality = 0
    elif event != RIGHT:
        quality >>= 1
    return _QUALITY_ZERO + max(quality, _LOWEST_QUALITY)


@inlined
def _sequence_fragment(
    state: Scalar, codes: ByteArray, begin: Scalar, step: Scalar, available: Scalar, length: Scalar,
    errors: BitArray, homopolymer: BitArray, letters: ByteArray, qualities: ByteArray,
    tally: IntArray,
) -> Scalar:  # fmt: skip
    """Read `length` bases from `begin` on; return how many of the reference they took."""
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


@inlined
def _append_number(number: Scalar, out: ByteArray, end: Scalar) -> Scalar:
    """Write a number in decimal; return the new end of the text."""
    digits = 1
    rest = number // 10
    while rest:
        digits += 1
        rest //= 10
    for place in range(end + digits - 1, end - 1, -1):
        out[place] = 48 + number % 10
        number //= 10
    return end + digits


@inlined
def _append(text: ByteArray, begin: Scalar, stop: Scalar, out: ByteArray, end: Scalar) -> Scalar:
    """Copy bytes; return the new end of the text."""
    for place in range(begin, stop):
        out[end] = text[place]
        end += 1
    return end


@compiled
def _write_reads(
    key: np.uint64, first: int, last: int, codes: ByteArray, record_bounds: IntArray,
    names: ByteArray, name_offsets: IntArray, runs: IntArray, run_offsets: IntArray,
    lengths: IntArray, errors: BitArray, homopolymer: BitArray,
    prefix: ByteArray, has_qualities: bool, out: ByteArray, tally: IntArray,
) -> int:  # fmt: skip
    """Write reads `first` to `last` as FASTQ or FASTA; return the number of bytes."""
    letters = np.empty(lengths[MAXIMUM], dtype=np.uint8)
    qualities = np.empty(lengths[MAXIMUM], dtype=np.uint8)
    all_bases = np.uint64(run_offsets[-1])
    end = 0
    for read in range(first, last):
        state = scramble_compiled(key + np.uint64(read) * GAMMA)
        state += GAMMA
        length = _draw_length(scramble_compiled(state), lengths)
        available = 0
        while available < lengths[MINIMUM]:
            state += GAMMA
            bits = scramble_compiled(state)
            forward = (bits & np.uint64(1)) == 0
            place: Scalar = np.int64((bits >> HALF) * all_bases >> HALF)
            run = _interval_of(place, run_offsets)
            begin = runs[run, 0] + place - run_offsets[run]
            available = runs[run, 1] - begin if forward else begin - runs[run, 0] + 1
        length = min(length, available)
        span = _sequence_fragment(
            state, codes, begin, 1 if forward else -1, available, length,
            errors, homopolymer, letters, qualities, tally,
        )  # fmt: skip
        tally[_BASES] += length
        tally[_FORWARD] += forward
        end = _append(prefix, 0, prefix.size, out, end)
        end = _append_number(read + 1, out, end)
        if has_qualities:
            leftmost = begin if forward else begin - span + 1
            record = _interval_of(leftmost, record_bounds)
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
