"""Make synthetic references, random bases with repeats, tandem arrays and gaps, and copies."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.runtime.arrays import Int64Array, UInt64Array
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.runtime.processors import processor_count
from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.workload.declaration import (
    Copy,
    Gaps,
    Genome,
    Repeats,
    Satellites,
    Segments,
    Tandems,
)
from mummergpu.workload.splitmix import (
    GAMMA,
    HALF,
    LOW_HALF,
    RandomStream,
    scramble_compiled,
    threshold,
)

_BLOCK: Final = 1 << 20


def synthesize(genome: Genome, seed: int, name: str) -> CodeArray:
    """Return a synthetic reference, of which gaps and the borders of records are breaks.

    Workloads of other names differ, even with the same seed. Each kind of element has its own
    random stream. Elements overwrite the bases that they are laid over, so the reference has the
    declared length.
    """
    codes = np.empty(genome.length, dtype=np.uint8)
    _lay_background(codes, genome.gc, RandomStream(seed, name, "background"))
    for number, repeats in enumerate(genome.repeats):
        _lay_repeats(codes, repeats, genome.gc, RandomStream(seed, name, f"repeats {number}"))
    for number, segments in enumerate(genome.segments):
        _lay_segments(codes, segments, RandomStream(seed, name, f"segments {number}"))
    for number, tandems in enumerate(genome.tandems):
        _lay_tandems(codes, tandems, genome.gc, RandomStream(seed, name, f"tandems {number}"))
    for number, satellites in enumerate(genome.satellites):
        _lay_satellites(
            codes, satellites, genome.gc, RandomStream(seed, name, f"satellites {number}")
        )
    for number, gaps in enumerate(genome.gaps):
        _lay_gaps(codes, gaps, RandomStream(seed, name, f"gaps {number}"))
    codes[(np.cumsum(record_lengths(genome)) + np.arange(genome.records))[:-1]] = BREAK
    return codes


def _lay_background(codes: CodeArray, gc: float, stream: RandomStream) -> None:
    """Make random bases of all codes, in several threads: numpy computes without Python's lock."""
    blocks = [codes[begin : begin + _BLOCK] for begin in range(0, codes.size, _BLOCK)]
    streams = [stream.taken(block.size) for block in blocks]

    def fill(block: CodeArray, own: RandomStream) -> None:
        block[:] = _random_bases(block.size, gc, own)

    with ThreadPoolExecutor(processor_count()) as executor:
        for _ in executor.map(fill, blocks, streams):
            pass


def _random_bases(count: int, gc: float, stream: RandomStream) -> CodeArray:
    bits = stream.bits(count)
    either = (bits >> HALF & np.uint64(1)).astype(np.uint8)
    is_gc = (bits & LOW_HALF) < np.uint64(threshold(gc))
    # C and G are 1 and 2, A and T are 0 and 3.
    return np.where(is_gc, either + np.uint8(1), either * np.uint8(3))


