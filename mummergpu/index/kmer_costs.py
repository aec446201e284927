"""What the steps of building and searching a table of k-mers cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class KmerCosts:
    """What the steps of building and searching a table cost, in nanoseconds of one thread.

    Attributes
    ----------
    position : float
        To list a position of the reference.
    passed_position : float
        To visit a position once more, in each further pass of the construction.
    offset : float
        To make the offset of one of all possible k-mers.
    load_byte : float
        To have a byte of a table that is in a file brought into memory.
    query_base : float
        To read a base of a query.
    lookup, cached_lookup : float
        To look up a k-mer of a query, in main memory and in the caches.
    first_candidate : float
        To find that a k-mer occurs by chance, besides comparing the reference there.
    candidate, cached_candidate : float
        To compare the reference where a k-mer occurs by chance.
    crowded_candidate : float
        To do so where a k-mer of a repeat occurs, which has many such places.
    pair, pair_base : float
        To extend a pair that lies in a match, and for each base of the period besides.
    sorted_match : float
        To sort a match among those of its sample, if the period is more than one base.
    resorted_match : float
        To sort a match among those of its query, if the reference step is more than one base.
    cache_bytes : int
        The bytes of the offsets or of the reference that the caches hold.
    """

    position: float
    passed_position: float
    offset: float
    load_byte: float
    query_base: float
    lookup: float
    cached_lookup: float
    first_candidate: float
    candidate: float
    cached_candidate: float
    crowded_candidate: float
    pair: float
    pair_base: float
    sorted_match: float
    resorted_match: float
    cache_bytes: int


PROCESSOR_COSTS: Final = KmerCosts(
    position=13.0,
    passed_position=8.0,
    offset=1.8,
    load_byte=0.1,
    query_base=0.25,
    lookup=18.5,
    cached_lookup=9.5,
    first_candidate=38.0,
    candidate=25.0,
    cached_candidate=4.0,
    crowded_candidate=3.0,
    pair=17.0,
    pair_base=0.4,
    sorted_match=60.0,
    resorted_match=30.0,
    cache_bytes=8 << 20,
)
"""The costs on a processor of about 2023."""

THREADS_BESIDE_DEVICE: Final = 16
"""The threads of a processor whose time counts as much as that of a GPU in `DEVICE_COSTS`."""

DEVICE_COSTS: Final = KmerCosts(
    position=13.0,
    passed_position=8.0,
    offset=2.2,
    load_byte=0.3,
    query_base=0.02,
    lookup=2.0,
    cached_lookup=1.0,
    first_candidate=0.0,
    candidate=1.2,
    cached_candidate=0.25,
    crowded_candidate=0.15,
    pair=1.0,
    pair_base=0.01,
    sorted_match=0.8,
    resorted_match=4.5,
    cache_bytes=32 << 20,
)
"""The costs if a GPU of about 2023 searches: its time counts `THREADS_BESIDE_DEVICE` times, as the
threads that build and upload the table wait for it."""
