"""From matches to candidates: merges the matches of each read by diagonal."""

from __future__ import annotations

import threading
from typing import Final, NamedTuple

import numpy as np

from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.circular_records import BEYOND
from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidate_scores import find_record, score_candidate
from mummergpu.mapping.candidates.candidates import (
    ALL_FOUND,
    NOTHING_KNOWN,
    NUMBERS,
    RESCUE_ROWS,
    Candidates,
    FoundCandidates,
    Scoring,
    SeedFreeFlank,
    Target,
    circle_of,
    fill_reverse_codes,
    has_breaks,
    no_candidates,
    prefetch_bases,
    read_length,
)
from mummergpu.mapping.candidates.key_sort import SortRoom, new_sort_room, sort_by_key
from mummergpu.mapping.options import Limits, MappingOptions
from mummergpu.mapping.placing.pairing import Pairing, Placing, pairing_of
from mummergpu.mapping.placing.refinement import Tops, new_tops
from mummergpu.mapping.seeding.pruning import prune_template
from mummergpu.mapping.seeding.windows import (
    ChosenBy,
    ReadCodes,
    chosen_matches,
    matches_of_windows,
    shortest_sure_match,
)
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, flattened, inline, jit
from mummergpu.runtime.scratch import ThreadArray
from mummergpu.sequence.codes import MARGIN, CodeArray, padded_reverse_complements
from mummergpu.sequence.mems import BlockMems, MemColumns
from mummergpu.sequence.strand import Strand

MATCHES_AHEAD: Final = 32
"""How many matches ahead the reference next to a match is fetched."""

MOST_USED_AGAIN: Final = 1 << 20
"""The most candidates of the memory that a thread keeps: some 75 MiB, if its parts have so many.
The system takes memory back while the interpreter's lock is held, and clears it for the next part.
"""

MOST_SEEDS_USED_AGAIN: Final = 1 << 18
"""The most seeds of a read for which memory is kept, some 8 MiB; satellites have more."""

_DIAGONAL_OFFSET: Final = 1 << 40
_STRAND_BIT: Final = 1 << 61
"""The parts of a key to sort by, made of a diagonal and its strand."""

_SCORED: Final = 1 << 62
"""Added to the row of an earlier candidate, which stands for a match; larger than any match."""


class Seeds(NamedTuple):
    """The sources of candidates: the matches on each strand, and candidates of an earlier pass."""

    forward: MemColumns
    reverse: MemColumns
    earlier: Candidates


class SearchRoom(NamedTuple):
    """Memory of one thread: room to sort the most seeds of a read, and `new_tops`."""

    seeds: SortRoom
    tops: Tops


