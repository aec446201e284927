"""How an index is built: one set of defaults for the command line and for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from mummergpu.index.tree.policy import DEFAULT_POLICY, Policy

DEFAULT_MINIMUM_LENGTH: Final = 20
"""The fewest bases of a match, as in MUMmer."""

PAPER_PAGE_BASES: Final = 8 << 20
"""The most bases of a page that the paper's 24-bit addresses allow."""


@dataclass(frozen=True)
class KmerOptions:
    """How the tables of k-mers are built.

    Attributes
    ----------
    page_size : int or None
        The most bases of a page; None for pages as large as memory allows.
    """

    search: ClassVar[str] = "kmer"
    page_size: int | None = None


@dataclass(frozen=True)
class TreeOptions:
    """How suffix trees are built.

    Attributes
    ----------
    page_size : int or None
        The most bases of a page; None for pages as large as memory allows.
    address_bits : int or None
        The bits of a number in a node: 24 for the paper's format, 32 for the wide one, None
        for what the pages need.
    builder : str
        What grows the trees: ``ukkonen``, or ``sa`` for the same ones from a suffix array.
    policy : Policy
        The data policies.
    """

    search: ClassVar[str] = "tree"
    page_size: int | None = PAPER_PAGE_BASES
    address_bits: int | None = None
    builder: str = "ukkonen"
    policy: Policy = DEFAULT_POLICY


@dataclass(frozen=True)
class IndexOptions:
    """How an index is built, whatever its kind.

    Attributes
    ----------
    minimum_length : int
        The fewest bases of the matches that the index is meant for.
    kind : KmerOptions or TreeOptions
        Which kind of index it is, and how that is built.
    memory : int or None
        The most bytes that the index, its construction and the reference may take; None for
        half of what is free.
    """

    minimum_length: int = DEFAULT_MINIMUM_LENGTH
    kind: KmerOptions | TreeOptions = field(default_factory=KmerOptions)
    memory: int | None = None
