"""Make a diverged copy of a whole reference, to search it in the original."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.workload.declaration import Copy
from mummergpu.workload.splitmix import HALF, LOW_HALF, RandomStream, threshold

_BLOCK: Final = 1 << 20


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
            pieces.append(_diverged(codes, copy, stream, counts))
            copied += pieces[-1].size
        pieces.append(np.array([BREAK], dtype=np.uint8))
        lengths.append(copied)
    record_lengths = np.array(lengths, dtype=np.int64)
    starts = np.cumsum(np.append(0, record_lengths[:-1] + 1)).astype(np.int64)
    names = tuple(record + b".copy" for record in reference.names)
    made = Reference("copy.fa", np.concatenate(pieces)[:-1], starts, record_lengths, names)
    kinds = zip(("substitutions", "insertions", "deletions"), counts.tolist(), strict=True)
    return made, {"bases": int(record_lengths.sum()), **dict(kinds)}


def _diverged(codes: CodeArray, copy: Copy, stream: RandomStream, counts: np.ndarray) -> CodeArray:
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
