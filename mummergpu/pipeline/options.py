"""The options of the two jobs: files, and the options of the steps that do the work."""

from __future__ import annotations

from dataclasses import dataclass, field

from mummergpu.drawing.picture import PictureStyle
from mummergpu.index.options import IndexOptions
from mummergpu.matching.options import DeviceOptions, SearchOptions, Uniqueness
from mummergpu.output.matches.mummer import TextStyle
from mummergpu.output.records.sam_options import SamOptions
from mummergpu.output.targets import OutputTarget


@dataclass(frozen=True)
class MatchOptions:
    """The options of a search.

    Attributes
    ----------
    reference_path : str
        FASTA file or index file of the reference.
    query_paths : tuple of str
        Files of queries; "-" is standard input.
    outputs : tuple of OutputTarget
        The files for the matches, each in its format.
    threads : int
        Number of working threads.
    index : IndexOptions
        How to build the index of the reference; for an index file, what it holds.
    search : SearchOptions
        Which matches to find.
    device : DeviceOptions
        The backend and the device of the search.
    style : TextStyle
        The options of MUMmer's text.
    sam : SamOptions
        The options of SAM, BAM and CRAM.
    verify : bool
        Whether to compare an index file with its checksums before the search.
    dot_path, dump_tree_path : str or None
        Files for the suffix tree: for Graphviz, and as a table.
    any_letters : bool
        Whether to accept records that are not DNA or RNA, such as proteins.
    no_empty : bool
        Whether a query file without a record is an error.
    paired : bool
        Whether the queries are pairs of reads.
    picture : PictureStyle
        What pictures of the matches show, and how.
    command : str
        The command line, for formats that keep it; empty if there is none.
    summary : bool
        Whether to count what the matches cover, how long they are, and which queries have one.
    """

    reference_path: str
    query_paths: tuple[str, ...]
    outputs: tuple[OutputTarget, ...] = (OutputTarget(),)
    threads: int = 1
    index: IndexOptions = field(default_factory=IndexOptions)
    search: SearchOptions = field(default_factory=SearchOptions)
    device: DeviceOptions = field(default_factory=DeviceOptions)
    style: TextStyle = field(default_factory=TextStyle)
    sam: SamOptions = field(default_factory=SamOptions)
    verify: bool = False
    dot_path: str | None = None
    dump_tree_path: str | None = None
    any_letters: bool = False
    no_empty: bool = False
    paired: bool = False
    picture: PictureStyle = field(default_factory=PictureStyle)
    command: str = field(default="", compare=False)
    summary: bool = False

    @property
    def unique_strands(self) -> int:
        """How many strands are searched for matches unique in the reference; 0 for all matches."""
        is_unique = self.search.uniqueness is not Uniqueness.ALL
        return len(self.search.strands) if is_unique else 0


@dataclass(frozen=True)
class BuildOptions:
    """The options for making an index file.

    Attributes
    ----------
    reference_path : str
        FASTA file of the reference.
    output_path : str
        The index file to write.
    threads : int
        Number of working threads.
    index : IndexOptions
        How to build the index.
    any_letters : bool
        Whether to accept records that are not DNA or RNA, such as proteins.
    """

    reference_path: str
    output_path: str
    threads: int = 1
    index: IndexOptions = field(default_factory=IndexOptions)
    any_letters: bool = False
