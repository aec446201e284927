"""The options of mapping reads; they are checked on construction."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import field
from typing import Final

from mummergpu.errors import OptionClashError, OptionError
from mummergpu.input.blocks.read_files import ReadSource
from mummergpu.mapping.options import InsertSizes, MappingOptions
from mummergpu.output.options import USUAL_STYLE, ReadGroup, RecordStyle, SortOptions
from mummergpu.output.targets import OutputTarget
from mummergpu.pipeline.options import RunOptions
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import (
    check_bool,
    check_int,
    instance,
    keep_values,
    one_of,
    optional_positive,
    texts,
)
from mummergpu.viterbi.recurrence.model import LARGEST_COST, Costs

LONGEST_SEED: Final = 200
"""The maximum seed length that a user may ask for."""

ASKED_ORIENTATIONS: Final = ("fr", "rf", "ff")
"""The orientations of mates that a user may set for all libraries."""

LONG_READS: Final = {"unmapped": False, "error": True}
"""Whether reads that are too long to be mapped are an error; otherwise they stay unmapped."""


@frozen
class MapOptions(RunOptions):
    """The options of mapping reads.

    Attributes
    ----------
    sources : tuple of ReadFile, MateFiles or ReadsInMemory
        The reads.
    outputs : tuple of OutputTarget
        The files for the alignments; empty if they stay in memory.
    seed_length : int or None
        The minimum length of seeds; None to choose it from the length of the first reads.
    insert_sizes : InsertSizes or None
        The insert sizes; None to estimate them from the first pairs.
    orientation : str or None
        The orientation of mates (`insert_size.ORIENTATIONS`); None for that of the first pairs, or
        for mates that face each other if `insert_sizes` is given.
    costs : Costs
        The scores of alignments.
    min_score : int
        The minimum score of a reported alignment.
    unpaired : int
        The penalty of mates that are not a proper pair.
    max_secondary : int
        The maximum number of secondary alignments of a read.
    max_alternatives : int
        The maximum number of hits in the XA tag of an alignment; 0 for no XA tag. One of this and
        `max_secondary` is 0.
    memory : int or None
        The memory limit for the reference and its tables; None for half of the free memory.
    read_group : ReadGroup or None
        The read group of all reads, or of those whose files have none.
    keeps_groups : bool
        Whether to keep the read groups in the headers of the input.
    comments : bool
        Whether the comments of FASTA and FASTQ are tags.
    sort : SortOptions or None
        How to sort alignments and flag duplicates; None for the order of the reads.
    gpu_compression : bool
        Whether the device that searches compresses the output.
    refuses_long : bool
        Whether a read that is too long to be mapped is an error; otherwise it stays unmapped.
    max_occurrences : int
        If a read has more matches on a strand, only its rarest seeds are used.
    style : RecordStyle
        How alignments are written.
    ignore_alt : bool
        Whether to treat contigs in the ``.alt`` file of bwa-kit next to the reference like others.
    circular : sequence of str
        The names of circular records of the reference, ``all`` for all records.
    unmapped : tuple of OutputTarget
        The FASTQ file of the unmapped reads; or one for each mate.
    block_size : int or None
        The approximate bases of a block of reads; None to choose it.
    """

    sources: tuple[ReadSource, ...]
    outputs: tuple[OutputTarget, ...] = (OutputTarget(format="sam"),)
    seed_length: int | None = None
    insert_sizes: InsertSizes | None = None
    orientation: str | None = None
    costs: Costs = field(default_factory=Costs)
    min_score: int = 30
    unpaired: int = 17
    max_secondary: int = 0
    max_alternatives: int = 0
    memory: int | None = None
    read_group: ReadGroup | None = None
    keeps_groups: bool = False
    comments: bool = False
    sort: SortOptions | None = None
    gpu_compression: bool = False
    refuses_long: bool = False
    max_occurrences: int = 300
    style: RecordStyle = USUAL_STYLE
    ignore_alt: bool = False
    circular: Sequence[str] = ()
    unmapped: tuple[OutputTarget, ...] = ()
    block_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.costs.check()
        seed_length = self.seed_length
        if seed_length is not None:
            seed_length = check_int("seed_length", seed_length, 1, LONGEST_SEED)
        if self.orientation is not None:
            one_of("orientation", self.orientation, ASKED_ORIENTATIONS)
        keep_values(
            self,
            seed_length=seed_length,
            min_score=check_int("min_score", self.min_score),
            unpaired=check_int("unpaired", self.unpaired, 0, LARGEST_COST),
            max_secondary=check_int("max_secondary", self.max_secondary),
            max_alternatives=check_int("max_xa", self.max_alternatives),
            max_occurrences=check_int("max_occurrences", self.max_occurrences, 1),
            memory=optional_positive("max_memory", self.memory),
            comments=check_bool("comments", self.comments),
            gpu_compression=check_bool("gpu_compression", self.gpu_compression),
            circular=texts("circular", self.circular),
        )
        if self.max_secondary and self.max_alternatives:
            text = "other places are secondary alignments, or in XA, not both"
            raise OptionClashError("max_xa", "max_secondary", text)
        if len(self.unmapped) > 2:
            raise OptionError("unmapped", f"{len(self.unmapped)} files; pairs have two at most")
        instance("style", self.style, RecordStyle)
        self.style.check_formats([target.format for target in self.outputs])
        _refuse_alternative_contigs(self.reference_path, check_bool("ignore_alt", self.ignore_alt))
        if self.gpu_compression and self.device.backend == "cpu":
            text = "needs a GPU, and the backend is 'cpu'"
            raise OptionClashError("gpu_compression", "backend=cpu", text)

    @property
    def read_paths(self) -> tuple[str, ...]:
        """The files of the reads."""
        return tuple(path for source in self.sources for path in source.paths)

    @property
    def writes_xa(self) -> bool:
        """Whether alternative hits become the XA tag of an alignment."""
        return self.max_alternatives > 0

    def mapping(self, seed_length: int, by_windows: bool) -> MappingOptions:
        """Return how reads are mapped."""
        # Secondary and alternative hits need all seeds.
        max_hits = self.max_alternatives or self.max_secondary
        return MappingOptions(
            seed_length,
            self.costs,
            unpaired=self.unpaired,
            min_score=self.min_score,
            by_windows=by_windows,
            max_occurrences=None if max_hits else self.max_occurrences,
            max_secondary=max_hits,
            has_alternatives=self.writes_xa,
        )


def _refuse_alternative_contigs(reference_path: str, are_ignored: bool) -> None:
    """Refuse a reference with a file of alternative contigs, unless the file is ignored."""
    path = reference_path + ".alt"
    if not are_ignored and os.path.exists(path):
        text = f"'{path}' names alternative contigs, and map does not prefer others to them"
        raise OptionError("ignore_alt", f"{text}; with this option, all contigs are alike")
