"""Mapping qualities: how likely it is that another placement than the chosen one is right.

A placement whose score is ``u`` units worse than the best has the weight ``exp(-u / scale)``
(`candidates.likelihoods_of_scores`), so the chosen one is wrong with the probability

    error = weight of the rivals / weight of all placements

Scores know nothing of the variants by which the sample differs from the reference, nor of copies
that the reference lacks. So the quality is that of a larger error:

    -10 log10(error * doubt_of(length) + (copies / expected copies)**2)

The constants of the doubt were set with the simulated reads of docs/mapping-benchmarks.md, which
have variants: its tables count the reads of each quality that are wrong, next to bwa mem's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidate_scores import min_loss
from mummergpu.mapping.candidates.candidates import (
    ALL_FOUND,
    BEST_QUALITY,
    FARTHEST,
    UNIT,
    Candidates,
    Scoring,
    is_rival,
    read_length,
)
from mummergpu.mapping.placing.pairing import NOTHING, Placing, pair_penalty, partner_range
from mummergpu.mapping.placing.rescue import MAX_TRIES
from mummergpu.runtime.arrays import Float64Array
from mummergpu.runtime.jit import as_int64, inline, jit


class Odds(NamedTuple):
    """What `candidates.likelihoods_of_scores` and `candidates.quality_thresholds` return."""

    weights: Float64Array
    thresholds: Float64Array


# Of the eleven numbers below, those that follow from others have their derivation. The rest were
# set by hand until, at qualities of 20 and of 1, no set of simulated reads had more wrong ones than
# bwa mem's (benchmarks/results/mapping-accuracy-*.json). That is all that is known of them: which
# other values were tried is not recorded, nor how sharp the optimum is.

DOUBTFUL_LENGTH: Final = 70.0
MAX_PAIRED_DOUBT: Final = 2.85
"""How many times likelier an error is than scores say, which ignore the variants that make one copy
of a repeat look like another: twice for a proper pair of reads of `DOUBTFUL_LENGTH` bases, more for
shorter ones, but at most this, which reads of 51 bases have. Both were set by hand."""

UNSUPPORTED_DOUBT: Final = 35.0
FULL_DOUBT_LENGTH: Final = 50.0
"""The same for a read that no mate supports: so much that a lead of one base never gives a quality
of 20, since one error at that base is enough to mislead. A lead of five points leaves an error of
4**-5, so at least 10.3 are needed; that it is 35, a quality of 14, was set by hand. For reads of
fewer bases it falls with the eighth power of their length, the least one with which it is that of
pairs at 36 bases, where many have no better lead."""

REPEAT_SIMILARITY_SHIFT: Final = 2
REPEAT_COPIES: Final = 30.0
REPEAT_BASES: Final = 750.0
"""A read of a family of `REPEAT_COPIES` equal copies is expected to fit one more that the reference
lacks; without a mate's support, of copies with `REPEAT_BASES` bases of the read: the longer a read
that copies share, the younger they are. Such copies come from pairs of others, so their number
grows with the square. A placement that is worse counts as a part of a copy: the fourth root of its
weight, so its score is shifted. All three were set by hand: 30 copies of a pair are 7.5 of a single
read of 100 bases."""

MAX_ERROR: Final = 0.3
MAX_DOUBTED_ERROR: Final = 0.8
"""A placement that is likelier wrong than this, by its scores or after the doubt, is one of
several, and has a quality of 0. The first was set by hand. With the second, the doubt lets at most
an error of 0.28 pass for pairs of 51 bases, and of 0.02 for a read that no mate supports."""

UNSEEN_PLACES: Final = 300.0
UNSEEN_OF_COPY: Final = 10.0
"""Where a read has so many matches that some are left out (`sequence.seed_rule`), places with one
difference more than all that are sure to be found are assumed: `UNSEEN_PLACES` if none are sure,
about as many as are looked at; else `UNSEEN_OF_COPY` for each copy that is found. Those of a
satellite are alike whether found or not, and the rare seed of a read of an old family distinguishes
it from all. Both are orders of magnitude, which were not fitted."""

Rivals = tuple[float, float]
"""The weight of other placements, and how many copies of the family they are."""


@inline
def score_fixed_of(table: Candidates, row: int) -> int:
    """Return the score of a candidate in units, with its credit."""
    numbers = table.numbers
    return as_int64(numbers[row, column.SCORE]) * UNIT + as_int64(numbers[row, column.CREDIT])


@inline
def weight_of(worse: int, weights: Float64Array) -> float:
    """Return the weight of a placement that is this many units worse than the best."""
    if worse > FARTHEST:
        return 0.0
    return weights[max(0, worse)]  # type: ignore[no-any-return]


@inline
def repeat_similarity_of(worse: int, weights: Float64Array) -> float:
    """Return how much a placement this many units worse is of the best one's family, 0 to 1."""
    if worse > FARTHEST:
        return 0.0
    return weight_of(worse >> REPEAT_SIMILARITY_SHIFT, weights)


