"""Where a sequence has hits: HMMER's regions, from the special states of both parsers."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.hmm.domains import fields
from mummergpu.hmm.domains.forward import AGAIN, BEGIN, END, ENTER, LEAVE, SCALE, Cells, Group
from mummergpu.runtime.arrays import Float32Array, Int64Array
from mummergpu.runtime.jit import inline

_TRIGGER: Final = np.float32(0.25)
"""The chance of a match from which on a residue makes a region."""
_EXTENT: Final = np.float32(0.10)
"""The chance up to which a region is extended."""
_SEVERAL: Final = np.float32(0.20)
"""The expected number of ends before begins from which on a region may have several domains."""


class Occupancy(NamedTuple):
    """What is expected up to each residue of a sequence; (residues + 1,) each."""

    begins: Float32Array
    ends: Float32Array
    matched: Float32Array  # The chance that the residue is in a domain


@inline
def fill_occupancy(
    group: Group, forward: Cells, backward: Cells, rows: int, quarter: int, found: Occupancy
) -> bool:
    """Fill the occupancy of a sequence; return whether float32 can hold it."""
    begin = rows - group.sizes[quarter]
    ahead, back = forward.kept, backward.kept
    stay = group.chances[0, quarter]
    scale = np.float32(1) / back[begin, BEGIN, quarter]
    found.begins[0] = found.ends[0] = found.matched[0] = 0
    for place in range(1, group.sizes[quarter] + 1):
        row, last = begin + place, begin + place - 1
        entered = ahead[last, ENTER, quarter] * back[last, ENTER, quarter]
        begins = entered * ahead[last, SCALE, quarter] * scale
        found.begins[place] = found.begins[place - 1] + begins
        if backward.has_own_scales[quarter]:
            scale *= ahead[last, SCALE, quarter] / back[last, SCALE, quarter]
        left = ahead[row, LEAVE, quarter] * back[row, LEAVE, quarter]
        found.ends[place] = found.ends[place - 1] + left * ahead[row, SCALE, quarter] * scale
        outside = np.float32(0)
        for state in (BEGIN, AGAIN, END):
            outside += ahead[last, state, quarter] * back[row, state, quarter] * stay * scale
        found.matched[place] = np.float32(1) - outside
    return not np.isinf(scale)


@inline
def find_regions(found: Occupancy, residues: int, regions: Int64Array) -> int:
    """Find the regions of a sequence, as pieces; return their number."""
    begins, ends, matched = found.begins, found.ends, found.matched
    first, is_triggered, count = -1, False, 0
    for place in range(1, residues + 1):
        if not is_triggered:
            begun = begins[place] - begins[place - 1]
            if matched[place] - begun < _EXTENT or first == -1:
                first = place
            is_triggered = matched[place] >= _TRIGGER
        elif matched[place] - (ends[place] - ends[place - 1]) < _EXTENT:
            most = np.float32(-1)
            for one in range(first, place + 1):
                ended = ends[one] - ends[first - 1]
                begun = begins[place] - begins[one - 1]
                expected = ended if ended < begun else begun
                most = expected if expected > most else most
            regions[count, fields.FIRST], regions[count, fields.LAST] = first, place
            regions[count, fields.IS_SEVERAL] = most >= _SEVERAL
            first, is_triggered, count = -1, False, count + 1
    return count
