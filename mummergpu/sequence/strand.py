"""The strands of a sequence."""

from __future__ import annotations

from enum import IntEnum


class Strand(IntEnum):
    """The strand of the query that a match lies on."""

    FORWARD = 0
    REVERSE = 1
