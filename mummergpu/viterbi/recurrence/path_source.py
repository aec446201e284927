"""One step back of a path: from which state of a cell it came into a state of a later one."""

from __future__ import annotations

from typing import Final

from mummergpu.runtime.jit import as_int64, inline_without_refcounts
from mummergpu.viterbi.recurrence.departures import STATE_BITS, source_table
from mummergpu.viterbi.recurrence.model import PAIRWISE

_SOURCES: Final = tuple(source_table(PAIRWISE, state) for state in PAIRWISE.states)
_STATE_MASK: Final = (1 << STATE_BITS) - 1


@inline_without_refcounts
def source_of(state: int, bits: int) -> int:
    """Return from which state of a cell a path comes into a state of a later one."""
    return _SOURCES[state] >> STATE_BITS * as_int64(bits) & _STATE_MASK
