"""Make synthetic references: random bases with repeats, tandem arrays and gaps."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.workload.declaration import (
    Gaps,
    Genome,
    Repeats,
    Satellites,
    Segments,
    Tandems,
)
from mummergpu.workload.splitmix import HALF, LOW_HALF, RandomStream, threshold

_BLOCK: Final = 1 << 20


def synthesize(genome: Genome, seed: int, name: str) -> CodeArray:
    """Return a synthetic reference, of which gaps and the borders of records are breaks.

    Workloads of other names differ, even with the same seed. Each kind of element has its own
    random stream. Elements overwrite the bases that they are laid over, so the reference has the
    declared length.
    """
    codes = np.empty(genome.length, dtype=np.uint8)
    background = RandomStream(seed, name, "background")
    for begin in range(0, codes.size, _BLOCK):
        block = codes[begin : begin + _BLOCK]
        block[:] = _random_bases(block.size, genome.gc, background)
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


def _random_bases(count: int, gc: float, stream: RandomStream) -> CodeArray:
    bits = stream.bits(count)
    either = (bits >> HALF & np.uint64(1)).astype(np.uint8)
    is_gc = (bits & LOW_HALF) < np.uint64(threshold(gc))
    # C and G are 1 and 2, A and T are 0 and 3.
    return np.where(is_gc, either + np.uint8(1), either * np.uint8(3))


def record_lengths(genome: Genome) -> list[int]:
    """Return the bases of each record, without the break behind it.

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
    left = repeats.share * codes.size
    while left > 0:
        copy = families[stream.between(0, len(families) - 1)]
        if repeats.is_cut:
            # The less of two draws: few copies are nearly whole.
            kept = min(stream.between(1, copy.size), stream.between(1, copy.size))
            copy = copy[copy.size - kept :]
        _lay(codes, copy, repeats.divergence, stream)
        left -= copy.size


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