@inline
def best_unseen(scoring: Scoring, table: Candidates, read: int) -> int:
    """Return the most units of a place of a read that was left out; `NOTHING` if none was."""
    if table.seeds_kept[read] == ALL_FOUND:
        return as_int64(NOTHING)
    costs = scoring.costs
    best = read_length(scoring.reads, read) * costs.match + 2 * costs.end_bonus
    return (best - as_int64(table.seeds_kept[read]) * min_loss(costs)) * UNIT


@inline
def unseen_places(table: Candidates, read: int, copies: float) -> float:
    """Return how many places of a read are assumed besides those of `copies` copies."""
    if table.seeds_kept[read] == ALL_FOUND:
        return 0.0
    return UNSEEN_PLACES if table.seeds_kept[read] == 0 else max(1.0, UNSEEN_OF_COPY * copies)


@inline
def with_unseen(seen: Rivals, places: float, worse: int, weights: Float64Array) -> Rivals:
    """Return the weights of rivals with those of `places` places that are worse by some units."""
    return seen[0] + places * weight_of(worse, weights), seen[1] + places * repeat_similarity_of(
        worse, weights
    )


@inline
def seen_rivals(
    table: Candidates, read: int, length: int, chosen: int, best: int, weights: Float64Array
) -> Rivals:
    """Return the weights of the candidates of a read that are rivals of the chosen one."""
    total, copies = 0.0, 0.0
    for row in range(table.offsets[read], table.offsets[read] + table.counts[read]):
        if is_rival(table, row, chosen, length):
            worse = best - score_fixed_of(table, row)
            total += weight_of(worse, weights)
            copies += repeat_similarity_of(worse, weights)
    return total, copies


@inline
def rivals_of(
    scoring: Scoring, table: Candidates, read: int, chosen: int, best: int, weights: Float64Array
) -> Rivals:
    """Return the weights of the rivals of the chosen candidate of a read, seen or not."""
    length = read_length(scoring.reads, read)
    seen = seen_rivals(table, read, length, chosen, best, weights)
    worse = best - best_unseen(scoring, table, read)
    return with_unseen(seen, unseen_places(table, read, seen[1]), worse, weights)


class ChosenPair(NamedTuple):
    """The chosen placements of two mates, and the scores that others are compared with."""

    # The chosen candidates of both mates.
    row: int
    other: int
    # The units of each mate's best candidate, chosen or not.
    best: int
    other_best: int
    pair_score: int  # The units of the chosen pair, whose weight is 1.
    is_proper: bool  # Whether that is a proper pair: if so, only proper pairs are of its family.


class Unseen(NamedTuple):
    """The most units of a place of a read that was left out (`best_unseen`), and their number."""

    score_fixed: int
    places: float


@inline
def unseen_pairs(
    read: int,
    table: Candidates,
    pair: ChosenPair,
    unseen: tuple[Unseen, Unseen],
    weights: Float64Array,
) -> Rivals:
    """Return the weights of the pairs of places of which one or both were left out.

    A mate that was left out is looked for near the other one (`rescue`), unless that was left out
    too, or has more places than are tried.
    """
    one, other = unseen
    both = pair.pair_score - (one.score_fixed + other.score_fixed)
    rivals = with_unseen((0.0, 0.0), min(one.places, other.places), both, weights)
    if table.counts[read + 1] > MAX_TRIES:
        worse = pair.pair_score - (one.score_fixed + pair.other_best)
        rivals = with_unseen(rivals, one.places, worse, weights)
    if table.counts[read] > MAX_TRIES:
        worse = pair.pair_score - (other.score_fixed + pair.best)
        rivals = with_unseen(rivals, other.places, worse, weights)
    return rivals[0], rivals[1] if pair.is_proper else 0.0


