"""What the main job is told, by the command line or by a program."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mummergpu.index.tree.policy import DEFAULT_POLICY, Policy
from mummergpu.sequence.codes import Strand


class Uniqueness(Enum):
    """Which matches are reported, by how often their bases occur."""

    ALL = "maxmatch"
    IN_REFERENCE = "mumreference"
    IN_BOTH = "mum"


@dataclass(frozen=True)
class MatchOptions:
    """Everything that the main job is told.

    Attributes
    ----------
    reference_path : str
        FASTA file of the reference, or an index file of it.
    query_paths : tuple of str
        Files of queries, "-" being standard input.
    output_path : str
        Where the matches go, "-" being standard output.
    minimum_length : int
        The fewest bases of a reported match.
    strands : tuple of Strand
        Which strands of the queries are searched, in the order of the output.
    uniqueness : Uniqueness
        Which matches are reported.
    forward_coordinates : bool
        Positions on the reverse strand are reported on the forward strand (``-c``).
    four_columns : bool
        Rows name the record also where the reference has just one (``-F``).
    show_query_lengths : bool
        Headers give the length of the query (``-L``).
    show_sequences : bool
        Each row is followed by the bases of the match (``-s``).
    threads : int
        Number of working threads.
    backend : str
        ``auto``, ``cpu`` or ``cuda``.
    search : str
        ``tree`` for the paper's suffix trees, ``sampled`` for tables of k-mers.
    page_size : int or None
        The most bases of a page; None for pages as large as memory allows.
    address_bits : int or None
        The bits of a number in a node: 24 for the paper's format, 32 for the wide one, None
        for what the pages need.
    builder : str
        How trees are built: ``ukkonen``, or ``sa`` for the same ones from a suffix array.
    policy : Policy
        The data policies.
    block_size : int or None
        About how many query bases are worked on together; None for what the backend likes.
    memory : int or None
        About how many bytes the trees or tables may take together; None for half of what is
        free.
    device : int
        Which GPU, counted from 0.
    gpu_memory : int or None
        The most bytes of its memory to take; None for nearly all that is free.
    profile : bool
        Whether the kernels of a GPU count the nodes that they visit.
    kernel_folder : str or None
        Where compiled kernels are kept between runs; None to keep none.
    dot_path, dump_tree_path : str or None
        Where the tree goes, for Graphviz and as a table.
    """

    reference_path: str
    query_paths: tuple[str, ...]
    output_path: str = "-"
    minimum_length: int = 20
    strands: tuple[Strand, ...] = (Strand.FORWARD,)
    uniqueness: Uniqueness = Uniqueness.ALL
    forward_coordinates: bool = False
    four_columns: bool = False
    show_query_lengths: bool = False
    show_sequences: bool = False
    threads: int = 1
    backend: str = "auto"
    search: str = "tree"
    page_size: int | None = 1 << 23
    address_bits: int | None = None
    builder: str = "ukkonen"
    policy: Policy = DEFAULT_POLICY
    block_size: int | None = None
    memory: int | None = None
    device: int = 0
    gpu_memory: int | None = None
    profile: bool = False
    kernel_folder: str | None = None
    dot_path: str | None = None
    dump_tree_path: str | None = None