@jit
def find_candidates(
    seeds: Seeds,
    scoring: Scoring,
    beside: SeedFreeFlank,
    pairing: Pairing,
    limits: Limits,
    prunes: bool,
    room: SearchRoom,
    table: Candidates,
) -> None:
    """Find the candidates of all reads; if `prunes`, keep only those that may matter.

    The reverse complements of the reads are written first. `beside` has the facts about matches
    without others near them. The candidates of an earlier pass are kept as they are. The last two
    arrays of the table have a row for each seed at least.
    """
    fill_reverse_codes(scoring.reads)
    mates, filled = pairing.mates, 0
    for read in range(table.counts.size):
        prefetch_reference(seeds, read, read_length(scoring.reads, read), scoring.target.codes)
        table.seeds_kept[read] = max(seeds.earlier.seeds_kept[read], seeds_of_read(seeds, read))
        filled = score_diagonals(seeds, read, scoring, beside, room, table, filled)
        table.offsets[read + 1] = filled
        # The candidates of a template are the last ones of the table, so that it can be cut off.
        if prunes and (read + 1) % mates == 0:
            placing = Placing(scoring, pairing_of(pairing, read // mates), table)
            filled = prune_template(read + 1 - mates, placing, limits, room.tops)


@jit
def most_seeds(forward: Int64Array, reverse: Int64Array, earlier: Int64Array) -> int:
    """Return the most seeds of a read, of the offsets of matches and counts of candidates."""
    most = as_int64(0)
    for read in range(earlier.size):
        count = forward[read + 1] - forward[read] + reverse[read + 1] - reverse[read]
        most = max(most, count + earlier[read])
    return most


@inline
def seeds_of_read(seeds: Seeds, read: int) -> int:
    """Return how many disjoint seeds of a read have all their matches, on both strands."""
    known = as_int64(ALL_FOUND)
    for one in (seeds.forward.seeds, seeds.reverse.seeds):
        if one.size > 0:
            known = min(known, as_int64(one[read]))
    return known


@inline
def score_diagonals(
    seeds: Seeds,
    read: int,
    scoring: Scoring,
    beside: SeedFreeFlank,
    room: SearchRoom,
    table: Candidates,
    filled: int,
) -> int:
    """Merge the matches of a read by diagonal, and score each diagonal without gaps.

    Rows are written from `filled` on; the row after them is returned.
    """
    keys, values, earlier = room.seeds.keys, room.seeds.values, seeds.earlier
    diagonals, numbers = table.diagonals, table.numbers
    max_gap = scoring.costs.max_gap
    has_break = has_breaks(scoring.reads, read)
    count = collect_matches(seeds, read, scoring.target, keys, values)
    count = collect_earlier(earlier, read, keys, values, count)
    sort_by_key(room.seeds, count)
    table.offsets[read] = filled
    first = 0
    while first < count:
        key = keys[first]
        seed_begin, seed_bases = 0, 0
        has_neighbour = first > 0 and key - keys[first - 1] <= max_gap
        at_first = first
        # An earlier candidate comes last on its diagonal.
        scored = as_int64(-1)
        while first < count and keys[first] == key:
            if values[first] >= _SCORED:
                scored = values[first] - _SCORED
            else:
                bases, begin = values[first] & 0xFFFFFFFF, values[first] >> 32
                # Of equally long ones the first, in whatever order a search wrote them.
                if bases > seed_bases or (bases == seed_bases and begin < seed_begin):
                    seed_bases, seed_begin = bases, begin
            first += 1
        has_neighbour |= first - at_first > 1
        has_neighbour |= first < count and keys[first] - key <= max_gap
        if scored >= 0:
            diagonals[filled] = earlier.diagonals[scored]
            for number in range(NUMBERS):
                numbers[filled, number] = earlier.numbers[scored, number]
            filled += 1
            continue
        strand = 1 if key >= _STRAND_BIT else 0
        diagonal = key - _DIAGONAL_OFFSET - strand * _STRAND_BIT
        diagonals[filled] = diagonal
        numbers[filled, column.STRAND] = strand
        record = find_record(scoring.target.record_starts, diagonal + seed_begin)
        circle = circle_of(scoring.target.circles, record)
        if circle > 0:
            # Another match may lie on the other side of the origin.
            behind = diagonal - scoring.target.record_starts[record] - BEYOND
            has_neighbour |= behind < max_gap or circle - behind <= max_gap
        numbers[filled, column.RECORD] = record
        numbers[filled, column.SEED_BEGIN] = seed_begin
        numbers[filled, column.SEED_BASES] = seed_bases
        # Where a gap can reach another match, flanks are not bounded by their lack of matches. An
        # unknown base ends matches too, but costs less than an edit: windows without one count.
        match_bases = (
            NOTHING_KNOWN.match_bases if has_neighbour or has_break else beside.match_bases
        )
        known = SeedFreeFlank(match_bases, 0 if has_neighbour else beside.window)
        score_candidate(scoring, read, known, table, filled)
        filled += 1
    table.counts[read] = filled - table.offsets[read]
    return filled


@inline
def prefetch_reference(seeds: Seeds, read: int, length: int, reference: CodeArray) -> None:
    """Prefetch the reference next to matches that come a little after a read's."""
    for strand in range(2):
        matches = seeds.forward if strand == 0 else seeds.reverse
        end = min(matches.offsets[read + 1] + MATCHES_AHEAD, matches.query_starts.size)
        for row in range(matches.offsets[read] + MATCHES_AHEAD, end):
            diagonal = matches.reference_starts[row] - matches.query_starts[row]
            prefetch_bases(reference, MARGIN + diagonal, length)


@inline
def collect_matches(
    seeds: Seeds, read: int, target: Target, keys: Int64Array, values: Int64Array
) -> int:
    """Write a key and a value for each match of a read; return how many there are.

    The key has the strand and the diagonal, of a circular record between its ends. The value has
    the start of the match in the read in its upper half, and its bases in the lower one.
    """
    count = 0
    for strand in range(2):
        matches = seeds.forward if strand == 0 else seeds.reverse
        for row in range(matches.offsets[read], matches.offsets[read + 1]):
            start = matches.query_starts[row]
            diagonal = matches.reference_starts[row] - start
            if target.circles.size > 0:
                record = find_record(target.record_starts, matches.reference_starts[row])
                circle = circle_of(target.circles, record)
                if circle > 0:
                    begin = target.record_starts[record] + BEYOND
                    diagonal = begin + (diagonal - begin) % circle
            keys[count] = diagonal + _DIAGONAL_OFFSET + strand * _STRAND_BIT
            values[count] = start << 32 | matches.lengths[row]
            count += 1
    return count


@inline
def collect_earlier(
    earlier: Candidates, read: int, keys: Int64Array, values: Int64Array, count: int
) -> int:
    """Append the earlier candidates of a read to its matches; return how many there are then."""
    diagonals, numbers = earlier.diagonals, earlier.numbers
    for row in range(earlier.offsets[read], earlier.offsets[read] + earlier.counts[read]):
        keys[count] = diagonals[row] + _DIAGONAL_OFFSET + numbers[row, column.STRAND] * _STRAND_BIT
        values[count] = _SCORED + row
        count += 1
    return count


def known_of_flanks(options: MappingOptions) -> SeedFreeFlank:
    """Return the facts about the bases next to a match without others near it."""
    if options.by_windows:
        return SeedFreeFlank(shortest_sure_match(options.seed_length), options.seed_length)
    return SeedFreeFlank(options.seed_length, 0)


class _Room(threading.local):
    """The memory of each thread to sort the seeds of a read."""

    most = 0
    search: SearchRoom

    def grow(self, most: int) -> SearchRoom:
        """Return memory for `most` seeds, `flattened`."""
        if most <= self.most:
            return self.search
        room = flattened(SearchRoom(new_sort_room(most), new_tops()))
        if most <= MOST_SEEDS_USED_AGAIN:
            self.search, self.most = room, most
        return room


FoundTable = tuple[Candidates, Candidates]
"""The candidates of a block, and the same `flattened`."""


class CandidateFinder:
    """Finds candidates; several threads share one.

    `is_chosen` says that a search finds only the matches that count.
    """

    def __init__(self, options: MappingOptions, is_chosen: bool = False) -> None:
        self._options = options
        self._is_chosen = is_chosen
        self._diagonals, self._numbers = ThreadArray(np.int64), ThreadArray(np.int32)
        self._room = _Room()

    def seeds_of(self, mems: BlockMems, block: ReadBlock, reference: CodeArray) -> BlockMems:
        """Return the matches that count: those of whole windows that are chosen, or all.

        `reference` has margins.
        """
        options, length = self._options, self._options.seed_length
        if self._is_chosen:
            return mems
        if options.max_occurrences is not None:
            by = ChosenBy(length, length, options.max_occurrences, not options.by_windows)
            forward = reverse = ReadCodes(block.offsets)
            if by.any_match:
                codes = padded_reverse_complements(block.padded_codes, block.offsets)
                forward = ReadCodes(block.offsets, block.padded_codes, reference)
                reverse = ReadCodes(block.offsets, codes, reference)
            return {
                s: chosen_matches(one, forward if s is Strand.FORWARD else reverse, by)
                for s, one in mems.items()
            }
        if not options.by_windows:
            return mems
        return {s: matches_of_windows(one, options.seed_length) for s, one in mems.items()}

    def find(
        self,
        scoring: Scoring,
        pairing: Pairing,
        paired: bool,
        mems: BlockMems,
        earlier: Candidates | None,
    ) -> FoundTable:
        """Return the candidates of a block that may matter; `paired` says that it has mates.

        They are made of matches, at least the seeds (`seeds_of`), and of earlier candidates in
        memory of their own. They are valid until the same thread asks for those of another block.
        """
        options = self._options
        forward, reverse = mems[Strand.FORWARD], mems[Strand.REVERSE]
        earlier = no_candidates(forward.query_count) if earlier is None else earlier
        rows = forward.count + reverse.count + int(earlier.counts.sum())
        most = MOST_SEEDS_USED_AGAIN
        if rows > most:
            most = most_seeds(forward.offsets, reverse.offsets, earlier.counts)
        found = self._new_table(forward.query_count, rows, paired)
        find_candidates(
            Seeds(forward, reverse, earlier),
            scoring,
            known_of_flanks(options),
            pairing,
            options.limits,
            options.prunes,
            self._room.grow(max(1, most)),
            found[1],
        )
        return found

    def of_device(
        self, scoring: Scoring, pairing: Pairing, paired: bool, found: FoundCandidates
    ) -> FoundTable:
        """Return candidates that a device has found, which are valid as those of `find`."""
        table = self._new_table(found.offsets.size - 1, found.rows.size, paired)
        found.fill(scoring, table[1])
        return table

    def _new_table(self, read_count: int, row_count: int, paired: bool) -> FoundTable:
        """Return memory for candidates, and to rescue mates: where it is not used it costs none."""
        rows = row_count
        if paired:
            rows += row_count + RESCUE_ROWS * read_count
        diagonals, numbers = self._diagonals, self._numbers
        if row_count > MOST_USED_AGAIN:
            diagonals, numbers = ThreadArray(np.int64), ThreadArray(np.int32)
        table = Candidates(
            np.zeros(read_count + 1, dtype=np.int64),
            np.empty(read_count, dtype=np.int64),
            diagonals.of_size(rows),
            numbers.of_size(rows * NUMBERS).reshape(rows, NUMBERS),
            np.empty(read_count, dtype=np.uint8),
        )
        return table, flattened(table)
