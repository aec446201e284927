"""Chooses the best placement of a template, and says how sure it is."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.mapping.candidates.candidates import (
    CORE_BEGIN,
    CORE_LENGTH,
    DEAD,
    LEFT_TAKEN,
    RIGHT_TAKEN,
    SCORE,
    STATE,
    STRAND,
    Reads,
    Table,
    read_length,
)
from mummergpu.mapping.placing.evidence import UNIT
from mummergpu.mapping.placing.joint_scores import Template
from mummergpu.mapping.placing.mapping_quality import (
    Odds,
    quality_of,
    rivals_of,
    units_of,
    weigh_pairs,
)
from mummergpu.mapping.placing.pairing import (
    LAST_SIZE,
    NOTHING,
    UNPAIRED,
    Pairing,
    pair_penalty,
    partner_range,
)
from mummergpu.mapping.placing.read_parts import is_rival
from mummergpu.mapping.placing.tie_breaks import mix
from mummergpu.runtime.arrays import Int32Array
from mummergpu.runtime.jit import as_int64, inline_without_refcounts, jit_without_refcounts
from mummergpu.viterbi.recurrence.model import CostTuple

CHOSEN: Final = 0
QUALITY: Final = 1
SECOND: Final = 2
CHOICE_NUMBERS: Final = 3
"""The numbers that are chosen for a read: its candidate, or -1; the mapping quality; the best score
of a rival of that candidate (`read_parts.is_rival`)."""

LEAST_OF_MATE: Final = 19
"""The least score of a read that forms a proper pair with its mate, and of another place that is
told of (`SECOND`): every read fits some place beside its mate a little. bwa mem has both."""


@inline_without_refcounts
def reported_score(table: Table, row: int, length: int, costs: CostTuple) -> int:
    """Return the score of a candidate without the bonus of the ends that it reaches."""
    numbers = table[3]
    score = as_int64(numbers[row, SCORE])
    if numbers[row, CORE_BEGIN] == numbers[row, LEFT_TAKEN]:
        score -= costs.end_bonus
    if numbers[row, CORE_BEGIN] + numbers[row, CORE_LENGTH] + numbers[row, RIGHT_TAKEN] == length:
        score -= costs.end_bonus
    return score


@inline_without_refcounts
def is_eligible(table: Table, row: int, length: int, costs: CostTuple, least_score: int) -> bool:
    """Return whether a candidate may be chosen."""
    if table[3][row, STATE] == DEAD:
        return False
    return reported_score(table, row, length, costs) >= least_score


@inline_without_refcounts
def best_single(
    read: int, reads: Reads, costs: CostTuple, least_score: int, table: Table, seed: np.uint64
) -> tuple[int, int]:
    """Return the best candidate of a read, as if it had no mate."""
    length = read_length(reads, read)
    chosen, best, rank = as_int64(-1), as_int64(NOTHING), np.uint64(0)
    for row in range(table[0][read], table[0][read] + table[1][read]):
        units = units_of(table, row)
        if units < best or not is_eligible(table, row, length, costs, least_score):
            continue
        here = mix(seed, table[2][row], table[3][row, STRAND])
        if units > best or here > rank:
            chosen, best, rank = as_int64(row), units, here
    return chosen, best


@jit_without_refcounts
def best_pair(
    read: int,
    reads: Reads,
    costs: CostTuple,
    least_score: int,
    pairing: Pairing,
    table: Table,
    seed: np.uint64,
    least: int,
    other_best: int,
) -> tuple[int, int, int]:
    """Return the best proper pair of two mates."""
    length, other_length = read_length(reads, read), read_length(reads, read + 1)
    chosen, chosen_other, joint, rank = as_int64(-1), as_int64(-1), as_int64(least), np.uint64(0)
    for row in range(table[0][read], table[0][read] + table[1][read]):
        units = units_of(table, row)
        if units + other_best < joint or not is_eligible(table, row, length, costs, least_score):
            continue
        begin, end = partner_range(
            table, row, length, read + 1, other_length, pairing, costs.most_gap
        )
        for other in range(begin, end):
            penalty = pair_penalty(table, row, length, other, other_length, pairing)
            score = units + units_of(table, other) - penalty
            if penalty < 0 or score < joint:
                continue
            if not is_eligible(table, other, other_length, costs, least_score):
                continue
            here = mix(seed, table[2][row], table[2][other])
            if score > joint or here > rank:
                chosen, chosen_other, joint, rank = as_int64(row), as_int64(other), score, here
    return chosen, chosen_other, joint


@inline_without_refcounts
def second_score(table: Table, read: int, chosen: int, length: int, costs: CostTuple) -> int:
    """Return the best score of a rival of the chosen candidate, 0 if there is none."""
    second = as_int64(LEAST_OF_MATE - 1)
    for row in range(table[0][read], table[0][read] + table[1][read]):
        if is_rival(table, row, chosen, length):
            second = max(second, reported_score(table, row, length, costs))
    return second if second >= LEAST_OF_MATE else as_int64(0)


@jit_without_refcounts
def choose_template(
    template: Template,
    reads: Reads,
    costs: CostTuple,
    least_score: int,
    pairing: Pairing,
    odds: Odds,
    seed: np.uint64,
    table: Table,
    choices: Int32Array,
) -> None:
    """Choose the best joint placement of a template, and its mapping qualities."""
    read, mates = template
    lowest = min(least_score, LEAST_OF_MATE)
    chosen0, best0 = best_single(read, reads, costs, lowest, table, seed)
    chosen1, best1 = as_int64(-1), as_int64(NOTHING)
    if mates == 2:
        chosen1, best1 = best_single(read + 1, reads, costs, lowest, table, seed)
    is_proper = False
    total, rivals0, rivals1 = 1.0, (0.0, 0.0), (0.0, 0.0)
    if chosen0 >= 0 and chosen1 >= 0:
        joint = best0 + best1 - pairing[UNPAIRED] * UNIT
        if pairing[LAST_SIZE] > 0:
            row, other, joint = best_pair(
                read, reads, costs, lowest, pairing, table, seed, joint, best1
            )
            if row >= 0:
                is_proper, chosen0, chosen1 = True, row, other
        total, rivals0, rivals1 = weigh_pairs(
            read, reads, costs, pairing, odds[0], table, (best0, best1), (chosen0, chosen1), joint,
            is_proper,
        )  # fmt: skip
    elif chosen0 >= 0:
        length = read_length(reads, read)
        rivals0 = rivals_of(table, read, length, chosen0, best0, odds[0])
        total = rivals0[0] + 1.0
    elif chosen1 >= 0:
        length = read_length(reads, read + 1)
        rivals1 = rivals_of(table, read + 1, length, chosen1, best1, odds[0])
        total = rivals1[0] + 1.0
    for mate in range(mates):
        chosen = chosen0 if mate == 0 else chosen1
        choices[read + mate, CHOSEN] = -1
        choices[read + mate, QUALITY] = 0
        choices[read + mate, SECOND] = 0
        length = read_length(reads, read + mate)
        least = lowest if is_proper else least_score
        if chosen >= 0 and reported_score(table, chosen, length, costs) >= least:
            rivals = rivals0 if mate == 0 else rivals1
            choices[read + mate, CHOSEN] = chosen
            choices[read + mate, QUALITY] = quality_of(rivals, total, is_proper, length, odds[1])
            choices[read + mate, SECOND] = second_score(table, read + mate, chosen, length, costs)
