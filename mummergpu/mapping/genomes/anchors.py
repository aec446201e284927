"""Matches as compiled functions take them, and the lists in which near ones are looked for."""

from __future__ import annotations

from typing import Final

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts

Anchors = tuple[Int64Array, Int64Array, Int64Array]
"""Where matches begin in the query and in the reference, and their lengths."""

NONE: Final = -1
"""In place of the number of a match: there is none."""

_FEWEST_LISTS: Final = 8
_LISTS_IN_CACHE: Final = 1 << 16
_MATCHES_OF_LIST: Final = 32


@inline_without_refcounts
def lists_for(count: int) -> int:
    """Return how many lists so many matches are kept in (`list_count`).

    The lists stay in a processor's cache, unless the matches of a list became too many.
    """
    lists = _FEWEST_LISTS
    while lists < count and (lists < _LISTS_IN_CACHE or lists * _MATCHES_OF_LIST < count):
        lists *= 2
    return lists


@jit_without_refcounts
def list_count(count: int) -> int:
    """Return how many lists `join_groups` and `join_close_matches` need for so many matches."""
    return lists_for(count)
