"""Where sequences begin that lie one after the other."""

from __future__ import annotations

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import jit


@jit
def longest_of(offsets: Int64Array) -> int:
    """Return the length of the longest of the sequences between offsets, 0 if there is none."""
    longest = 0
    for sequence in range(offsets.size - 1):
        longest = max(longest, offsets[sequence + 1] - offsets[sequence])
    return longest
