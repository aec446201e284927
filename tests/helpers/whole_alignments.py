"""Pairs of sequences, and their alignments from end to end."""

import numpy as np

from mummergpu.sequence.codes import MARGIN, with_margins
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.tile import Tile
from mummergpu.viterbi.whole.whole_matrix import MatrixScratch, align_whole

COSTS = [
    Costs(),
    Costs(3, 7, 7, 3, 7, 3, 7, 0),
    Costs(1, 0, 0, 0, 1, 0, 1, 0),
    Costs(2, 3, 1, 9, 1, 2, 3, 0),
]

ANY_SCORE = -(1 << 50)
"""Less than any alignment scores."""


def whole_alignment(query, reference, costs):
    """The score and the operations of the whole matrix on the processor."""
    columns = reference.size + 1
    scratch = MatrixScratch(
        np.empty(2 * columns, np.int64),
        np.empty((query.size + 1) * columns, np.uint8),
        np.empty(query.size + 1, np.int64),
    )
    operations = np.empty(query.size + reference.size + 1, dtype=np.uint32)
    tile = Tile(MARGIN, query.size, MARGIN, reference.size, 1)
    score, count = align_whole(
        *(with_margins(query), with_margins(reference), tile, costs),
        *(ANY_SCORE, scratch, operations, 0),
    )
    return score, operations[:count].tolist()


def made_pair(random, length, letters=4):
    """Two sequences of which one is a copy of the other with differences, gaps and breaks."""
    reference = random.integers(0, letters, length, dtype=np.uint8)
    query = list(reference)
    for _ in range(length // 12 + 1):
        at = int(random.integers(len(query)))
        kind = random.random()
        if kind < 0.6:
            query[at] = random.integers(0, 5)
        elif kind < 0.8:
            query[at:at] = random.integers(0, letters, random.integers(1, 9)).tolist()
        elif len(query) > 20:
            del query[at : at + int(random.integers(1, 9))]
    reference[random.random(length) < 0.01] = 4
    return np.array(query, dtype=np.uint8), reference
