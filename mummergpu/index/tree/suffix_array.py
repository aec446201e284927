"""The sorted suffixes of a page, and the number of bases that neighbouring suffixes share.

libdivsufsort sorts the suffixes (through `pydivsufsort`, an optional library). Breaks sort
after all bases, so suffixes that begin with a break come last and are left out. The *shared
bases* of two neighbours are those up to the first difference or break. Codes after a break
affect the order of suffixes, but not the number of shared bases.

References
----------
T. Kasai et al., Linear-time longest-common-prefix computation in suffix arrays and its
applications, CPM 2001; J. Karkkainen, G. Manzini and S. J. Puglisi, Permuted
longest-common-prefix array, CPM 2009.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.runtime.arrays import Int32Array
from mummergpu.runtime.jit import as_index, as_int64, jit, prefetch
from mummergpu.sequence.codes import BREAK, CodeArray

LOOK_AHEAD: Final = 16
"""The number of suffixes or nodes by which prefetching runs ahead."""


def sort_suffixes(codes: CodeArray) -> Int32Array:
    """Return the positions of a page's suffixes in the order of their codes, breaks last.

    `OptionError` is raised if the library is not installed.
    """
    try:
        from pydivsufsort import divsufsort
    except ImportError as error:
        message = f"'sa' needs pydivsufsort (pip install 'mummergpu[sa]'): {error}"
        raise OptionError("--builder", message) from error
    suffixes: Int32Array = divsufsort(codes)
    return suffixes


@jit
def shared_bases(codes: CodeArray, suffixes: Int32Array) -> Int32Array:
    """Return the number of bases that each suffix shares with the one before it, and a final 0.

    Suffixes that begin with a break are left out.
    """
    shared = np.zeros(suffixes.size + 1, dtype=np.int32)
    before = np.full(codes.size, -1, dtype=np.int32)
    for place in range(1, suffixes.size):
        if place + LOOK_AHEAD < suffixes.size:
            prefetch(before, suffixes[place + LOOK_AHEAD])
        before[as_index(suffixes[place])] = suffixes[place - 1]
    length = 0
    for suffix in range(codes.size):
        if suffix + LOOK_AHEAD < codes.size:
            prefetch(codes, before[suffix + LOOK_AHEAD] + length)
        other = as_int64(before[suffix])
        if other < 0:
            length = 0
            continue
        code = codes[as_index(suffix + length)]
        while code != BREAK and code == codes[as_index(other + length)]:
            length += 1
            code = codes[as_index(suffix + length)]
        before[suffix] = length
        length = max(length - 1, 0)
    for place in range(1, suffixes.size):
        if place + LOOK_AHEAD < suffixes.size:
            prefetch(before, suffixes[place + LOOK_AHEAD])
        shared[place] = before[as_index(suffixes[place])]
    return shared
