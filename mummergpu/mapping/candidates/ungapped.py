"""Scores a read beside an exact match without gaps: compiled primitives.

A flank is what a read has before or after an exact match. It is compared with the reference on the
diagonal of the match, one vector register at a time; only the bases that differ are looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mummergpu.mapping.candidates.candidates import Scoring
from mummergpu.runtime.jit import inline, lowest_bit
from mummergpu.sequence.codes import BREAK, STEP, CodeArray
from mummergpu.sequence.extension import differences_left, differences_right

Part = tuple[int, int, int]
"""The score of the best part of a flank, the bases of the read in it, and its credit."""


class Flank(NamedTuple):
    """What a read has before or after a match, and what the reference has there.

    Attributes
    ----------
    codes : ndarray, dtype=uint8
        The reads on the strand of the match.
    at, bases : int
        The index of its base beside the match, or leftwards of the match's first base; and how
        many bases there are up to the end of the read.
    reference_at, reference_bases : int
        The same in the reference, up to the end of the record.
    quality_at, quality_step : int
        The quality of the base at an index of `codes` is at `quality_at` plus `quality_step` times
        that index.
    """

    codes: CodeArray
    at: int
    bases: int
    reference_at: int
    reference_bases: int
    quality_at: int
    quality_step: int


@inline
def score_flank(flank: Flank, is_left: bool, scoring: Scoring) -> Part:
    """Return the best part of a flank without gaps; of two with one score, the longer one.

    A part begins beside the match, and has the end bonus if it reaches the end of the read. The
    credit is that of its bases that differ.
    """
    read, reference, costs = flank.codes, scoring.target.codes, scoring.costs
    base_qualities, credits = scoring.qualities.base_qualities, scoring.qualities.credits
    at, reference_at = flank.at, flank.reference_at
    best, taken, score, credit, best_credit = 0, 0, 0, 0, 0
    end = min(flank.bases, flank.reference_bases)
    done = 0
    # A part can only end before a base that differs, or at the end: only there scores are compared.
    while done < end:
        if is_left:
            mask = differences_left(read, at - done, reference, reference_at - done)
        else:
            mask = differences_right(read, at + done, reference, reference_at + done)
        count = min(STEP, end - done)
        mask &= (np.uint64(1) << np.uint64(count)) - np.uint64(1)
        behind = 0
        while mask != np.uint64(0):
            place = lowest_bit(mask)
            score += (place - behind) * costs.match
            if score >= best:
                best, taken, best_credit = score, done + place, credit
            base = at - 1 - done - place if is_left else at + done + place
            if read[base] == BREAK:
                score -= costs.unknown
            else:
                score -= costs.mismatch
                credit += credits[base_qualities[flank.quality_at + flank.quality_step * base]]
            behind = place + 1
            mask &= mask - np.uint64(1)
        score += (count - behind) * costs.match
        done += count
        if score >= best:
            best, taken, best_credit = score, done, credit
        elif score + (end - done) * costs.match + costs.end_bonus < best:
            # Even if all other bases matched, no longer part would be better.
            return best, taken, best_credit
    if end == flank.bases:
        if score + costs.end_bonus >= best:
            best, taken, best_credit = score + costs.end_bonus, flank.bases, credit
    return best, taken, best_credit
