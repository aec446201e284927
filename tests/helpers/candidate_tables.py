"""Tables of candidates and reads of one base, for compiled functions that are called in Python."""

import numpy as np

from mummergpu.input.circular_records import NO_CIRCLES
from mummergpu.mapping.candidates import candidates, column
from mummergpu.sequence.codes import with_margins
from mummergpu.viterbi.recurrence.model import Costs

NO_BONUS = Costs(end_bonus=0)


def table_of(*reads, spare=0):
    """The candidates of reads, each with its diagonal and its columns by name."""
    offsets = np.cumsum([0, *(len(read) + spare for read in reads)], dtype=np.int64)
    numbers = np.zeros((offsets[-1], candidates.NUMBERS), dtype=np.int32)
    diagonals = np.zeros(offsets[-1], dtype=np.int64)
    for first, read in zip(offsets, reads, strict=False):
        for row, told in enumerate(read, int(first)):
            for name, value in told.items():
                if name == "diagonal":
                    diagonals[row] = value
                else:
                    numbers[row, getattr(column, name)] = value
    counts = np.array([len(read) for read in reads], dtype=np.int64)
    seeds_kept = np.full(len(reads), candidates.ALL_FOUND, dtype=np.uint8)
    return candidates.Candidates(offsets, counts, diagonals, numbers, seeds_kept)


def scoring_of(*lengths, costs=NO_BONUS, codes=None, reference=None):
    """Reads of some lengths, and a reference; all bases are A unless they are told."""
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    codes = np.zeros(offsets[-1], dtype=np.uint8) if codes is None else codes
    reference = np.zeros(1000, dtype=np.uint8) if reference is None else reference
    reads = with_margins(codes)
    starts, ends = np.zeros(1, dtype=np.int64), np.array([reference.size], dtype=np.int64)
    qualities = candidates.Qualities(np.full(codes.size, 255, np.uint8), np.zeros(256, np.int32))
    target = candidates.Target(with_margins(reference), starts, ends, NO_CIRCLES)
    return candidates.Scoring(candidates.Reads(offsets, reads, reads), target, costs, qualities)


def whole(score, bases=100, **others):
    """A candidate that aligns all bases of its read."""
    return {"SEED_BASES": bases, "SCORE": score, **others}
