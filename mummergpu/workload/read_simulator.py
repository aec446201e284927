"""Draw reads from a reference, with the lengths, errors and qualities of a platform.

Read number n has its own random stream, so it is the same in a small set as in a large one. A
fragment lies within a run of bases: it contains no N of the reference and crosses no record
border. So each N of a read is a base that the platform could not call. A declaration gives points
and rates, which become 32-bit thresholds for each of `BINS` equal parts of a read: the loops need
no floating-point numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mummergpu.errors import InputError
from mummergpu.input.reference import Reference
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt64Array
from mummergpu.runtime.jit import inline, jit
from mummergpu.runtime.ordered_map import ordered_results
from mummergpu.runtime.processors import processor_count
from mummergpu.sequence.codes import BASES, BREAK
from mummergpu.workload.declaration import Reads
from mummergpu.workload.splitmix import (
    GAMMA,
    HALF,
    LOW_HALF,
    scramble_compiled,
    stream_key,
    threshold,
)

BINS: Final = 256

_BLOCK_BYTES: Final = 4 << 20
_BLOCK_CODES: Final = 1 << 20
_MAXIMUM_BASES: Final = 1 << 32

# The events that can happen at a base. The first four are also the columns of their thresholds.
UNKNOWN, DELETION, INSERTION, SUBSTITUTION, REPETITION, RIGHT = range(6)
QUALITY: Final = 4
"""The column of the mean Phred quality."""

# Indices in the table of lengths.
MINIMUM, MAXIMUM, MEAN, SCALE = range(4)

_DICE_DEVIATION: Final = 37837.227
"""The standard deviation of the sum of four 16-bit random numbers."""


def error_table(reads: Reads) -> UInt64Array:
    """Return the thresholds of errors and the mean quality, for each part of a read: (BINS, 5).

    The thresholds of `UNKNOWN`, `DELETION`, `INSERTION` and `SUBSTITUTION` are cumulative. The
    quality is that of a correct base, and 0 for reads without qualities.
    """
    rates = [reads.unknown, reads.deletion, reads.insertion, reads.substitution]
    quality = [(x, round(phred)) for x, phred in reads.quality] or [(0.0, 0), (1.0, 0)]
    table = np.empty((BINS, 5), dtype=np.uint64)
    for part in range(BINS):
        total = 0
        for column, profile in enumerate(rates):
            total += _interpolate([(x, threshold(rate)) for x, rate in profile], part)
            table[part, column] = total
        table[part, QUALITY] = _interpolate(quality, part)
    return table


def _interpolate(points: list[tuple[float, int]], part: int) -> int:
    """Return the rounded height of a curve of straight lines, in the middle of a part."""
    place = (2 * part + 1) << 15
    scaled = [(round(x * (BINS << 16)), height) for x, height in points]
    left, right = next(pair for pair in pairwise(scaled) if place <= pair[1][0])
    run, rise = right[0] - left[0], right[1] - left[1]
    return left[1] + (2 * rise * (place - left[0]) + run) // (2 * run)


def homopolymer_table(reads: Reads) -> UInt64Array:
    """Return the thresholds for calling a run of 1, 2, 3... equal bases with a wrong length.

    There are none for platforms that read base by base.
    """
    return np.array([threshold(rate) for rate in reads.homopolymer], dtype=np.uint64)


def length_table(reads: Reads) -> Int64Array:
    """Return the numbers that read lengths are drawn from: `MINIMUM`, `MAXIMUM`, `MEAN`, `SCALE`.

    The scale is the factor in units of 2**-32 that turns the sum of four 16-bit random numbers into
    bases.
    """
    scale = round(reads.length_deviation * 2**32 / _DICE_DEVIATION)
    lengths = [reads.length_minimum, reads.length_maximum, round(reads.length_mean), scale]
    return np.array(lengths, dtype=np.int64)


def template_table(reads: Reads) -> Int64Array:
    """Return the numbers that the lengths of templates are drawn from, as `length_table` does.

    They lie within four standard deviations of their mean, and a template has a whole read.
    """
    mean, deviation = round(reads.template_mean), reads.template_deviation
    least = max(reads.length_maximum, round(mean - 4 * deviation))
    scale = round(deviation * 2**32 / _DICE_DEVIATION)
    return np.array([least, max(least, round(mean + 4 * deviation)), mean, scale], dtype=np.int64)


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
    """The source of reads: the records of the joined reference, and its runs of bases.

    `runs` are those of `base_runs`; `run_offsets` has the bases in all runs before each run.
    """

    codes: ByteArray
    record_bounds: Int64Array
    names: ByteArray
    name_offsets: Int64Array
    runs: Int64Array
    run_offsets: Int64Array


class Platform(NamedTuple):
    """The tables above, by which reads are drawn, and the beginning of their headers."""

    lengths: Int64Array
    templates: Int64Array
    errors: UInt64Array
    homopolymer: UInt64Array
    prefix: ByteArray
    has_qualities: bool


class _Read(NamedTuple):
    """A read to draw: its number, its state of the random stream, and where it begins.

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

    `lengths` is a table of `length_table`.
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
    """Return how the platform calls a base: one of the events.

    `thresholds` is a row of `error_table`.
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
    """Draw the letters and the qualities of a read; return the reference bases that it spans."""
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
    """Sequence a read, write it at `end`, and return the new end of the text."""
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
        # A place too near to the end of a run has no room for a read: another one is drawn.
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

    The parameters are those of `write_reads`; `out` and `mates` receive the text of first and of
    second mates, and `ends` the bytes of both. Each run holds the longest template.
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
        # Each mate has a stream of its own: SplitMix64 makes unlike bits of states that differ so.
        for mate in range(2):
            is_forward = is_first_forward == (mate == 0)
            start = begin if is_forward else begin + template - 1
            own = state if mate == 0 else ~state
            read = _Read(number, own, start, is_forward, template, length)
            text = out if mate == 0 else mates
            ends[mate] = _append_read(
                read, origin, platform, letters, qualities, text, ends[mate], tally
            )


@dataclass
class Tally:
    """Counts of the events, bases and forward reads in a set of reads."""

    counts: Int64Array = field(default_factory=lambda: np.zeros(8, dtype=np.int64))

    @property
    def bases(self) -> int:
        """The number of bases."""
        return int(self.counts[BASES_READ])

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        counts = self.counts.tolist()
        return {
            "bases": counts[BASES_READ],
            "forward_reads": counts[READS_FORWARD],
            "substitutions": counts[SUBSTITUTION],
            "insertions": counts[INSERTION] + counts[REPETITION],
            "deletions": counts[DELETION],
            "unknown_bases": counts[UNKNOWN],
        }


def sequence_reads(
    reference: Reference,
    reads: Reads,
    count: int,
    name: str,
    seed: int,
    tally: Tally,
    tell: Callable[[int], None] = lambda reads: None,
) -> Iterator[tuple[memoryview, ...]]:
    """Yield blocks of reads as text, FASTQ, or FASTA if they have no qualities; of pairs two texts.

    In FASTQ the header of a read gives its true origin: the record, the leftmost position (1-based)
    and the span of the fragment on the forward strand, and the strand of the read.

    Parameters
    ----------
    count : int
        The number of reads, or of pairs.
    name : str
        The name of the workload; the reads are called ``name.1``, ``name.2`` and so on.
    tell : callable
        Receives the number of reads whose text has been yielded and used.

    Raises
    ------
    InputError
        If no run of bases is as long as the shortest read or the longest template, or the reference
        has too many bases for the 32-bit random numbers that choose a position.
    """
    templates = template_table(reads)
    least = int(templates[MAXIMUM]) if reads.is_paired else reads.length_minimum
    runs = base_runs(reference)
    runs = runs[runs[:, 1] - runs[:, 0] >= least]
    if not runs.size:
        raise InputError(f"no {least} bases in a row to take a read from", reference.path)
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
    platform = Platform(
        length_table(reads), templates, error_table(reads), homopolymer_table(reads), prefix,
        has_qualities,
    )  # fmt: skip
    origin = Origin(reference.codes, record_bounds, names, name_offsets, runs, run_offsets)
    key = np.array([stream_key(seed, name, "reads")], dtype=np.uint64)
    # 128 bytes hold four numbers of at most 20 digits, the fixed words, and four line ends.
    read_bytes = 2 * reads.length_maximum + prefix.size + max(name_lengths) + 128
    block_reads = max(1, _BLOCK_BYTES // read_bytes)

    def drawn(first: int) -> tuple[tuple[memoryview, ...], Int64Array]:
        """Return the text of the reads of a block, and their counts."""
        last, counts = min(first + block_reads, count), np.zeros_like(tally.counts)
        buffer, mates = (np.empty((last - first) * read_bytes, dtype=np.uint8) for _ in range(2))
        scratch = np.empty((2, reads.length_maximum), dtype=np.uint8)
        if reads.is_paired:
            ends = np.zeros(2, np.int64)
            write_pairs(key, first, last, origin, platform, scratch, buffer, mates, ends, counts)
            return (buffer[: ends[0]].data, mates[: ends[1]].data), counts
        size = write_reads(key, first, last, origin, platform, scratch, buffer, counts)
        return (buffer[:size].data,), counts

    threads = processor_count()
    firsts = range(0, count, block_reads)
    with ThreadPoolExecutor(threads) as executor:
        blocks = ordered_results(executor, 2 * threads, firsts, drawn)
        with closing(blocks):
            for first, (text, counts) in zip(firsts, blocks, strict=True):
                tally.counts += counts
                yield text
                tell(min(first + block_reads, count))


def _offsets(lengths: npt.ArrayLike) -> Int64Array:
    return np.append(0, np.cumsum(lengths)).astype(np.int64)


def base_runs(reference: Reference) -> Int64Array:
    """Return where the runs of bases without a break begin and end: shape=(n_runs, 2).

    A break separates the records of the joined reference, so no run crosses a record border.
    """
    codes, borders, was_base = reference.codes, [], False
    for begin in range(0, codes.size, _BLOCK_CODES):
        is_base = codes[begin : begin + _BLOCK_CODES] != BREAK
        borders.append(begin + np.flatnonzero(np.diff(is_base, prepend=was_base)))
        was_base = bool(is_base[-1])
    if was_base:
        borders.append(np.array([codes.size]))
    return np.concatenate([np.empty(0, dtype=np.int64), *borders]).reshape(-1, 2)
