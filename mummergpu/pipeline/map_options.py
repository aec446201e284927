"""The options of mapping reads: files, and the options of the steps that do the work."""

from __future__ import annotations

from dataclasses import dataclass, field

from mummergpu.input.blocks.read_files import ReadSource
from mummergpu.mapping.options import MappingOptions
from mummergpu.mapping.placing.insert_sizes import InsertSizes
from mummergpu.matching.options import DeviceOptions
from mummergpu.output.records.sam_options import ReadGroup
from mummergpu.output.sorting.options import SortOptions
from mummergpu.output.targets import OutputTarget
from mummergpu.viterbi.recurrence.model import Costs


@dataclass(frozen=True)
class MapOptions:
    """The options of mapping reads.

    Attributes
    ----------
    reference_path : str
        FASTA file or index file of the reference.
    sources : tuple of ReadFile or MateFiles
        The files of the reads.
    output : OutputTarget
        The file for the alignments.
    threads : int
        Number of working threads.
    seed_length : int or None
        The length of the shortest matches that are looked for; None to choose it from the length of
        the first reads.
    insert_sizes : InsertSizes or None
        The sizes of templates; None to estimate them from the first pairs.
    costs : Costs
        The scores.
    least_score : int
        The least score of an alignment that is reported.
    unpaired : int
        The penalty of mates that are not a proper pair.
    most_secondary : int
        The most secondary alignments of a read.
    most_alternatives : int
        The most places in the tag XA of an alignment; 0 for no such tag. If it is not 0,
        `most_secondary` is.
    memory : int or None
        The most memory for the reference and its tables; None for half of what is free.
    device : DeviceOptions
        The backend and the device of the search.
    read_group : ReadGroup or None
        The read group of all reads; or of those only whose files tell of none.
    keeps_groups : bool
        Whether the read groups stay that headers of the reads tell of.
    comments : bool
        Whether the comments of FASTA and FASTQ are tags.
    sort : SortOptions or None
        What is done with all alignments before they are written.
    gpu_compression : bool
        Whether the device that searches compresses the output.
    verify : bool
        Whether to compare an index file with its checksums first.
    any_letters, no_empty : bool
        As for `options.MatchOptions`.
    refuses_long : bool
        Whether a read that is too long to be mapped is an error; otherwise it stays unmapped.
    command : str
        The command line; empty if there is none.
    block_size : int or None
        About how many bases a block of reads has; None to choose it.
    """

    reference_path: str
    sources: tuple[ReadSource, ...]
    output: OutputTarget
    threads: int = 1
    seed_length: int | None = None
    insert_sizes: InsertSizes | None = None
    costs: Costs = field(default_factory=Costs)
    least_score: int = 30
    unpaired: int = 17
    most_secondary: int = 0
    most_alternatives: int = 0
    memory: int | None = None
    device: DeviceOptions = field(default_factory=DeviceOptions)
    read_group: ReadGroup | None = None
    keeps_groups: bool = False
    comments: bool = False
    sort: SortOptions | None = None
    gpu_compression: bool = False
    verify: bool = False
    any_letters: bool = False
    no_empty: bool = False
    refuses_long: bool = False
    command: str = field(default="", compare=False)
    block_size: int | None = None

    @property
    def read_paths(self) -> tuple[str, ...]:
        """The files of the reads."""
        return tuple(path for source in self.sources for path in source.paths)

    def mapping(self, seed_length: int, by_windows: bool) -> MappingOptions:
        """Return how reads are mapped.

        Parameters
        ----------
        seed_length : int
            The length of the shortest matches that are looked for.
        by_windows : bool
            Whether only matches count that contain a whole window of their read.
        """
        return MappingOptions(
            seed_length,
            self.costs,
            unpaired=self.unpaired,
            least_score=self.least_score,
            by_windows=by_windows,
            most_secondary=self.most_alternatives or self.most_secondary,
            has_alternatives=self.most_alternatives > 0,
        )
