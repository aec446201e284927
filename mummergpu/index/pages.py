"""The pages that a reference is cut into."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """A segment of the joined reference, with a suffix tree of its own.

    A page reports the matches that start in its owned part. It reaches far enough beyond
    that part to find each of them, and no two pages report the same match.

    Attributes
    ----------
    index : int
        The number of the page, counted from 0.
    begin, end : int
        The half-open range of the joined reference that the tree covers.
    owned_end : int
        Where the owned part ends and the next page begins.
    """

    index: int
    begin: int
    end: int
    owned_end: int


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