@jit
def weigh_pairs(
    read: int, placing: Placing, weights: Float64Array, pair: ChosenPair
) -> tuple[float, Rivals, Rivals]:
    """Return the weights of all placements of a pair, and of those that place each mate elsewhere.

    `read` is the first mate. Candidates that align another part of their read than the chosen one
    do not count. With the weights ``w`` of single placements and ``p`` of being no pair,

        total   = p * sum(w of mate 0) * sum(w of mate 1) + sum(w of each pair) + unseen pairs
        others0 = the same without the terms that place mate 0 where it was chosen; others1 alike

    and the copies of both mates' families are counted along with that.
    """
    scoring, pairing, table = placing
    unseen0, unseen1 = best_unseen(scoring, table, read), best_unseen(scoring, table, read + 1)
    is_complete = unseen0 == NOTHING and unseen1 == NOTHING
    if is_complete and table.counts[read] == 1 and table.counts[read + 1] == 1:
        return 1.0, (0.0, 0.0), (0.0, 0.0)
    length, other_length = read_length(scoring.reads, read), read_length(scoring.reads, read + 1)
    pair_score = pair.pair_score
    # Mates that are no pair are independent: the weights of their placements are multiplied.
    seen0 = seen_rivals(table, read, length, pair.row, pair.best, weights)
    seen1 = seen_rivals(table, read + 1, other_length, pair.other, pair.other_best, weights)
    places0 = unseen_places(table, read, seen0[1])
    places1 = unseen_places(table, read + 1, seen1[1])
    sum0, copies0 = with_unseen(seen0, places0, pair.best - unseen0, weights)
    sum1, copies1 = with_unseen(seen1, places1, pair.other_best - unseen1, weights)
    if pair.is_proper:
        copies0, copies1 = 0.0, 0.0
    own0 = weight_of(pair.best - score_fixed_of(table, pair.row), weights)
    own1 = weight_of(pair.other_best - score_fixed_of(table, pair.other), weights)
    apart = pair.best + pair.other_best - pairing.unpaired * UNIT
    unpaired = weight_of(pair_score - apart, weights)
    total = unpaired * (sum0 + own0) * (sum1 + own1)
    others0 = unpaired * sum0 * (sum1 + own1)
    others1 = unpaired * (sum0 + own0) * sum1
    if pairing.last_size == 0:
        # No size of a template is known, so no pair is likelier than two single placements.
        return total, (others0, copies0), (others1, copies1)
    # Pairs: each candidate of the first mate with those of the second that lie near enough.
    for row in range(table.offsets[read], table.offsets[read] + table.counts[read]):
        score_fixed = score_fixed_of(table, row)
        if pair_score - score_fixed - pair.other_best > FARTHEST:
            # Even with the best mate the pair weighs nothing.
            continue
        if row != pair.row and not is_rival(table, row, pair.row, length):
            continue
        begin, end = partner_range(table, row, read, read + 1, scoring, pairing)
        for other in range(begin, end):
            penalty = pair_penalty(table, row, length, other, other_length, pairing)
            if penalty < 0:
                # The template would have a size that no library has.
                continue
            if other != pair.other and not is_rival(table, other, pair.other, other_length):
                continue
            worse = pair_score - (score_fixed + score_fixed_of(table, other) - penalty)
            weight = weight_of(worse, weights)
            repeat_similarity = repeat_similarity_of(worse, weights) if pair.is_proper else 0.0
            total += weight
            if row != pair.row:
                others0 += weight
                copies0 += repeat_similarity
            if other != pair.other:
                others1 += weight
                copies1 += repeat_similarity
    unseen = Unseen(unseen0, places0), Unseen(unseen1, places1)
    weight, repeat_similarity = unseen_pairs(read, table, pair, unseen, weights)
    return (
        total + weight,
        (others0 + weight, copies0 + repeat_similarity),
        (others1 + weight, copies1 + repeat_similarity),
    )


@inline
def doubt_of(is_proper: bool, length: int) -> float:
    """Return how many times likelier an error is than scores say."""
    if is_proper:
        share = DOUBTFUL_LENGTH / length
        return min(MAX_PAIRED_DOUBT, 1.0 + share * share)
    share = min(1.0, length / FULL_DOUBT_LENGTH)
    square = share * share
    return max(MAX_PAIRED_DOUBT, UNSUPPORTED_DOUBT * square * square * square * square)


@inline
def quality_of(
    rivals: Rivals, total: float, is_proper: bool, length: int, thresholds: Float64Array
) -> int:
    """Return the mapping quality of a placement."""
    if rivals[0] == 0.0 and rivals[1] == 0.0:
        return BEST_QUALITY
    error = rivals[0] / total
    share = rivals[1] / (REPEAT_COPIES if is_proper else REPEAT_BASES / length)
    lacking = share * share
    doubted = error * doubt_of(is_proper, length) + lacking
    if error + lacking > MAX_ERROR or doubted > MAX_DOUBTED_ERROR:
        return 0
    quality = 1
    while doubted <= thresholds[quality + 1]:
        quality += 1
    return quality
