"""Where sequences begin that lie one after the other."""

from __future__ import annotations

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import jit_without_refcounts


@jit_without_refcounts
def longest_of(offsets: Int64Array) -> int:
    """Return the length of the longest sequence.

    Parameters
    ----------
    offsets : ndarray, dtype=int64, shape=(n_sequences + 1,)
        Where each sequence begins, and where the last ends.

    Returns
    -------
    int
        0 if there is no sequence.
    """
    longest = 0
    for sequence in range(offsets.size - 1):
        longest = max(longest, offsets[sequence + 1] - offsets[sequence])
    return longest