def record_lengths(genome: Genome) -> list[int]:
    """Return the bases of each record, without the break after it.

    The first record is three times as long as the last.
    """
    last = genome.records - 1
    weights = np.array([3 * max(1, last) - 2 * number for number in range(genome.records)])
    bases = genome.length - last
    ends = [int(bases * done // weights.sum()) for done in np.cumsum(weights).tolist()]
    return [end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def _lay_repeats(codes: CodeArray, repeats: Repeats, gc: float, stream: RandomStream) -> None:
    if repeats.share:
        _lay_share(codes, repeats, gc, stream)
        return
    for _ in range(repeats.families):
        consensus = _random_bases(stream.between(*repeats.length), gc, stream)
        for _ in range(stream.between(*repeats.copies)):
            _lay(codes, consensus, repeats.divergence, stream)


def _lay_share(codes: CodeArray, repeats: Repeats, gc: float, stream: RandomStream) -> None:
    """Lay copies of random families until they have the declared share of the genome."""
    families = [
        _random_bases(stream.between(*repeats.length), gc, stream) for _ in range(repeats.families)
    ]
    rates = threshold(repeats.divergence[0]), threshold(repeats.divergence[1])
    bounds = np.append(0, np.cumsum([family.size for family in families])).astype(np.int64)
    state = np.array([stream.state], dtype=np.uint64)
    left = math.ceil(repeats.share * codes.size)
    _lay_copies(codes, np.concatenate(families), bounds, repeats.is_cut, rates, left, state)
    stream.state = int(state[0])


@inline
def _between(state: np.uint64, low: int, high: int) -> int:
    """Return a number from `low` to `high`, as `RandomStream.between` does."""
    upper_half = scramble_compiled(state) >> HALF
    return low + as_int64(upper_half * np.uint64(high - low + 1) >> HALF)


@jit
def _lay_copies(
    codes: CodeArray,
    families: CodeArray,
    bounds: Int64Array,
    is_cut: bool,
    rates: tuple[int, int],
    left: int,
    stream: UInt64Array,
) -> None:
    """Lay copies of families until they have `left` bases, and advance the state of the stream.

    It does the same as `_lay` for each copy, for the millions of copies of a large genome.
    """
    state = stream[0]
    while left > 0:
        state += GAMMA
        family = _between(state, 0, bounds.size - 2)
        begin, size = bounds[family], bounds[family + 1] - bounds[family]
        if is_cut:
            # The smaller of two draws: few copies are nearly whole.
            kept = min(_between(state + GAMMA, 1, size), _between(state + GAMMA + GAMMA, 1, size))
            state += GAMMA + GAMMA
            begin, size = begin + size - kept, kept
        state += GAMMA
        rate = np.uint64(_between(state, rates[0], rates[1]))
        # The draws of the bases come before those of the orientation and the place.
        behind = state + np.uint64(size) * GAMMA
        is_turned = _between(behind + GAMMA, 0, 1) == 1
        to = _between(behind + GAMMA + GAMMA, 0, codes.size - size)
        for place in range(size):
            state += GAMMA
            bits = scramble_compiled(state)
            base = np.uint64(families[begin + place])
            if bits & LOW_HALF < rate:
                base = (base + np.uint64(1) + (bits >> HALF) % np.uint64(3)) & np.uint64(3)
            if is_turned:
                codes[to + size - 1 - place] = np.uint64(3) - base
            else:
                codes[to + place] = base
        state += GAMMA + GAMMA
        left -= size
    stream[0] = state


def _lay_segments(codes: CodeArray, segments: Segments, stream: RandomStream) -> None:
    left = segments.share * codes.size
    while left > 0:
        length = stream.between(*segments.length)
        begin = stream.between(0, codes.size - length)
        _lay(codes, codes[begin : begin + length].copy(), segments.divergence, stream)
        left -= length


def _lay_satellites(
    codes: CodeArray, satellites: Satellites, gc: float, stream: RandomStream
) -> None:
    monomer = _random_bases(satellites.monomer, gc, stream)
    left = satellites.share * codes.size
    while left > 0:
        monomers = [
            _diverged(monomer, satellites.difference, stream) for _ in range(satellites.monomers)
        ]
        array = np.tile(np.concatenate(monomers), stream.between(*satellites.units))
        _lay(codes, array, satellites.divergence, stream)
        left -= array.size


def _lay_tandems(codes: CodeArray, tandems: Tandems, gc: float, stream: RandomStream) -> None:
    for _ in range(tandems.arrays):
        unit = _random_bases(stream.between(*tandems.unit), gc, stream)
        _lay(codes, np.tile(unit, stream.between(*tandems.copies)), tandems.divergence, stream)


def _lay_gaps(codes: CodeArray, gaps: Gaps, stream: RandomStream) -> None:
    for _ in range(gaps.runs):
        length = stream.between(*gaps.length)
        begin = stream.between(0, codes.size - length)
        codes[begin : begin + length] = BREAK


def _lay(
    codes: CodeArray, element: CodeArray, divergence: tuple[float, float], stream: RandomStream
) -> None:
    """Write a diverged copy of an element over the genome, in a random orientation."""
    copy = _diverged(element, divergence, stream)
    if stream.between(0, 1):
        copy = np.uint8(3) - copy[::-1]
    begin = stream.between(0, codes.size - copy.size)
    codes[begin : begin + copy.size] = copy


def _diverged(
    element: CodeArray, divergence: tuple[float, float], stream: RandomStream
) -> CodeArray:
    """Return a copy of an element with a random rate of substitutions."""
    rate = stream.between(threshold(divergence[0]), threshold(divergence[1]))
    bits = stream.bits(element.size)
    other = element + np.uint8(1) + (bits >> HALF) % np.uint64(3)
    copy = np.where((bits & LOW_HALF) < np.uint64(rate), other & np.uint64(3), element)
    return copy.astype(np.uint8)


def diverge(
    reference: Reference, copy: Copy, seed: int, name: str
) -> tuple[Reference, dict[str, int]]:
    """Return a copy of a reference with differences of one base each.

    Workloads of other names differ, even with the same seed.

    Returns
    -------
    copy : Reference
        The diverged copy. It has the same number of records; their names get ``.copy`` at the
        end, and breaks stay.
    counts : dict of str to int
        The bases of the copy (Ns included), and the differences of each kind.
    """
    stream = RandomStream(seed, name, "copy")
    counts = np.zeros(3, dtype=np.int64)
    pieces: list[CodeArray] = []
    lengths = []
    for start, length in zip(reference.record_starts, reference.record_lengths, strict=True):
        copied = 0
        for begin in range(int(start), int(start + length), _BLOCK):
            codes = reference.codes[begin : min(begin + _BLOCK, int(start + length))]
            pieces.append(_diverged_piece(codes, copy, stream, counts))
            copied += pieces[-1].size
        pieces.append(np.array([BREAK], dtype=np.uint8))
        lengths.append(copied)
    record_lengths = np.array(lengths, dtype=np.int64)
    starts = np.cumsum(np.append(0, record_lengths[:-1] + 1)).astype(np.int64)
    names = tuple(record + b".copy" for record in reference.names)
    made = Reference("copy.fa", np.concatenate(pieces)[:-1], starts, record_lengths, names)
    kinds = zip(("substitutions", "insertions", "deletions"), counts.tolist(), strict=True)
    return made, {"bases": int(record_lengths.sum()), **dict(kinds)}


def _diverged_piece(
    codes: CodeArray, copy: Copy, stream: RandomStream, counts: np.ndarray
) -> CodeArray:
    """Return a piece with differences, and add their numbers to `counts`, by kind."""
    bits = stream.bits(codes.size)
    chance = bits >> HALF
    kinds = np.cumsum([threshold(copy.substitution), threshold(copy.insertion)])
    bounds = np.append(kinds, kinds[-1] + threshold(copy.deletion)).astype(np.uint64)
    # 0 is a substitution, 1 an insertion, 2 a deletion, and 3 no difference.
    kind = np.searchsorted(bounds, bits & LOW_HALF, side="right")
    kind[codes == BREAK] = 3
    counts += np.bincount(kind, minlength=4)[:3]
    other = (codes + np.uint8(1) + (chance % np.uint64(3)).astype(np.uint8)) & np.uint8(3)
    called = np.where(kind == 0, other, codes)
    times = np.array([1, 2, 0, 1])[kind]
    made = np.repeat(called, times)
    made[np.cumsum(times)[kind == 1] - 1] = (chance[kind == 1] & np.uint64(3)).astype(np.uint8)
    return made
