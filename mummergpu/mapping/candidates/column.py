"""The numbers of a candidate: the columns of `Candidates.numbers`."""

from __future__ import annotations

from typing import Final

STRAND: Final = 0
RECORD: Final = 1

# Where in the read the longest match of the diagonal begins, and its bases: the seed.
SEED_BEGIN: Final = 2
SEED_BASES: Final = 3

# The scores of both flanks next to it, and the bases of the read in the flanks' best parts.
LEFT_SCORE: Final = 4
LEFT_QUERY_BASES: Final = 5
RIGHT_SCORE: Final = 6
RIGHT_QUERY_BASES: Final = 7

# The score of the whole, and the most that it may be with gaps.
SCORE: Final = 8
BOUND: Final = 9

# By how many bases the diagonals at both ends lie right of the candidate's.
LEFT_SHIFT: Final = 10
RIGHT_SHIFT: Final = 11

STATE: Final = 12  # `candidates.UNGAPPED`, `EXACT` or `DEAD`.
CREDIT: Final = 13  # What the qualities of the bases that differ give back, in fixed point.
GAPPED: Final = 14  # Which flanks have gaps: `candidates.LEFT_GAPPED`, `RIGHT_GAPPED`.
MARK: Final = 15  # A mark for functions that go through the candidates of a read more than once.
