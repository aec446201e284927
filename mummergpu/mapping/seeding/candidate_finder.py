"""Finds the candidates of blocks of reads from their matches."""

from __future__ import annotations

import numpy as np

from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.mapping.candidates.candidates import (
    NUMBERS,
    RESCUE_ROWS,
    Beside,
    Candidates,
    Reads,
    Target,
)
from mummergpu.mapping.candidates.found_candidates import FoundCandidates
from mummergpu.mapping.candidates.ungapped import Qualities
from mummergpu.mapping.options import MappingOptions
from mummergpu.mapping.placing.joint_scores import new_tops
from mummergpu.mapping.placing.pair_sizes import PairSizes
from mummergpu.mapping.placing.pairing import Pairing
from mummergpu.mapping.seeding.candidate_search import find_candidates
from mummergpu.mapping.seeding.windows import matches_of_windows, shortest_sure_match
from mummergpu.runtime.thread_array import ThreadArray
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import BlockMems


def pairing_of(sizes: PairSizes, unpaired: int) -> Pairing:
    """Return what is known about the sizes of templates as compiled functions take it."""
    return sizes.first, sizes.last, unpaired, *sizes.proper, sizes.penalties


def known_beside(options: MappingOptions) -> Beside:
    """Return what is known about the bases beside a match without others near it."""
    if options.by_windows:
        return shortest_sure_match(options.seed_length), options.seed_length
    return options.seed_length, 0


class CandidateFinder:
    """Finds candidates; several threads share one."""

    def __init__(self, target: Target, options: MappingOptions) -> None:
        self._target = target
        self._options = options
        self._costs = options.costs.as_tuple()
        self._diagonals, self._numbers = ThreadArray(np.int64), ThreadArray(np.int32)

    def seeds_of(self, mems: BlockMems) -> BlockMems:
        """Return the matches that count: those of whole windows, or all."""
        options = self._options
        if not options.by_windows:
            return mems
        return {s: matches_of_windows(one, options.seed_length) for s, one in mems.items()}

    def find(
        self,
        block: ReadBlock,
        reads: Reads,
        qualities: Qualities,
        mems: BlockMems,
        earlier: Candidates,
        sizes: PairSizes,
    ) -> Candidates:
        """Return the candidates of a block that may matter."""
        options = self._options
        forward, reverse = (
            (one.offsets, one.query_starts, one.reference_starts, one.lengths)
            for one in (mems[Strand.FORWARD], mems[Strand.REVERSE])
        )
        per_read = np.diff(forward[0]) + np.diff(reverse[0]) + earlier.counts
        most = int(per_read.max(initial=1))
        rescue_rows = RESCUE_ROWS if block.paired else 0
        table = self.new_table(block.query_count, int(per_read.sum()), rescue_rows)
        find_candidates(
            (forward, reverse),
            earlier.arrays,
            reads,
            self._target,
            self._costs,
            qualities,
            known_beside(options),
            2 if block.paired else 1,
            options.pruning,
            pairing_of(sizes, options.unpaired),
            rescue_rows,
            (np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)),
            new_tops(),
            table.arrays,
        )
        return table

    def spread(self, block: ReadBlock, found: FoundCandidates) -> Candidates:
        """Return candidates that a device has found."""
        rescue_rows = RESCUE_ROWS if block.paired else 0
        table = self.new_table(block.query_count, found.rows.size, rescue_rows)
        found.spread(rescue_rows, self._costs, table)
        return table

    def new_table(self, read_count: int, row_count: int, rescue_rows: int) -> Candidates:
        """Return memory for candidates, and for those of rescued mates."""
        rows = row_count + rescue_rows * read_count
        return Candidates(
            np.zeros(read_count + 1, dtype=np.int64),
            np.empty(read_count, dtype=np.int64),
            self._diagonals.of_size(rows),
            self._numbers.of_size(rows * NUMBERS).reshape(rows, NUMBERS),
        )
