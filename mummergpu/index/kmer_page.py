"""A page with its table of k-mers, and how long k-mers are and how far samples lie apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from mummergpu.index.kmer_table import KmerTable, build_kmer_table
from mummergpu.index.pages import Page
from mummergpu.input.reference import Reference
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.extension import MAXIMUM_KMER_LENGTH

TABLE_BYTES_PER_BASE: Final = 12
"""The offsets of all k-mers take at most so many bytes for each base of the reference."""

LEAST_TABLE_BYTES: Final = 4 << 24
"""Offsets that take no more than this are welcome whatever the reference's size."""

MAXIMUM_STEP: Final = 1 << 20
"""Samples are no further apart than this, however long the matches are."""


@dataclass(frozen=True)
class KmerPage:
    """A part of a reference and its k-mers: what a k-mer search is given.

    Attributes
    ----------
    page : Page
        Where the part lies in the joined reference; the whole of it is owned, as matches are
        extended in the whole reference.
    table : KmerTable
        Where the k-mers that begin in the part begin.
    padded_reference : ndarray, dtype=uint8
        The codes of the whole reference with margins (`codes.with_margins`), shared.
    index_path : str
        The index file that the page is from, or ``""`` if it was built in memory.
    """

    page: Page
    table: KmerTable
    padded_reference: CodeArray
    index_path: str = ""

    @property
    def joined_reference(self) -> CodeArray:
        """The codes of the whole reference, without the margins."""
        return self.padded_reference[MARGIN:-MARGIN]


def choose_kmer_length(minimum_length: int, bases: int) -> int:
    """Return the k-mer length that makes the k-mer search of a reference fastest.

    Parameters
    ----------
    minimum_length : int
        The fewest bases of a MEM.
    bases : int
        The length of the reference.

    Returns
    -------
    int
        At most `minimum_length` and `extension.MAXIMUM_KMER_LENGTH`.

    Notes
    -----
    A base costs ``(1 + bases / 4**k) / (l - k + 1)`` times the time of one place of a list:
    a sample is looked up in about the time of a place, finds about so many places by chance,
    and there is one for every step. Among those whose offsets do not take too much memory
    the cheapest is taken.
    """
    most_bytes = max(TABLE_BYTES_PER_BASE * bases, LEAST_TABLE_BYTES)
    longest = min(minimum_length, MAXIMUM_KMER_LENGTH)
    lengths = [k for k in range(1, longest + 1) if k == 1 or 4 << 2 * k <= most_bytes]
    return min(lengths, key=lambda k: (1 + bases / 4**k) / (minimum_length - k + 1))


def sampling_step(minimum_length: int, kmer_length: int) -> int:
    """Return how many bases lie from one sample to the next.

    Parameters
    ----------
    minimum_length, kmer_length : int
        The fewest bases of a MEM, and the bases of a k-mer.

    Returns
    -------
    int
        So many that every MEM holds at least one whole sample.
    """
    return min(minimum_length - kmer_length + 1, MAXIMUM_STEP)


def build_kmer_page(
    reference: Reference,
    page: Page,
    kmer_length: int,
    scratch_bytes: int,
    stats: Stats,
    map_function: Callable[..., Iterable[object]] = map,
) -> KmerPage:
    """Build the table of a page.

    Parameters
    ----------
    reference : Reference
        The reference.
    page : Page
        One of its pages.
    kmer_length : int
        The bases of a k-mer.
    scratch_bytes : int
        About how much memory to use besides the table's.
    stats : Stats
        Takes the time.
    map_function : callable
        A kind of map, for the tasks that the table is built by.

    Returns
    -------
    KmerPage
        The page, ready to be searched.
    """
    padded = reference.padded_codes
    with stats.stage("table_construction"):
        table = build_kmer_table(
            padded, page.begin, page.owned_end, kmer_length, map_function, scratch_bytes
        )
    return KmerPage(page, table, padded)
