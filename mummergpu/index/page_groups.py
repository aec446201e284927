"""Divides pages into groups that fit in memory together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mummergpu.index.pages import Page


def groups_within(
    pages: Sequence[Page], max_bytes: int, bytes_of: Callable[[Page], int]
) -> list[list[Page]]:
    """Divide pages in order into groups of at most `max_bytes` bytes, or of a single page."""
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
    """Divide pages in order into groups whose trees and their construction fit in memory.

    At most `threads` pages are built at the same time, and no tree is built on a device. Each group
    has at least one page.
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
