"""The options of a search and of making an index; they are checked on construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, field

from mummergpu.drawing.picture import PictureStyle
from mummergpu.errors import OptionError
from mummergpu.index.options import IndexOptions
from mummergpu.matching.options import DeviceOptions, SearchOptions, Uniqueness
from mummergpu.output.options import SamOptions, TextStyle
from mummergpu.output.targets import OutputTarget
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import check_bool, instance, keep_values, path, positive


@frozen
class RunOptions:
    """The reference of a run, and how and where it runs.

    Attributes
    ----------
    reference_path : str
        FASTA file or index file of the reference.
    threads : int
        Number of working threads.
    device : DeviceOptions
        The backend and the device of the search.
    verify : bool
        Whether to compare an index file with its checksums first.
    no_empty : bool
        Whether a file without a record is an error.
    command : str
        The command line, for formats that keep it; empty if there is none.
    """

    reference_path: str
    _: KW_ONLY
    threads: int = 1
    device: DeviceOptions = field(default_factory=DeviceOptions)
    verify: bool = False
    no_empty: bool = False
    command: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        keep_values(
            self,
            reference_path=path("reference", self.reference_path),
            threads=positive("threads", self.threads),
            no_empty=check_bool("no_empty", self.no_empty),
        )


def refuse_single_mates(paths: Sequence[str], pair: bool) -> None:
    """Refuse files of pairs if one of them has no partner."""
    if pair and len(paths) > 1 and len(paths) % 2:
        raise OptionError("pair", "needs one file of pairs, or two files for each set of pairs")


@frozen
class MatchOptions(RunOptions):
    """The options of a search.

    Attributes
    ----------
    query_paths : tuple of str
        Files of queries; "-" is standard input.
    outputs : tuple of OutputTarget
        The files for the matches, each in its format.
    index : IndexOptions
        How to build the index of the reference; for an index file, how it was built.
    search : SearchOptions
        Which matches to find.
    style : TextStyle
        The options of MUMmer's text.
    sam : SamOptions
        The options of SAM and BAM.
    paired : bool
        Whether the queries are pairs of reads.
    any_letters : bool
        Whether to accept records that are not DNA or RNA, such as proteins.
    picture : PictureStyle
        What pictures of the matches show, and how.
    summary : bool
        Whether to summarize covered bases, match lengths, and queries with a match.
    """

    query_paths: tuple[str, ...]
    outputs: tuple[OutputTarget, ...] = (OutputTarget(),)
    index: IndexOptions = field(default_factory=IndexOptions)
    search: SearchOptions = field(default_factory=SearchOptions)
    style: TextStyle = field(default_factory=TextStyle)
    sam: SamOptions = field(default_factory=SamOptions)
    paired: bool = False
    any_letters: bool = False
    picture: PictureStyle = field(default_factory=PictureStyle)
    summary: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        instance("style", self.style, TextStyle)
        instance("sam", self.sam, SamOptions)
        keep_values(
            self,
            paired=check_bool("pair", self.paired),
            any_letters=check_bool("any_letters", self.any_letters),
        )
        refuse_single_mates(self.query_paths, self.paired)

    @property
    def unique_strands(self) -> int:
        """How many strands are searched for matches unique in the reference; 0 for all matches."""
        is_unique = self.search.uniqueness is not Uniqueness.ALL
        return len(self.search.strands) if is_unique else 0


@frozen
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
    circular : sequence of str
        The names of circular records, ``all`` for all: the index then serves only to map reads.
    """

    reference_path: str
    output_path: str
    threads: int = 1
    index: IndexOptions = field(default_factory=IndexOptions)
    any_letters: bool = False
    circular: Sequence[str] = ()
