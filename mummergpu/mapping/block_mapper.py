"""Maps blocks of reads: from their matches to alignments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.mapping.alignments.equal_letters import discount_equal_letters
from mummergpu.mapping.alignments.paths import PathArrays, trace_paths
from mummergpu.mapping.alignments.replacement import replace_reads
from mummergpu.mapping.alignments.row_layout import fill_rows, list_rows
from mummergpu.mapping.candidates.candidates import Candidates, Reads, no_candidates
from mummergpu.mapping.candidates.found_candidates import FoundCandidates
from mummergpu.mapping.options import MappingOptions
from mummergpu.mapping.placing.alternatives import list_alternatives
from mummergpu.mapping.placing.choice import CHOICE_NUMBERS, CHOSEN
from mummergpu.mapping.placing.evidence import (
    credits_of_qualities,
    quality_thresholds,
    weights_of_units,
)
from mummergpu.mapping.placing.insert_sizes import InsertSizes
from mummergpu.mapping.placing.joint_scores import new_tops
from mummergpu.mapping.placing.marked_diagonals import new_marks
from mummergpu.mapping.placing.pair_sizes import PairSizes
from mummergpu.mapping.placing.second_pass import (
    DoubtfulReads,
    doubtful_reads,
    list_badly_placed,
    part_of_reads,
)
from mummergpu.mapping.placing.secondary import Secondary, list_secondary
from mummergpu.mapping.placing.split_reads import split_reads
from mummergpu.mapping.placing.template_sizes import measure_templates
from mummergpu.mapping.placing.templates import map_templates
from mummergpu.mapping.seeding.candidate_finder import CandidateFinder, pairing_of
from mummergpu.runtime.arrays import Int32Array, Int64Array, UInt32Array
from mummergpu.sequence.codes import CodeArray, padded_reverse_complements
from mummergpu.sequence.mems import BlockMems
from mummergpu.viterbi.tiles.scratch import Scratch, new_scratch


@dataclass(frozen=True)
class _Choices:
    """What is chosen for each read of a block.

    The candidates are valid until the same mapper and thread choose for another block.
    """

    reverse_codes: CodeArray
    candidates: Candidates
    numbers: Int32Array

    @property
    def rows(self) -> Int32Array:
        """The candidate of each read, -1 if it has none: a view."""
        return self.numbers[:, CHOSEN]


@dataclass(frozen=True)
class _Paths:
    """The paths of alignments (`paths.trace_paths`)."""

    cigar_offsets: Int64Array
    cigars: UInt32Array
    begins: Int64Array
    ends: Int64Array
    edit_distances: Int32Array

    @classmethod
    def of_rows(cls, count: int, most_operations: int) -> _Paths:
        """Return unfilled arrays for so many rows and operations."""
        return cls(
            np.empty(count + 1, dtype=np.int64),
            np.empty(most_operations, dtype=np.uint32),
            np.empty(count, dtype=np.int64),
            np.empty(count, dtype=np.int64),
            np.empty(count, dtype=np.int32),
        )

    @property
    def arrays(self) -> PathArrays:
        """The arrays as compiled functions take them."""
        return self.cigar_offsets, self.cigars, self.begins, self.ends, self.edit_distances


class BlockMapper:
    """Maps blocks of reads; several threads share one.

    Parameters
    ----------
    reference : Reference
        The reference.
    options : MappingOptions
        How to map.
    find_more : callable or None
        Returns the shorter matches that a second pass begins with; None for no second pass.
    """

    def __init__(
        self,
        reference: Reference,
        options: MappingOptions,
        find_more: Callable[[ReadBlock], BlockMems] | None = None,
    ) -> None:
        self._find_more = find_more
        self._reference = reference
        self._starts = reference.record_starts
        ends = reference.record_starts + reference.record_lengths
        self._target = (reference.padded_codes, self._starts, ends)
        self._options = options
        self._costs = options.costs.as_tuple()
        self._credits = credits_of_qualities(options.costs, True)
        self._odds = (weights_of_units(), quality_thresholds())
        self._finder = CandidateFinder(self._target, options)

    def pair_sizes(self, sizes: InsertSizes | None) -> PairSizes:
        """Return what `map_block` needs to know about the sizes of templates."""
        return PairSizes.of_sizes(sizes, self._options.unpaired)

    def insert_sizes(self, block: ReadBlock, mems: BlockMems) -> Int64Array:
        """Return the sizes of the templates whose mates are well placed and face each other.

        Parameters
        ----------
        block : ReadBlock
            Pairs.
        mems : dict of Strand to MemColumns
            Their matches of at least the seed length.

        Returns
        -------
        ndarray, dtype=int64
            The sizes in bases, in the order of the pairs.
        """
        unknown = self.pair_sizes(None)
        found = self._search(block, self._finder.seeds_of(mems), unknown)
        choices = self._choose(block, found, unknown)
        sizes = np.empty(block.query_count // 2, dtype=np.int64)
        table = choices.candidates.arrays
        return sizes[: measure_templates(block.offsets, choices.numbers, table, sizes)]

    def map_block(self, block: ReadBlock, mems: BlockMems, sizes: PairSizes) -> AlignmentColumns:
        """Return the alignments of a block of reads.

        Parameters
        ----------
        block : ReadBlock
            The reads.
        mems : dict of Strand to MemColumns
            Their matches of at least the seed length.
        sizes : PairSizes
            The sizes of the templates of pairs.

        Returns
        -------
        AlignmentColumns
            The rows of all reads, in their order.
        """
        return self._with_second_pass(block, *self.map_once(block, mems, sizes), sizes)

    def map_found(
        self, block: ReadBlock, found: FoundCandidates, sizes: PairSizes
    ) -> AlignmentColumns:
        """Return what `map_block` does, of reads whose candidates a device has found."""
        choices = self._choose(block, lambda reads: self._finder.spread(block, found), sizes)
        return self._with_second_pass(block, *self._both(block, choices, sizes), sizes)

    def _with_second_pass(
        self, block: ReadBlock, columns: AlignmentColumns, doubtful: DoubtfulReads, sizes: PairSizes
    ) -> AlignmentColumns:
        """Return the alignments of a block after those of doubtful reads are made once more."""
        if self._find_more is None or doubtful.numbers.size == 0:
            return columns
        part = part_of_reads(block, doubtful.numbers)
        other = self.map_again(part, doubtful.candidates, self._find_more(part), sizes)
        return replace_reads(columns, doubtful.numbers, other)

    def map_once(
        self, block: ReadBlock, mems: BlockMems, sizes: PairSizes
    ) -> tuple[AlignmentColumns, DoubtfulReads]:
        """Return the alignments of a block of reads without a second pass.

        Returns
        -------
        columns : AlignmentColumns
            The rows of all reads, in their order.
        doubtful : DoubtfulReads
            The reads that matches shorter than the seed length may place better.
        """
        found = self._search(block, self._finder.seeds_of(mems), sizes)
        return self._both(block, self._choose(block, found, sizes), sizes)

    def _both(
        self, block: ReadBlock, choices: _Choices, sizes: PairSizes
    ) -> tuple[AlignmentColumns, DoubtfulReads]:
        """Return the alignments that are chosen, and the reads that may have better ones."""
        # The search for other places scores candidates again, which choices must not depend on.
        doubtful = self._doubtful(block, choices)
        return self._columns(block, choices, sizes), doubtful

    def map_again(
        self, part: ReadBlock, earlier: Candidates, mems: BlockMems, sizes: PairSizes
    ) -> AlignmentColumns:
        """Return the alignments of doubtful reads in the second pass.

        Parameters
        ----------
        part : ReadBlock
            The reads (`second_pass.part_of_reads`).
        earlier : Candidates
            What the first pass found of them (`DoubtfulReads`).
        mems : dict of Strand to MemColumns
            Their matches of the second pass.
        sizes : PairSizes
            The sizes of the templates of pairs.

        Returns
        -------
        AlignmentColumns
            The rows of these reads, which are numbered from 0.
        """
        choices = self._choose(part, self._search(part, mems, sizes, earlier), sizes)
        return self._columns(part, choices, sizes)

    def _doubtful(self, block: ReadBlock, choices: _Choices) -> DoubtfulReads:
        """Return the reads that may have a better place, with their mates."""
        options = self._options
        reads = np.empty(block.query_count, dtype=np.int64)
        count = list_badly_placed(
            block.offsets,
            choices.numbers,
            choices.candidates.numbers,
            2 if block.paired else 1,
            options.seed_length,
            self._costs,
            reads,
        )
        return doubtful_reads(reads[:count], choices.candidates)

    def _search(
        self,
        block: ReadBlock,
        mems: BlockMems,
        sizes: PairSizes,
        earlier: Candidates | None = None,
    ) -> Callable[[Reads], Candidates]:
        """Return what finds the candidates of a block's reads from their seeds."""
        qualities = (block.base_qualities, self._credits)
        known = no_candidates(block.query_count) if earlier is None else earlier
        return lambda reads: self._finder.find(block, reads, qualities, mems, known, sizes)

    def _choose(
        self, block: ReadBlock, candidates: Callable[[Reads], Candidates], sizes: PairSizes
    ) -> _Choices:
        options = self._options
        reverse_codes = padded_reverse_complements(block.padded_codes, block.offsets)
        reads = (block.offsets, block.padded_codes, reverse_codes)
        qualities = (block.base_qualities, self._credits)
        table = candidates(reads)
        choices = np.empty((block.query_count, CHOICE_NUMBERS), dtype=np.int32)
        map_templates(
            2 if block.paired else 1,
            reads,
            (block.names, block.name_offsets),
            self._target,
            self._costs,
            qualities,
            (options.seed_length, options.margin, options.least_score),
            pairing_of(sizes, options.unpaired),
            self._odds,
            self._scratch(block),
            new_tops(),
            new_marks(block.longest),
            table.arrays,
            choices,
        )
        return _Choices(reverse_codes, table, choices)

    def _scratch(self, block: ReadBlock) -> Scratch:
        longest = max(1, block.longest)
        return new_scratch(longest, self._options.costs.most_gap)

    def _secondary(self, block: ReadBlock, choices: _Choices, extra: Int64Array) -> Secondary:
        """Return the candidates of which secondary alignments are made, if they are wanted."""
        table, options = choices.candidates, self._options
        offsets = np.zeros(block.query_count + 1, dtype=np.int64)
        leading = np.zeros(block.query_count, dtype=np.int64)
        if options.most_secondary == 0:
            return offsets, leading, np.empty(0, dtype=np.int64)
        most = int(table.counts.max(initial=1))
        found = offsets, leading, np.empty(int(table.counts.sum()), dtype=np.int64)
        list_others = list_alternatives if options.has_alternatives else list_secondary
        list_others(
            (block.offsets, block.padded_codes, choices.reverse_codes),
            self._target,
            self._costs,
            (options.least_score, options.most_secondary),
            self._scratch(block),
            (np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)),
            table.arrays,
            (choices.rows.astype(np.int64), extra),
            found,
        )
        return offsets, leading, found[2][: offsets[-1]]

    def _columns(self, block: ReadBlock, choices: _Choices, sizes: PairSizes) -> AlignmentColumns:
        """Return each read's primary alignment, its supplementary and its secondary ones."""
        table, offsets = choices.candidates, block.offsets
        read_count = block.query_count
        extra = np.empty(read_count, dtype=np.int64), np.empty(read_count, dtype=np.uint8)
        split_reads(
            *(offsets, table.arrays, choices.numbers, self._costs),
            *(self._options.least_score, self._odds, extra),
        )
        secondary = self._secondary(block, choices, extra[0])
        count = read_count + int(np.count_nonzero(extra[0] >= 0)) + secondary[2].size
        rows = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        primaries = np.empty(read_count, dtype=np.int64)
        most_operations = list_rows(
            *(offsets, choices.numbers, extra[0], secondary, table.arrays, rows, primaries)
        )
        paths = self._trace(block, choices, rows, most_operations)
        reads, candidates = rows
        columns = (
            reads,
            np.empty(count, dtype=np.uint16),
            np.empty(count, dtype=np.int32),
            np.empty(count, dtype=np.int64),
            np.empty(count, dtype=np.uint8),
            np.empty(count, dtype=np.int32),
            np.empty(count, dtype=np.int64),
            np.empty(count, dtype=np.int32),
            np.empty(count, dtype=np.int32),
        )
        fill_rows(
            offsets,
            block.paired,
            sizes.proper,
            self._costs,
            choices.numbers,
            extra,
            table.arrays,
            candidates,
            primaries,
            self._starts,
            paths.arrays,
            columns,
        )
        _, flags, records, positions, qualities, template_lengths = columns[:6]
        mate_rows, scores, seconds = columns[6:]
        made = AlignmentColumns(
            reads,
            flags,
            records,
            positions,
            qualities,
            paths.cigar_offsets,
            paths.cigars[: paths.cigar_offsets[-1]],
            template_lengths,
            mate_rows,
            scores,
            seconds,
            paths.edit_distances,
        )
        discount_equal_letters(block, made, self._reference)
        return made

    def _trace(
        self,
        block: ReadBlock,
        choices: _Choices,
        rows: tuple[Int64Array, Int64Array],
        most_operations: int,
    ) -> _Paths:
        """Return the paths of rows, each a read and its candidate."""
        paths = _Paths.of_rows(rows[0].size, most_operations)
        trace_paths(
            rows,
            (block.offsets, block.padded_codes, choices.reverse_codes),
            self._target,
            self._costs,
            self._scratch(block),
            choices.candidates.arrays,
            np.empty(2 * max(1, block.longest) + 5, dtype=np.uint32),
            paths.arrays,
        )
        return paths
