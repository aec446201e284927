"""Chooses the best placement of each template: a single read, or mates that support each other.

Choices among equal placements look random, but depend on nothing but the read's name.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import (
    ALL_FOUND,
    BEST_QUALITY,
    DEAD,
    EXACT,
    UNIT,
    Candidates,
    Scoring,
    aligned_part,
    is_rival,
    read_length,
)
from mummergpu.mapping.options import Limits
from mummergpu.mapping.placing.mapping_quality import (
    ChosenPair,
    Odds,
    quality_of,
    rivals_of,
    score_fixed_of,
    weigh_pairs,
)
from mummergpu.mapping.placing.pairing import (
    NOTHING,
    Pairing,
    Placing,
    pair_penalty,
    pairing_of,
    partner_range,
)
from mummergpu.mapping.placing.refinement import Tops, refine_template, score_template
from mummergpu.mapping.placing.rescue import (
    DiagonalMarks,
    max_rescued_score,
    rescue_template,
)
from mummergpu.runtime.arrays import ByteArray, Int32Array, Int64Array
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.tiles.band import Scratch


class Names(NamedTuple):
    """The bytes of the names of reads, and where each name begins."""

    letters: ByteArray
    offsets: Int64Array


@inline
def hash_of_name(names: Names, read: int) -> np.uint64:
    """Return the hash of a read's name (FNV-1a)."""
    value = np.uint64(14695981039346656037)
    for place in range(names.offsets[read], names.offsets[read + 1]):
        value = (value ^ np.uint64(names.letters[place])) * np.uint64(1099511628211)
    return value


@inline
def mix(name_hash: np.uint64, one: int, other: int) -> np.uint64:
    """Return a number that looks random, for a choice among equals."""
    number = name_hash ^ (np.uint64(one) * np.uint64(0x9E3779B97F4A7C15))
    number ^= np.uint64(other) * np.uint64(0xC2B2AE3D27D4EB4F)
    number ^= number >> np.uint64(29)
    number *= np.uint64(0xBF58476D1CE4E5B9)
    number ^= number >> np.uint64(32)
    return number


MIN_SCORE_OF_MATE: Final = 19
"""The least score of a read that forms a proper pair with its mate, and of another place that is
reported (`Choices.second_scores`): every read fits some place near its mate a little. bwa mem has
both."""


class Choices(NamedTuple):
    """The choice for each read of a block."""

    candidates: Int64Array  # The candidate, or -1.
    qualities: ByteArray  # Its mapping quality.
    # The best score of a rival of it (`candidates.is_rival`), 0 if there is none.
    second_scores: Int32Array


def new_choices(read_count: int) -> Choices:
    """Return unfilled choices."""
    return Choices(
        np.empty(read_count, dtype=np.int64),
        np.empty(read_count, dtype=np.uint8),
        np.empty(read_count, dtype=np.int32),
    )


@inline
def reported_score(table: Candidates, row: int, length: int, costs: Costs) -> int:
    """Return the score of a candidate without the bonus of the ends that it reaches."""
    score = as_int64(table.numbers[row, column.SCORE])
    begin, end = aligned_part(table, row)
    if begin == 0:
        score -= costs.end_bonus
    if end == length:
        score -= costs.end_bonus
    return score


@inline
def is_eligible(table: Candidates, row: int, length: int, costs: Costs, min_score: int) -> bool:
    """Return whether a candidate is alive, and its reported score is not below the least one."""
    if table.numbers[row, column.STATE] == DEAD:
        return False
    return reported_score(table, row, length, costs) >= min_score


@inline
def best_single(
    read: int, placing: Placing, min_score: int, name_hash: np.uint64
) -> tuple[int, int]:
    """Return the best candidate of a read, as if it had no mate, and its score in units.

    Without one, it is -1 and `NOTHING`.
    """
    scoring, table = placing.scoring, placing.table
    length, costs = read_length(scoring.reads, read), scoring.costs
    chosen, best, rank = as_int64(-1), as_int64(NOTHING), np.uint64(0)
    for row in range(table.offsets[read], table.offsets[read] + table.counts[read]):
        score_fixed = score_fixed_of(table, row)
        if score_fixed < best or not is_eligible(table, row, length, costs, min_score):
            continue
        here = mix(name_hash, table.diagonals[row], table.numbers[row, column.STRAND])
        if score_fixed > best or here > rank:
            chosen, best, rank = as_int64(row), score_fixed, here
    return chosen, best


