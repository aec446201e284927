"""The numbers of a candidate: the columns of `Candidates.numbers`."""

from __future__ import annotations

from typing import Final

STRAND: Final = 0
RECORD: Final = 1
SEED_BEGIN: Final = 2
SEED_BASES: Final = 3
LEFT_SCORE: Final = 4
LEFT_QUERY_BASES: Final = 5
RIGHT_SCORE: Final = 6
RIGHT_QUERY_BASES: Final = 7
SCORE: Final = 8
BOUND: Final = 9
LEFT_SHIFT: Final = 10
RIGHT_SHIFT: Final = 11
STATE: Final = 12
CREDIT: Final = 13
GAPPED: Final = 14
MARK: Final = 15
