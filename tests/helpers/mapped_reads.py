"""Reads beside references in memory, and what mapping begins with, found by definition."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from helpers.alignments import made_reads
from helpers.in_memory import columns_of
from helpers.oracle import maximal_matches
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.candidates import candidates
from mummergpu.mapping.candidates.key_sort import new_sort_room
from mummergpu.mapping.options import Limits
from mummergpu.mapping.placing.insert_size import PairSizes
from mummergpu.mapping.placing.refinement import new_tops
from mummergpu.mapping.seeding.candidate_search import SearchRoom, Seeds, find_candidates
from mummergpu.mapping.seeding.windows import matches_of_windows
from mummergpu.sequence.codes import BREAK, padded_reverse_complements
from mummergpu.sequence.strand import Strand
from mummergpu.viterbi.recurrence.model import Costs


def random_bases(random, count, letters=b"ACGT"):
    return bytes(random.choice(np.frombuffer(letters, dtype=np.uint8), count))


def block_of(reads, paired=False, first=0):
    """Reads whose names count from `first` on; mates have one name."""
    step = 2 if paired else 1
    names = (b"read%d" % ((first + number) // step) for number in range(len(reads)))
    named = ((name, bases, b"\x1e" * len(bases)) for name, bases in zip(names, reads, strict=True))
    return replace(made_reads(named), paired=paired)


def empty_table(reads, rows):
    """A table without candidates, with room for some rows."""
    return candidates.Candidates(
        np.zeros(reads + 1, dtype=np.int64),
        np.zeros(reads, dtype=np.int64),
        np.zeros(rows, dtype=np.int64),
        np.zeros((rows, candidates.NUMBERS), dtype=np.int32),
        np.zeros(reads, dtype=np.uint8),
    )


@dataclass(frozen=True)
class Mapped:
    """A block of reads, a reference, and the matches between them."""

    block: ReadBlock
    reference: Reference
    least: int
    costs: Costs = field(default_factory=Costs)
    by_windows: bool = False

    @cached_property
    def reads(self):
        block = self.block
        reverse = padded_reverse_complements(block.padded_codes, block.offsets)
        return candidates.Reads(block.offsets, block.padded_codes, reverse)

    @cached_property
    def target(self):
        reference = self.reference
        ends = reference.record_starts + reference.record_lengths
        return candidates.Target(reference.padded_codes, reference.record_starts, ends)

    def read(self, number, strand):
        """The codes of a read on a strand."""
        begin, end = self.block.offsets[number : number + 2] + 64
        return [int(code) for code in self.reads[1 + strand][begin:end]]

    def matches(self, number, strand):
        """All maximal matches of a read: the starts in it and in the reference, and the length."""
        codes = np.array(self.read(number, strand), dtype=np.uint8)
        return maximal_matches(codes, self.reference.codes, BREAK, self.least)

    @cached_property
    def mems(self):
        reads = range(self.block.query_count)
        return {
            strand: columns_of([self.matches(number, strand) for number in reads])
            for strand in Strand
        }

    @property
    def scoring(self):
        credits = candidates.credits_of_qualities(self.costs)
        qualities = candidates.Qualities(self.block.base_qualities, credits)
        return candidates.Scoring(self.reads, self.target, self.costs, qualities)

    def candidates(self):
        """What `find_candidates` makes of the matches."""
        matches = [self.mems[strand] for strand in Strand]
        if self.by_windows:
            matches = [matches_of_windows(mems, self.least) for mems in matches]
        reads = self.block.query_count
        most = sum(found.lengths.size for found in matches)
        table = empty_table(reads, 2 * most + candidates.RESCUE_ROWS * reads)
        beside = (2 * self.least - 1, self.least) if self.by_windows else (self.least, 0)
        find_candidates(
            *(Seeds(*matches, candidates.no_candidates(reads)), self.scoring),
            candidates.SeedFreeFlank(*beside),
            PairSizes.of_sizes(None, 0).pairing(False),
            *(Limits(self.least, 0, 0), False, SearchRoom(new_sort_room(most + 1), new_tops())),
            table,
        )
        return table

    def flanks(self, read, record, diagonal, begin, end):
        """What lies beside a match: the read and the reference, written from the match outwards."""
        first = int(self.reference.record_starts[record])
        behind = first + int(self.reference.record_lengths[record])
        codes = self.reference.codes.tolist()
        left = list(read[:begin])[::-1], codes[first : diagonal + begin][::-1]
        return left, (list(read[end:]), codes[diagonal + end : behind])


def ungapped_score(flank, costs):
    """The best score of a flank without gaps, and its bases; of equal ones the longest."""
    read, codes = flank
    best = (costs.end_bonus if not read else 0, 0)
    score = 0
    for place, (base, other) in enumerate(zip(read, codes, strict=False), 1):
        if base == BREAK:
            score -= costs.unknown
        else:
            score += costs.match if base == other else -costs.mismatch
        bonus = costs.end_bonus if place == len(read) else 0
        best = max(best, (score + bonus, place))
    return best
