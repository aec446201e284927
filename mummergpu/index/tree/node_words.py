"""Writes halves of nodes into zeroed memory, in either format (`layout`).

In the wide format a half is six words of an array of uint32. In the paper's format it is
written as two words of an array of int64. The position of a half is counted in these words.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mummergpu.index.tree.layout import FLAGS, IS_LEAF, NodeHalfArray
from mummergpu.index.tree.node_fields import has_words
from mummergpu.runtime.jit import as_index, as_int64, inline

NodeWordArray = npt.NDArray[Any]
"""Words of halves: dtype uint32 in the wide format, int64 in the paper's format."""

LEAF_BIT: Final = 1 << 56


def as_words(halves: NodeHalfArray) -> NodeWordArray:
    """Return a view of an array of halves as the words that they are written in."""
    return halves.view(np.int64) if halves.dtype == np.uint8 else halves


@inline
def write_half(
    words: NodeWordArray, half: int, first: int, second: int, third: int, fourth: int, fifth: int
) -> None:
    """Add five numbers to the half that begins at word `half`.

    Each field is written once, or several times with numbers that sum to its value. In the paper's
    format numbers have 24 bits.
    """
    if has_words(words):
        words[as_index(half)] += first
        words[as_index(half + 1)] += second
        words[as_index(half + 2)] += third
        words[as_index(half + 3)] += fourth
        words[as_index(half + 4)] += fifth
    else:
        words[as_index(half)] += first | (second << 24) | ((third & 0xFFFF) << 48)
        words[as_index(half + 1)] += (third >> 16) | (fourth << 8) | (fifth << 32)


@inline
def write_child(words: NodeWordArray, half: int, code: int, address: int) -> None:
    """Write one child of an inner node; `code` is the first code of the child's edge."""
    if has_words(words):
        words[as_index(half + code)] = address
    elif code < 2:
        words[as_index(half)] |= address << (24 * code)
    elif code == 2:
        write_half(words, half, 0, 0, address, 0, 0)
    else:
        words[as_index(half + 1)] |= address << (24 * code - 64)


@inline
def mark_leaf(words: NodeWordArray, half: int) -> None:
    """Mark the first half of a node as that of a leaf."""
    if has_words(words):
        words[as_index(half + IS_LEAF)] = 1
    else:
        words[as_index(half + 1)] |= LEAF_BIT


@inline
def write_flags(words: NodeWordArray, half: int, flags: int) -> None:
    """Write the flags of a second half, of eight bits; they must include `layout.LEAF_FLAG`."""
    if has_words(words):
        words[as_index(half + FLAGS)] = flags
    else:
        # The flags are the highest byte of the word, which contains its sign bit.
        words[as_index(half + 1)] |= as_int64(flags - 256) << 56
