"""The reference: its records as one array of codes, and the pages it is cut into."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.errors import InputError
from mummergpu.inputs import Format, Input
from mummergpu.records import CHUNK_SIZE, UNLIMITED, Limits, RecordReader
from mummergpu.sequence import BREAK, CodeArray

_SEARCH_STEP: Final = 1 << 24


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


def read_reference(path: str, chunk_size: int = CHUNK_SIZE) -> Reference:
    """Read a reference from FASTA, plain or gzipped.

    Parameters
    ----------
    path : str
        The file, "-" being standard input.
    chunk_size : int, default CHUNK_SIZE
        Bytes of text that are parsed at once.

    Returns
    -------
    Reference
        All records of the file, empty ones too.

    Raises
    ------
    InputError
        If the file cannot be read, is not FASTA, or has no A, C, G or T.

    Notes
    -----
    Memory: a byte a base; half as much again while a gzipped file or a pipe is read.
    """
    with Input(path) as file:
        if file.format is not Format.FASTA:
            raise InputError(f"a reference must be FASTA, and this is {file.format.value}", path)
        expected = 0 if file.is_compressed else file.size or 0
        limits = Limits(UNLIMITED, UNLIMITED, UNLIMITED)
        reader = RecordReader(file, False, limits, True, expected, chunk_size)
        records = reader.next_block()
    if records is None or not _has_base(records.codes):
        raise InputError("the reference holds no A, C, G or T", path)
    text = records.names.tobytes()
    bounds = records.name_offsets.tolist()
    return Reference(
        path,
        records.codes,
        records.offsets[:-1],
        np.diff(records.offsets) - 1,
        tuple(text[begin:end] for begin, end in pairwise(bounds)),
    )


def _has_base(codes: CodeArray) -> bool:
    """Tell whether there is a code other than `BREAK`, without a copy of the genome."""
    return any(
        bool((codes[begin : begin + _SEARCH_STEP] != BREAK).any())
        for begin in range(0, codes.size, _SEARCH_STEP)
    )


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
    pages: list[Page] = []
    begin = 0
    while True:
        end = min(begin + page_size, length)
        owned_end = length if end == length else end - overlap
        pages.append(Page(len(pages), begin, end, owned_end))
        if end == length:
            return pages
        begin = owned_end
