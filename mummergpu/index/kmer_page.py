"""A page with its table of k-mers, the choice of the k-mer length, and the sampling step."""

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
"""The offsets of all k-mers take at most this many bytes per base of the reference."""

LEAST_TABLE_BYTES: Final = 4 << 24
"""Offsets may take up to this many bytes even if the reference is small."""

MAXIMUM_STEP: Final = 1 << 20
"""The largest distance between two samples in bases, even for long matches."""


@dataclass(frozen=True)
class KmerPage:
    """A part of a reference and its table of k-mers: the input of a k-mer search.

    Attributes
    ----------
    page : Page
        The position of the part in the joined reference. The page owns all of the part,
        because matches are extended in the whole reference.
    table : KmerTable
        The positions of the k-mers that begin in the part.
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
        The minimum length of a MEM in bases.
    bases : int
        The length of the reference in bases.

    Returns
    -------
    int
        The length, at most `minimum_length` and `extension.MAXIMUM_KMER_LENGTH`.

    Notes
    -----
    A base of a query costs ``(1 + bases / 4**k) / (l - k + 1)`` times the time of one
    occurrence. Looking up a sample takes about the time of one occurrence, a sample has about
    ``bases / 4**k`` occurrences by chance, and one base in ``l - k + 1`` begins a sample. The
    function returns the cheapest length whose offsets do not take too much memory.
    """
    most_bytes = max(TABLE_BYTES_PER_BASE * bases, LEAST_TABLE_BYTES)
    longest = min(minimum_length, MAXIMUM_KMER_LENGTH)
    lengths = [k for k in range(1, longest + 1) if k == 1 or 4 << 2 * k <= most_bytes]
    return min(lengths, key=lambda k: (1 + bases / 4**k) / (minimum_length - k + 1))


def sampling_step(minimum_length: int, kmer_length: int) -> int:
    """Return the number of bases from one sample to the next.

    Parameters
    ----------
    minimum_length, kmer_length : int
        The minimum length of a MEM, and the length of a k-mer, in bases.

    Returns
    -------
    int
        The step; every MEM contains at least one whole sample.
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
        The number of bases of a k-mer.
    scratch_bytes : int
        The approximate memory to use besides the table, in bytes.
    stats : Stats
        Collects the time.
    map_function : callable
        Works like `map`; independent tasks build the table.

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
