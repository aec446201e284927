"""What the jobs are told: files, and the options of the rooms that do the work."""

from __future__ import annotations

from dataclasses import dataclass, field

from mummergpu.index.options import IndexOptions
from mummergpu.matching.options import DeviceOptions, SearchOptions
from mummergpu.output.mummer import TextStyle


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
    threads : int
        Number of working threads.
    index : IndexOptions
        How the index of the reference is built, if it is not a file.
    search : SearchOptions
        Which matches are searched for.
    device : DeviceOptions
        What the search runs on.
    style : TextStyle
        How the matches are written.
    verify : bool
        Whether an index file is compared with its checksums before it is searched.
    dot_path, dump_tree_path : str or None
        Where the tree goes, for Graphviz and as a table.
    any_letters : bool
        Whether records may have letters that are mostly not those of DNA or RNA.
    no_empty : bool
        Whether a file without a query is an error.
    """

    reference_path: str
    query_paths: tuple[str, ...]
    output_path: str = "-"
    threads: int = 1
    index: IndexOptions = field(default_factory=IndexOptions)
    search: SearchOptions = field(default_factory=SearchOptions)
    device: DeviceOptions = field(default_factory=DeviceOptions)
    style: TextStyle = field(default_factory=TextStyle)
    verify: bool = False
    dot_path: str | None = None
    dump_tree_path: str | None = None
    any_letters: bool = False
    no_empty: bool = False


@dataclass(frozen=True)
class BuildOptions:
    """Everything that the making of an index file is told.

    Attributes
    ----------
    reference_path : str
        FASTA file of the reference.
    output_path : str
        Where the index goes.
    threads : int
        Number of working threads.
    index : IndexOptions
        How the index is built.
    any_letters : bool
        Whether records may have letters that are mostly not those of DNA or RNA.
    """

    reference_path: str
    output_path: str
    threads: int = 1
    index: IndexOptions = field(default_factory=IndexOptions)
    any_letters: bool = False
