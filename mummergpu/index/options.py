"""The options for building an index, with the same defaults for commands and programs."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar, Final

from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.tree.policy import DEFAULT_POLICY, Policy
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import keep_values, one_of, optional_positive, positive

DEFAULT_MINIMUM_LENGTH: Final = 20
"""The default minimum match length in bases, the same as in MUMmer."""

PAPER_PAGE_BASES: Final = 8 << 20
"""The most bases of a page that the paper's 24-bit addresses allow."""


PURPOSES: Final = ("reads", "genomes", "memory")
"""The purposes of an index of k-mers."""


@frozen
class KmerOptions:
    """The options for building tables of k-mers.

    Attributes
    ----------
    page_size : int or None
        The most bases that a page has; None for pages as large as memory allows.
    purpose : str or None
        What an index file is for: ``reads`` (many queries), ``genomes`` (queries about as long as
        the reference) or ``memory`` (a small index); None if the index is for one run.
    sampling : KmerSampling or None
        Which k-mers to list; None for the choice of `kmer_plan`.
    unique_strands : int
        The number of strands of the queries that are searched, if the index is for one run that
        wants only matches that are unique in the reference: it may then leave out what only other
        matches need. 0 if not.
    chooses_seeds : bool
        Whether a search looks at few occurrences of a query's frequent seeds (`seed_rule`).
    """

    search: ClassVar[str] = "kmer"
    page_size: int | None = None
    purpose: str | None = None
    sampling: KmerSampling | None = None
    unique_strands: int = 0
    chooses_seeds: bool = False

    def __post_init__(self) -> None:
        if self.purpose is not None:
            one_of("index_for", self.purpose, PURPOSES)


@frozen
class TreeOptions:
    """The options for building suffix trees.

    Attributes
    ----------
    page_size : int or None
        The most bases that a page has; None for pages as large as memory allows.
    address_bits : int or None
        The bits of a number in a node: 24 for the paper's format, 32 for the wide format,
        None for the smaller format that fits the pages.
    """

    search: ClassVar[str] = "tree"
    page_size: int | None = PAPER_PAGE_BASES
    address_bits: int | None = None
    policy: Policy = DEFAULT_POLICY


@frozen
class IndexOptions:
    """The options for building an index of either kind.

    Attributes
    ----------
    minimum_length : int
        The length, in bases, of the shortest matches that the index is meant for.
    memory : int or None
        The most bytes that the index, its construction and the reference may take; None for
        half of the free memory.
    """

    minimum_length: int = DEFAULT_MINIMUM_LENGTH
    kind: KmerOptions | TreeOptions = field(default_factory=KmerOptions)
    memory: int | None = None

    def __post_init__(self) -> None:
        length = positive("min_length", self.minimum_length)
        memory = optional_positive("max_memory", self.memory)
        keep_values(self, minimum_length=length, memory=memory)
