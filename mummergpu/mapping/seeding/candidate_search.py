"""From matches to candidates: merges the matches of each read by diagonal."""

from __future__ import annotations

from typing import Final

from mummergpu.mapping.candidates.candidate_scores import find_record, score_candidate
from mummergpu.mapping.candidates.candidates import (
    CORE_BEGIN,
    CORE_LENGTH,
    NOTHING_KNOWN,
    NUMBERS,
    RECORD,
    STRAND,
    Beside,
    MatchColumns,
    Reads,
    Table,
    Target,
    prefetch_bases,
    read_length,
)
from mummergpu.mapping.candidates.key_sort import sort_by_key
from mummergpu.mapping.candidates.ungapped import Qualities
from mummergpu.mapping.placing.joint_scores import Tops
from mummergpu.mapping.placing.pairing import Pairing
from mummergpu.mapping.seeding.pruning import Pruning, prune_template
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray
from mummergpu.viterbi.recurrence.model import CostTuple

MATCHES_AHEAD: Final = 32
"""How many matches before it is used the reference beside a match is fetched."""

_DIAGONAL_OFFSET: Final = 1 << 40
_STRAND_BIT: Final = 1 << 61
"""How a diagonal and its strand become a key to sort by."""

_SCORED: Final = 1 << 62
"""Added to the row of an earlier candidate, which stands for a match; larger than any match."""


@jit_without_refcounts
def find_candidates(
    matches: tuple[MatchColumns, MatchColumns],
    earlier: Table,
    reads: Reads,
    target: Target,
    costs: CostTuple,
    qualities: Qualities,
    beside: Beside,
    mates: int,
    pruning: Pruning,
    pairing: Pairing,
    rescue_rows: int,
    scratch: tuple[Int64Array, Int64Array],
    tops: Tops,
    table: Table,
) -> None:
    """Find the candidates of all reads, and keep those that may matter."""
    filled = 0
    for read in range(table[1].size):
        prefetch_reference(matches, read, read_length(reads, read), target[0])
        filled = score_diagonals(
            matches, earlier, read, reads, target, costs, qualities, beside, scratch, table, filled
        )
        filled += rescue_rows
        table[0][read + 1] = filled
        if pruning[0] and (read + 1) % mates == 0:
            template = read + 1 - mates, mates
            filled = prune_template(
                template, reads, costs, pruning, pairing, tops, rescue_rows, table
            )


@inline_without_refcounts
def score_diagonals(
    matches: tuple[MatchColumns, MatchColumns],
    earlier: Table,
    read: int,
    reads: Reads,
    target: Target,
    costs: CostTuple,
    qualities: Qualities,
    beside: Beside,
    scratch: tuple[Int64Array, Int64Array],
    table: Table,
    filled: int,
) -> int:
    """Merge the matches of a read by diagonal, and score each diagonal without gaps."""
    candidate_offsets, counts, diagonals, numbers = table
    keys, values = scratch
    has_break = has_breaks(reads, read)
    count = collect_matches(matches, read, keys, values)
    count = collect_earlier(earlier, read, keys, values, count)
    sort_by_key(keys, values, count)
    candidate_offsets[read] = filled
    first = 0
    while first < count:
        key = keys[first]
        core_begin, core_length = 0, 0
        has_neighbour = first > 0 and key - keys[first - 1] <= costs.most_gap
        at_first = first
        # What is known already comes last on its diagonal.
        scored = as_int64(-1)
        while first < count and keys[first] == key:
            if values[first] >= _SCORED:
                scored = values[first] - _SCORED
            elif values[first] & 0xFFFFFFFF > core_length:
                core_length = values[first] & 0xFFFFFFFF
                core_begin = values[first] >> 32
            first += 1
        has_neighbour |= first - at_first > 1
        has_neighbour |= first < count and keys[first] - key <= costs.most_gap
        if scored >= 0:
            diagonals[filled] = earlier[2][scored]
            for number in range(NUMBERS):
                numbers[filled, number] = earlier[3][scored, number]
            filled += 1
            continue
        strand = 1 if key >= _STRAND_BIT else 0
        diagonal = key - _DIAGONAL_OFFSET - strand * _STRAND_BIT
        diagonals[filled] = diagonal
        numbers[filled, STRAND] = strand
        numbers[filled, RECORD] = find_record(target[1], diagonal + core_begin)
        numbers[filled, CORE_BEGIN] = core_begin
        numbers[filled, CORE_LENGTH] = core_length
        known = NOTHING_KNOWN if has_neighbour or has_break else beside
        score_candidate(reads, read, target, costs, qualities, known, table, filled)
        filled += 1
    counts[read] = filled - candidate_offsets[read]
    return filled


@inline_without_refcounts
def has_breaks(reads: Reads, read: int) -> bool:
    """Return whether a read has unknown bases, which cost less than bases that differ."""
    found = False
    begin = MARGIN + reads[0][read]
    for place in range(begin, begin + read_length(reads, read)):
        found |= reads[1][place] == BREAK
    return found


@inline_without_refcounts
def prefetch_reference(
    matches: tuple[MatchColumns, MatchColumns], read: int, length: int, reference: CodeArray
) -> None:
    """Have the memory fetch the reference beside matches that come a little later."""
    for strand in range(2):
        offsets, starts, reference_starts, _ = matches[0] if strand == 0 else matches[1]
        end = min(offsets[read + 1] + MATCHES_AHEAD, starts.size)
        for row in range(offsets[read] + MATCHES_AHEAD, end):
            prefetch_bases(reference, MARGIN + reference_starts[row] - starts[row], length)


@inline_without_refcounts
def collect_matches(
    matches: tuple[MatchColumns, MatchColumns], read: int, keys: Int64Array, values: Int64Array
) -> int:
    """Write a key and a value for each match of a read; return how many there are."""
    count = 0
    for strand in range(2):
        offsets, starts, reference_starts, lengths = matches[0] if strand == 0 else matches[1]
        for row in range(offsets[read], offsets[read + 1]):
            diagonal = reference_starts[row] - starts[row]
            keys[count] = diagonal + _DIAGONAL_OFFSET + strand * _STRAND_BIT
            values[count] = starts[row] << 32 | lengths[row]
            count += 1
    return count


@inline_without_refcounts
def collect_earlier(
    earlier: Table, read: int, keys: Int64Array, values: Int64Array, count: int
) -> int:
    """Append the earlier candidates of a read to its matches; return how many there are then."""
    offsets, counts, diagonals, numbers = earlier
    for row in range(offsets[read], offsets[read] + counts[read]):
        keys[count] = diagonals[row] + _DIAGONAL_OFFSET + numbers[row, STRAND] * _STRAND_BIT
        values[count] = _SCORED + row
        count += 1
    return count
