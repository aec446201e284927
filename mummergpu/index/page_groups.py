"""Divides pages into groups that fit in memory together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mummergpu.index.pages import Page


def groups_within(
    pages: Sequence[Page], max_bytes: int, bytes_of: Callable[[Page], int]
) -> list[list[Page]]:
    """Divide pages into groups of at most `max_bytes` bytes, or of a single page.

    Parameters
    ----------
    pages : sequence of Page
        In the order of the reference.
    max_bytes : int
        The most bytes that a group of several pages takes.
    bytes_of : callable
        Returns the size of a page in bytes.

    Returns
    -------
    list of list of Page
        At least one page each, in the same order.
    """
    groups: list[list[Page]] = []
    taken = 0
    for page in pages:
        size = bytes_of(page)
        if not groups or taken + size > max_bytes:
            groups.append([])
            taken = 0
        groups[-1].append(page)
        taken += size
    return groups


def groups_built_within(
    pages: Sequence[Page],
    max_bytes: int,
    threads: int,
    tree_bytes: Callable[[Page], int],
    build_bytes: Callable[[Page], int],
    max_device_bytes: int | None = None,
) -> list[list[Page]]:
    """Divide pages into groups whose trees and their construction fit in memory.

    Parameters
    ----------
    pages : sequence of Page
        In the order of the reference.
    max_bytes : int
        The most bytes that the trees of a group and their construction may take.
    threads : int
        How many pages are built at the same time.
    tree_bytes, build_bytes : callable
        Return the bytes of a page's tree, and the further bytes that building it takes.
    max_device_bytes : int or None
        The most bytes that the trees of a group may take on a device, where no tree is built;
        None without a device.

    Returns
    -------
    list of list of Page
        At least one page each, in the same order.
    """
    max_tree_bytes = max_bytes if max_device_bytes is None else max_device_bytes
    groups: list[list[Page]] = []
    trees = building = 0
    for page in pages:
        tree = tree_bytes(page)
        trees += tree
        if groups and len(groups[-1]) < threads:
            building += build_bytes(page)
        if not groups or trees > max_tree_bytes or trees + building > max_bytes:
            groups.append([])
            trees, building = tree, build_bytes(page)
        groups[-1].append(page)
    return groups
