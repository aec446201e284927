"""The reference: its records as one array of codes, and the pages it is cut into."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mummergpu.sequence import CodeArray


@dataclass(frozen=True)
class Reference:
    """All records of a reference, joined by one break each.

    Attributes
    ----------
    path : str
        The file as the user named it.
    codes : ndarray, dtype=uint8, shape=(n_bases + n_records - 1,)
        The base codes; between two records lies one `sequence.BREAK`.
    record_starts : ndarray, dtype=int64, shape=(n_records,)
        Where in `codes` each record begins.
    record_lengths : ndarray, dtype=int64, shape=(n_records,)
        The bases of each record; a record may be empty.
    names : tuple of bytes
        The names of the records, cut at the first white space.
    """

    path: str
    codes: CodeArray
    record_starts: npt.NDArray[np.int64]
    record_lengths: npt.NDArray[np.int64]
    names: tuple[bytes, ...]


@dataclass(frozen=True)
class Page:
    """A segment of the joined reference, with a suffix tree of its own.

    A page reports the matches that start in its owned part. It reaches far enough behind
    that part for each of them to be found, and no match is reported by two pages.

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

    Parameters
    ----------
    length : int
        The length of the joined reference, in bases.
    page_size : int
        The most bases of a page, its overlap with the next included.
    overlap : int
        The bases that two neighbours share: the minimum match length less one, so that a
        match that starts in the owned part is found whole or up to the end of the page.

    Returns
    -------
    list of Page
        In the order of the reference; their owned parts cover it without gap or overlap.

    Raises
    ------
    ValueError
        If `page_size` is not larger than `overlap`.
    """
    if page_size <= overlap:
        raise ValueError(f"pages of {page_size} bases cannot overlap by {overlap}")
    pages = []
    begin = 0
    while True:
        end = min(begin + page_size, length)
        owned_end = length if end == length else end - overlap
        pages.append(Page(len(pages), begin, end, owned_end))
        if end == length:
            return pages
        begin = owned_end
