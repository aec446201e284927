"""Maps blocks of reads: from their matches to alignments."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.circular_records import NO_CIRCLES, UnrolledReference
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.block_rows import (
    BADLY_PLACED,
    PlacedReads,
    new_placed_reads,
    place_reads,
    with_secondary,
    write_rows,
)
from mummergpu.mapping.alignments.columns import (
    OF_PAIRS,
    AlignmentColumns,
    new_columns,
    replace_reads,
)
from mummergpu.mapping.alignments.origin_cuts import cut_at_origins
from mummergpu.mapping.alignments.paths import discount_equal_letters
from mummergpu.mapping.candidates.candidates import (
    Candidates,
    FoundCandidates,
    Qualities,
    Reads,
    Scoring,
    Target,
    credits_of_qualities,
    likelihoods_of_scores,
    quality_thresholds,
)
from mummergpu.mapping.candidates.key_sort import new_sort_room
from mummergpu.mapping.options import InsertSizes, MappingOptions
from mummergpu.mapping.placing.choice import Names, PlacingRoom
from mummergpu.mapping.placing.insert_size import MEASURED, PairSizes, measure_templates
from mummergpu.mapping.placing.mapping_quality import Odds
from mummergpu.mapping.placing.pairing import Pairing
from mummergpu.mapping.placing.refinement import new_tops
from mummergpu.mapping.placing.rescue import new_marks
from mummergpu.mapping.placing.second_pass import (
    MATCHES_AT_ONCE,
    READS_AT_FIRST,
    DoubtfulReads,
    doubtful_reads,
    part_of_reads,
)
from mummergpu.mapping.placing.secondary import (
    Secondary,
    list_alternatives,
    list_secondary,
    no_secondary,
)
from mummergpu.mapping.seeding.candidate_search import CandidateFinder
from mummergpu.mapping.seeding.windows import without_frequent_pairs
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import flattened
from mummergpu.runtime.scratch import ThreadArray
from mummergpu.sequence.mems import BlockMems, match_count
from mummergpu.viterbi.recurrence.operations import OperationArray
from mummergpu.viterbi.tiles.band import Scratch, new_scratch


class _Placed(NamedTuple):
    """The choice for each read of a block, and the candidates that it is made of.

    All are valid until the same mapper and thread choose for another block. The first
    four are `flattened`; the other two are `table` and `chosen` as they are.
    """

    scoring: Scoring
    pairing: Pairing
    table: Candidates
    chosen: PlacedReads
    candidates: Candidates
    reads: PlacedReads


class _Room(threading.local):
    """The memory in which each thread places blocks of up to `most` reads of `longest` bases.

    The system clears new memory page by page, and a part would need some fifty MB of it.
    """

    longest = most = 0
    placing: PlacingRoom  # Both are `flattened`.
    scratch: Scratch
    flank: OperationArray  # For the operations of a flank.
    placed: PlacedReads
    flattened: PlacedReads  # The same.

    def grow(self, block: ReadBlock, max_gap: int) -> None:
        """Make the memory suffice for the reads of a block."""
        if block.query_count > self.most:
            self.most = block.query_count + block.query_count // 8
            self.placed = new_placed_reads(self.most)
            self.flattened = flattened(self.placed)
        longest = max(1, block.longest)
        if longest > self.longest:
            scratch = new_scratch(longest, max_gap)
            self.placing = flattened(PlacingRoom(scratch, new_tops(), new_marks(longest)))
            self.scratch, self.longest = flattened(scratch), longest
            self.flank = np.empty(2 * longest + 5, dtype=np.uint32)


class BlockMapper:
    """Maps blocks of reads; several threads share one.

    `find_more` returns the shorter matches that a second pass begins with; None for no second pass.
    `is_chosen` says that the search finds only the matches that count (`seed_rule`).
    """

    def __init__(
        self,
        reference: Reference,
        options: MappingOptions,
        find_more: Callable[[ReadBlock], BlockMems] | None = None,
        is_chosen: bool = False,
    ) -> None:
        self._find_more = find_more
        self._reference = reference
        ends = reference.record_starts + reference.record_lengths
        self._unrolled = reference if isinstance(reference, UnrolledReference) else None
        circles = NO_CIRCLES if self._unrolled is None else self._unrolled.circles
        self._target = Target(reference.padded_codes, reference.record_starts, ends, circles)
        self._options = options
        self._costs = options.costs
        self._credits = credits_of_qualities(options.costs)
        self._odds = Odds(likelihoods_of_scores(), quality_thresholds())
        self._finder = CandidateFinder(options, is_chosen)
        self._room = _Room()
        self._reverse_codes = ThreadArray(np.uint8)

    @property
    def is_linear(self) -> bool:
        """Whether no record of the reference is circular."""
        return self._unrolled is None

    def pair_sizes(self, sizes: InsertSizes | None) -> PairSizes:
        """Return the facts about template sizes that `map_block` needs."""
        return PairSizes.of_sizes(sizes, self._options.unpaired)

    def insert_sizes(self, block: ReadBlock, mems: BlockMems) -> Int64Array:
        """Return the rows of `insert_size.measure_templates` for templates with placed mates.

        The matches are of at least the seed length.
        """
        seeds = without_frequent_pairs(self._finder.seeds_of(mems, block, self._target.codes))
        placed = self._place(block, seeds, self.pair_sizes(None))
        measured = np.empty((MEASURED, block.query_count // 2), dtype=np.int64)
        circles = self._target.circles
        choices = placed.reads.placements.choices
        count = measure_templates(block.offsets, choices, placed.table, circles, measured)
        return measured[:, :count]

    def map_block(self, block: ReadBlock, mems: BlockMems, sizes: PairSizes) -> AlignmentColumns:
        """Return the alignments of a block, whose matches have at least the seed length."""
        return self._with_second_pass(block, *self.map_once(block, mems, sizes), sizes)

    def map_found(
        self, block: ReadBlock, found: FoundCandidates, sizes: PairSizes
    ) -> AlignmentColumns:
        """Return the alignments of a block whose candidates a device has found (`map_block`)."""
        both = self._both(block, self._place(block, found, sizes))
        return self._with_second_pass(block, *both, sizes)

    def _with_second_pass(
        self, block: ReadBlock, columns: AlignmentColumns, doubtful: DoubtfulReads, sizes: PairSizes
    ) -> AlignmentColumns:
        """Return the alignments of a block after its doubtful reads are mapped again."""
        if self._find_more is None:
            return columns
        begin, count, density = 0, READS_AT_FIRST, 0.0
        while begin < doubtful.numbers.size:
            some = doubtful.part(begin, begin + count)
            part = part_of_reads(block, some.numbers)
            mems = self._find_more(part)
            other = self.map_again(part, some.candidates, mems, sizes)
            columns = replace_reads(columns, some.numbers, other)
            begin += count
            # Few blocks have this many doubtful reads; those of a satellite have many matches.
            density = max(density, match_count(mems) / part.query_count)
            count = max(READS_AT_FIRST, int(MATCHES_AT_ONCE / (density + 0.01)) // 2 * 2)
        return columns

    def map_once(
        self, block: ReadBlock, mems: BlockMems, sizes: PairSizes
    ) -> tuple[AlignmentColumns, DoubtfulReads]:
        """Return the alignments of a block, and the reads that shorter matches may place better."""
        seeds = self._finder.seeds_of(mems, block, self._target.codes)
        return self._both(block, self._place(block, seeds, sizes))

    def _both(self, block: ReadBlock, placed: _Placed) -> tuple[AlignmentColumns, DoubtfulReads]:
        """Return the alignments that are chosen, and the reads that may have better ones."""
        # The search for other places scores candidates again, which choices must not depend on.
        reads = placed.reads
        numbers = reads.badly_placed[: reads.counts[BADLY_PLACED]].copy()
        doubtful = doubtful_reads(numbers, placed.candidates)
        return self._columns(block, placed), doubtful

    def map_again(
        self, part: ReadBlock, earlier: Candidates, mems: BlockMems, sizes: PairSizes
    ) -> AlignmentColumns:
        """Return the alignments of doubtful reads in the second pass.

        `part` has these reads (`second_pass.part_of_reads`), numbered from 0, with the results of
        the first pass (`DoubtfulReads`) and their matches of the second pass.
        """
        return self._columns(part, self._place(part, mems, sizes, earlier))

    def _place(
        self,
        block: ReadBlock,
        found: BlockMems | FoundCandidates,
        sizes: PairSizes,
        earlier: Candidates | None = None,
    ) -> _Placed:
        """Choose places for reads, of their seeds and earlier candidates, or of a device's."""
        room, codes = self._room, block.padded_codes
        room.grow(block, self._costs.max_gap)
        scoring = flattened(
            Scoring(
                # The reverse complements are filled when candidates are found.
                Reads(block.offsets, codes, self._reverse_codes.of_size(codes.size)),
                self._target,
                self._costs,
                Qualities(block.base_qualities, self._credits),
            )
        )
        pairing = sizes.pairing(block.paired, sizes.libraries_of(block))
        pairing = flattened(pairing._replace(circles=self._target.circles))
        facts = scoring, pairing, block.paired
        if isinstance(found, FoundCandidates):
            candidates, table = self._finder.of_device(*facts, found)
        else:
            candidates, table = self._finder.find(*facts, found, earlier)
        names = Names(block.names, block.name_offsets)
        place_reads(
            *(scoring, names, self._options.limits, pairing, self._odds),
            *(room.placing, table, room.flattened),
        )
        return _Placed(scoring, pairing, table, room.flattened, candidates, room.placed)

    def _secondary(self, block: ReadBlock, placed: _Placed) -> Secondary:
        """Return the candidates that become secondary alignments."""
        table, options, placements = placed.candidates, self._options, placed.reads.placements
        found = no_secondary(block.query_count)
        found = found._replace(candidates=np.empty(int(table.counts.sum()), dtype=np.int64))
        list_others = list_alternatives if options.has_alternatives else list_secondary
        list_others(
            placed.scoring,
            options.min_score,
            options.max_secondary,
            self._room.scratch,
            new_sort_room(int(table.counts.max(initial=1))),
            placed.table,
            placements.choices.candidates,
            placements.extra.candidates,
            found,
        )
        return found._replace(candidates=found.candidates[: found.offsets[-1]])

    def _columns(self, block: ReadBlock, placed: _Placed) -> AlignmentColumns:
        """Return each read's primary alignment, its supplementary and its secondary ones."""
        reads, chosen = placed.reads, placed.chosen
        if self._options.max_secondary > 0:
            secondary = self._secondary(block, placed)
            reads = chosen = with_secondary(reads, secondary, placed.candidates, block.offsets)
        _, rows, operations = reads.counts.tolist()
        columns = new_columns(rows, operations)
        facts = placed.scoring, placed.pairing, placed.table
        write_rows(*facts, chosen, self._room.scratch, self._room.flank, columns)
        columns = columns._replace(cigars=columns.cigars[: columns.cigar_offsets[-1]])
        reference = self._reference
        if self._unrolled is not None:
            told = placed.scoring, placed.table, reads.rows, self._unrolled.originals
            columns, reference = cut_at_origins(*told, columns), self._unrolled.original
        discount_equal_letters(block, columns, reference)
        return without_missing(block, columns)


def without_missing(block: ReadBlock, columns: AlignmentColumns) -> AlignmentColumns:
    """Return alignments without the rows of mates that single reads do not have."""
    if not block.single_count:
        return columns
    columns = columns.taken(~block.missing[columns.reads])
    is_single = np.repeat(block.missing[1::2], 2)[columns.reads]
    columns.flags[is_single] &= ~np.uint16(OF_PAIRS)
    return columns
