"""What the colours of a dot plot tell: the strand of each match, or how alike its bases are."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.drawing.colours import (
    BLUE,
    FAINT,
    FORWARD,
    IDENTITY,
    ORANGE,
    REVERSE,
    SKY,
    STRAND,
    VERMILION,
)
from mummergpu.drawing.segments import Segments
from mummergpu.errors import OptionError
from mummergpu.runtime.arrays import BoolArray
from mummergpu.runtime.frozen import frozen

STRAND_COLOURS: Final = ((FORWARD, "forward"), (REVERSE, "reverse"))

_IDENTITIES: Final = ((99, BLUE), (95, SKY), (90, ORANGE), (80, VERMILION), (0, FAINT))
"""The least percentage of equal columns of each colour."""


@frozen
class Group:
    """Matches of one colour."""

    label: str
    colour: str
    members: BoolArray


def no_identities() -> OptionError:
    """Return the error that identities are asked for and are not known."""
    text = "exact matches are all alike; draw the alignments of a .paf or .delta"
    return OptionError(f"colouring={IDENTITY}", text)


def groups_of(segments: Segments, colouring: str) -> tuple[Group, ...]:
    """Return the groups of matches by colour, to be drawn in this order.

    Raises
    ------
    OptionError
        If identities are to be told and are not known.
    """
    if colouring == STRAND:
        ways = ~segments.is_reverse, segments.is_reverse
        named = zip(STRAND_COLOURS, ways, strict=True)
        return tuple(Group(label, colour, members) for (colour, label), members in named)
    if segments.identities is None:
        raise no_identities()
    groups = []
    above = np.inf
    for least, colour in _IDENTITIES:
        members = (segments.identities >= least) & (segments.identities < above)
        label = f"{least}% and more" if least == _IDENTITIES[0][0] else f"{least} to {above:g}%"
        if least == 0:
            label = f"under {above:g}%"
        groups.append(Group(label, colour, members))
        above = least
    return tuple(groups)
