"""The pages that a reference is cut into, and groups of them that fit in memory together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mummergpu.errors import InputError
from mummergpu.runtime.frozen import frozen


@frozen
class Page:
    """A segment of the joined reference, with a suffix tree of its own.

    A page reports the matches that start in its owned part. It reaches far enough beyond
    that part to find each of them, and no two pages report the same match.
    """

    index: int  # The number of the page, counted from 0.
    # The half-open range of the joined reference that the tree covers.
    begin: int
    end: int
    owned_end: int  # Where the owned part ends and the next page begins.


def plan_pages(length: int, page_size: int, overlap: int) -> list[Page]:
    """Cut a joined reference into overlapping pages (paper, section 2.1).

    The overlap is the minimum match length minus one, so that a match that starts in the owned part
    is found whole or up to the page's end. The owned parts cover the reference without gap or
    overlap. Pages that are not larger than the overlap raise `ValueError`.
    """
    if page_size <= overlap:
        raise ValueError(f"pages of {page_size} bases cannot overlap by {overlap}")
    pages: list[Page] = []
    begin = 0
    while True:
        end = min(begin + page_size, length)
        owned_end = length if end == length else end - overlap
        pages.append(Page(len(pages), begin, end, owned_end))
        if end == length:
            return pages
        begin = owned_end


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


def damage_error(page: Page, index_path: str) -> Exception:
    """Return the error for a page that contains an impossible value.

    It is an `InputError` that names the index file. For a page that was built in memory, where
    `index_path` is empty, it is a `RuntimeError`: no input of a user can damage such a page.
    """
    if not index_path:
        return RuntimeError(f"page {page.index} was built with a value that cannot be")
    return InputError(
        f"the index is damaged: its page {page.index} holds a value that cannot be "
        "('mummergpu index --check' reads all of it)",
        index_path,
    )
