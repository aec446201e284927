"""Make synthetic references: random bases with repeats, tandem arrays and gaps."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.workload.declaration import Gaps, Genome, Repeats, Tandems
from mummergpu.workload.splitmix import HALF, LOW_HALF, Stream, threshold

_BLOCK: Final = 1 << 20


def synthesize(genome: Genome, seed: int, name: str) -> CodeArray:
    """Return a synthetic reference.

    Parameters
    ----------
    genome : Genome
        The declaration of the reference.
    seed : int
        Any whole number.
    name : str
        The name of the workload; workloads with the same seed still differ.

    Returns
    -------
    ndarray, dtype=uint8, shape=(genome.length,)
        Base codes; gaps are `codes.BREAK`.

    Notes
    -----
    Each kind of element has its own random stream. Elements overwrite the bases that they are
    laid over, so the reference has the declared length.
    """
    codes = np.empty(genome.length, dtype=np.uint8)
    background = Stream(seed, name, "background")
    for begin in range(0, codes.size, _BLOCK):
        block = codes[begin : begin + _BLOCK]
        block[:] = _random_bases(block.size, genome.gc, background)
    for number, repeats in enumerate(genome.repeats):
        _lay_repeats(codes, repeats, genome.gc, Stream(seed, name, f"repeats {number}"))
    for number, tandems in enumerate(genome.tandems):
        _lay_tandems(codes, tandems, genome.gc, Stream(seed, name, f"tandems {number}"))
    for number, gaps in enumerate(genome.gaps):
        _lay_gaps(codes, gaps, Stream(seed, name, f"gaps {number}"))
    return codes


def _random_bases(count: int, gc: float, stream: Stream) -> CodeArray:
    bits = stream.bits(count)
    either = (bits >> HALF & np.uint64(1)).astype(np.uint8)
    is_gc = (bits & LOW_HALF) < np.uint64(threshold(gc))
    # C and G are 1 and 2, A and T are 0 and 3.
    return np.where(is_gc, either + np.uint8(1), either * np.uint8(3))


def _lay_repeats(codes: CodeArray, repeats: Repeats, gc: float, stream: Stream) -> None:
    for _ in range(repeats.families):
        consensus = _random_bases(stream.between(*repeats.length), gc, stream)
        for _ in range(stream.between(*repeats.copies)):
            _lay(codes, consensus, repeats.divergence, stream)


def _lay_tandems(codes: CodeArray, tandems: Tandems, gc: float, stream: Stream) -> None:
    for _ in range(tandems.arrays):
        unit = _random_bases(stream.between(*tandems.unit), gc, stream)
        _lay(codes, np.tile(unit, stream.between(*tandems.copies)), tandems.divergence, stream)


def _lay_gaps(codes: CodeArray, gaps: Gaps, stream: Stream) -> None:
    for _ in range(gaps.runs):
        length = stream.between(*gaps.length)
        begin = stream.between(0, codes.size - length)
        codes[begin : begin + length] = BREAK


def _lay(
    codes: CodeArray, element: CodeArray, divergence: tuple[float, float], stream: Stream
) -> None:
    """Write a diverged copy of an element over the genome, in a random orientation."""
    rate = stream.between(threshold(divergence[0]), threshold(divergence[1]))
    bits = stream.bits(element.size)
    other = element + np.uint8(1) + (bits >> HALF) % np.uint64(3)
    copy = np.where((bits & LOW_HALF) < np.uint64(rate), other & np.uint64(3), element)
    copy = copy.astype(np.uint8)
    if stream.between(0, 1):
        copy = np.uint8(3) - copy[::-1]
    begin = stream.between(0, codes.size - copy.size)
    codes[begin : begin + copy.size] = copy