@jit
def best_pair(
    read: int,
    placing: Placing,
    min_score: int,
    name_hash: np.uint64,
    score_to_beat: int,
    other_best: int,
) -> tuple[int, int, int]:
    """Return the best proper pair of a read and the next one, and their score in fixed point.

    It is -1, -1 and `score_to_beat` if no pair scores as much; `other_best` is the score of the
    second mate's best candidate.
    """
    scoring, pairing, table = placing
    length, other_length = read_length(scoring.reads, read), read_length(scoring.reads, read + 1)
    costs = scoring.costs
    chosen, chosen_other = as_int64(-1), as_int64(-1)
    pair_score, rank = as_int64(score_to_beat), np.uint64(0)
    for row in range(table.offsets[read], table.offsets[read] + table.counts[read]):
        score_fixed = score_fixed_of(table, row)
        # Even the best candidate of the mate would not make up the difference.
        if score_fixed + other_best < pair_score or not is_eligible(
            table, row, length, costs, min_score
        ):
            continue
        begin, end = partner_range(table, row, read, read + 1, scoring, pairing)
        for other in range(begin, end):
            penalty = pair_penalty(table, row, length, other, other_length, pairing)
            score = score_fixed + score_fixed_of(table, other) - penalty
            if penalty < 0 or score < pair_score:
                continue
            if not is_eligible(table, other, other_length, costs, min_score):
                continue
            here = mix(name_hash, table.diagonals[row], table.diagonals[other])
            if score > pair_score or here > rank:
                chosen, chosen_other, pair_score, rank = as_int64(row), as_int64(other), score, here
    return chosen, chosen_other, pair_score


@inline
def second_score(table: Candidates, read: int, chosen: int, length: int, costs: Costs) -> int:
    """Return the best reported score of a rival of the chosen candidate, 0 if there is none."""
    second = as_int64(MIN_SCORE_OF_MATE - 1)
    for row in range(table.offsets[read], table.offsets[read] + table.counts[read]):
        if is_rival(table, row, chosen, length):
            second = max(second, reported_score(table, row, length, costs))
    return second if second >= MIN_SCORE_OF_MATE else as_int64(0)


@jit
def choose_template(
    template: int,
    placing: Placing,
    min_score: int,
    odds: Odds,
    name_hash: np.uint64,
    choices: Choices,
) -> None:
    """Choose the best placement of a template, and its mapping qualities.

    `name_hash` chooses among equals: mates have one name. In pseudo-code:

        best single placement of each mate
        if both have one:
            best pair of near placements, if it is better than two single ones
            weigh all pairs of placements                       (`mapping_quality.weigh_pairs`)
        else: weigh the placements of the mate that has some    (`mapping_quality.rivals_of`)
        each mate whose score suffices takes its placement, with a quality
    """
    scoring, pairing, table = placing
    reads, costs = scoring.reads, scoring.costs
    read, mates = template, pairing.mates
    # A proper pair is made with scores that are not reported otherwise.
    lowest = min(min_score, MIN_SCORE_OF_MATE)
    chosen0, best0 = best_single(read, placing, lowest, name_hash)
    chosen1, best1 = as_int64(-1), as_int64(NOTHING)
    if mates == 2:
        chosen1, best1 = best_single(read + 1, placing, lowest, name_hash)
    is_proper = False
    total, rivals0, rivals1 = 1.0, (0.0, 0.0), (0.0, 0.0)
    if chosen0 >= 0 and chosen1 >= 0:
        pair_score = best0 + best1 - pairing.unpaired * UNIT
        if pairing.last_size > 0:
            row, other, pair_score = best_pair(read, placing, lowest, name_hash, pair_score, best1)
            if row >= 0:
                is_proper, chosen0, chosen1 = True, row, other
        pair = ChosenPair(chosen0, chosen1, best0, best1, pair_score, is_proper)
        total, rivals0, rivals1 = weigh_pairs(read, placing, odds.weights, pair)
    elif chosen0 >= 0:
        rivals0 = rivals_of(scoring, table, read, chosen0, best0, odds.weights)
        total = rivals0[0] + 1.0
    elif chosen1 >= 0:
        rivals1 = rivals_of(scoring, table, read + 1, chosen1, best1, odds.weights)
        total = rivals1[0] + 1.0
    for mate in range(mates):
        chosen = chosen0 if mate == 0 else chosen1
        one = read + mate
        choices.candidates[one] = -1
        choices.qualities[one] = 0
        choices.second_scores[one] = 0
        length = read_length(reads, one)
        enough = lowest if is_proper else min_score
        if chosen >= 0 and reported_score(table, chosen, length, costs) >= enough:
            rivals = rivals0 if mate == 0 else rivals1
            quality = quality_of(rivals, total, is_proper, length, odds.thresholds)
            choices.candidates[one] = chosen
            choices.qualities[one] = quality
            choices.second_scores[one] = second_score(table, one, chosen, length, costs)


@inline
def choose_only(template: int, placing: Placing, limits: Limits, choices: Choices) -> bool:
    """Choose the only candidates of a template if nothing else comes into question; return whether.

    `choose_template` would choose them with the best quality: each read has one candidate, whose
    score no gap raises, no place was left out, and mates are so good a pair that none is rescued.
    """
    scoring, pairing, table = placing
    reads, costs, numbers = scoring.reads, scoring.costs, table.numbers
    for read in range(template, template + pairing.mates):
        row = table.offsets[read]
        if table.counts[read] != 1 or table.seeds_kept[read] != ALL_FOUND:
            return False
        if numbers[row, column.STATE] != EXACT:
            return False
        if reported_score(table, row, read_length(reads, read), costs) < limits.min_score:
            return False
    if pairing.mates == 2 and not is_sure_pair(template, placing, limits):
        return False
    for read in range(template, template + pairing.mates):
        choices.candidates[read] = table.offsets[read]
        choices.qualities[read] = BEST_QUALITY
        choices.second_scores[read] = 0
    return True


@inline
def is_sure_pair(template: int, placing: Placing, limits: Limits) -> bool:
    """Return whether the first candidates of two mates are a pair that rescue cannot better."""
    scoring, pairing, table = placing
    row, other = table.offsets[template], table.offsets[template + 1]
    begin, end = partner_range(table, row, template, template + 1, scoring, pairing)
    if pairing.last_size == 0 or not begin <= other < end:
        return False
    length = read_length(scoring.reads, template)
    other_length = read_length(scoring.reads, template + 1)
    penalty = pair_penalty(table, row, length, other, other_length, pairing)
    if not 0 <= penalty < pairing.unpaired * UNIT:
        return False
    is_sure = True
    for read in range(template, template + 2):
        rescued = max_rescued_score(
            read_length(scoring.reads, read), limits.seed_length, scoring.costs
        )
        score = as_int64(table.numbers[table.offsets[read], column.SCORE])
        is_sure &= score * UNIT - penalty >= rescued * UNIT
    return is_sure


class PlacingRoom(NamedTuple):
    """Memory of one thread: for tiles, `new_tops`, and `new_marks`."""

    scratch: Scratch
    tops: Tops
    marks: DiagonalMarks


@jit
def map_templates(
    scoring: Scoring,
    names: Names,
    limits: Limits,
    of_block: Pairing,
    odds: Odds,
    room: PlacingRoom,
    table: Candidates,
    choices: Choices,
) -> None:
    """Choose a placement and a mapping quality for each read.

    The table is the output of `candidate_search.find_candidates`; scores with gaps are set, and the
    candidates of rescued mates are added.
    """
    scratch, tops, margin = room.scratch, room.tops, limits.margin
    for number in range((scoring.reads.offsets.size - 1) // of_block.mates):
        pairing = pairing_of(of_block, number)
        template, placing = number * pairing.mates, Placing(scoring, pairing, table)
        if choose_only(template, placing, limits, choices):
            continue
        pair_score = score_template(template, placing, tops)
        pair_score = refine_template(template, placing, margin, scratch, tops, pair_score)
        if choose_only(template, placing, limits, choices):
            continue
        second = read_length(scoring.reads, template + pairing.mates - 1)
        if pairing.mates == 2 and pairing.last_size > 0 and second > 0:
            added = rescue_template(template, placing, limits, room.marks, pair_score)
            if added > 0:
                pair_score = score_template(template, placing, tops)
                refine_template(template, placing, margin, scratch, tops, pair_score)
        name_hash = hash_of_name(names, template)
        choose_template(template, placing, limits.min_score, odds, name_hash, choices)
