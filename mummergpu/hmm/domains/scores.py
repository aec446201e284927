"""Scores of sequences and of their domains, rounded to float32 wherever HMMER rounds them."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np

from mummergpu.hmm.domains.forward import END, SCALE, Cells, Group
from mummergpu.hmm.domains.logarithms import Logarithms, log32, log64
from mummergpu.hmm.domains.sampling import SAMPLES
from mummergpu.hmm.tables import LN2
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int64Array
from mummergpu.runtime.jit import inline, jit

_OMEGA: Final = 1.0 / 256
"""The chance that a sequence is of biased composition."""
_SUMS: Final = 16_000
_SUMS_OF_NAT: Final = 1000
_LARGEST_DIFFERENCE: Final = 15.7

SCORE, PLAIN, SUM = range(3)
"""A sequence's scores in bits: that reported, that without correction, and that of its domains."""
ENVELOPE, CORRECTION, ACCURACY, BIAS, BITS = range(5)
"""The numbers of a domain: its score and its correction in nats, the expected number of residues
that are aligned right, the correction of the score in bits, and this score."""


@cache
def log_sums() -> Float32Array:
    """Return log(1 + exp(-x)) for thousandths x."""
    steps = (-one / _SUMS_OF_NAT for one in range(_SUMS))
    return np.array([math.log(1 + math.exp(one)) for one in steps], dtype=np.float32)


@jit
def score_sums(
    group: Group, cells: Cells, rows: int, logs: Logarithms, scores: Float32Array
) -> None:
    """Compute the scores of sequences in nats after `fill_forward`; NaN where no path ends."""
    for quarter in range(len(cells.quarters)):
        total = np.float32(0)
        for row in range(rows - group.sizes[quarter] + 1, rows + 1):
            scale = cells.kept[row, SCALE, quarter]
            if scale > np.float32(1):
                total = np.float32(np.float64(total) + log64(logs.long, np.float64(scale)))
        end = cells.kept[rows, END, quarter]
        scores[quarter] = np.nan
        if end > 0 and end < np.inf:
            left = log64(logs.long, np.float64(end * group.chances[1, quarter]))
            scores[quarter] = np.float32(np.float64(total) + left)


@jit
def keep_sampled_odds(
    totals: Float32Array, first: int, logs: Logarithms, corrections: Float32Array
) -> None:
    """Keep the logarithms of the mean odds of a region's residues, from residue `first` on."""
    for place in range(1, totals.size):
        mean = totals[place] / np.float32(SAMPLES)
        corrections[first + place - 1] = log32(logs.short, mean)


@jit
def keep_odds(
    odds: Float32Array,
    quarter: int,
    codes: ByteArray,
    first: int,
    logs: Logarithms,
    corrections: Float32Array,
) -> None:
    """Keep the logarithms of the odds of a domain's residues, from residue `first` on."""
    for place in range(codes.size):
        own = odds[np.int64(codes[place]), quarter]
        corrections[first + place] = log32(logs.short, own)


@jit
def sum_corrections(corrections: Float32Array, first: int, last: int, sums: Float32Array) -> None:
    """Add up the corrections of residues, into `sums[0]`."""
    total = np.float32(0)
    for place in range(first, last + 1):
        total += corrections[place]
    sums[0] = total


@inline
def log_sum(correction: np.float32, table: Float32Array, logs: Logarithms) -> np.float32:
    """Return how much a correction, weighted by its chance, is more than none; in nats."""
    other = np.float32(log64(logs.long, _OMEGA) + np.float64(correction))
    zero = np.float32(0)
    highest = zero if zero > other else other
    lowest = zero if zero < other else other
    difference = highest - lowest
    if lowest == -np.inf or difference >= np.float32(_LARGEST_DIFFERENCE):
        return highest
    more = table[np.int64(difference * np.float32(_SUMS_OF_NAT))]
    return np.float32(highest + more)


@inline
def bits_of(nats: np.float32) -> np.float32:
    """Return a score in bits."""
    return np.float32(np.float64(nats) / LN2)


@inline
def kahan_sum(numbers: Float32Array) -> np.float32:
    """Return the sum as Easel adds it up."""
    total, lost = np.float32(0), np.float32(0)
    for number in numbers:
        term = number - lost
        raised = total + term
        lost = (raised - total) - term
        total = raised
    return total


@jit
def score_sequence(
    nats: Float32Array,
    residues: int,
    corrects: bool,
    corrections: Float32Array,
    table: Float32Array,
    logs: Logarithms,
    envelopes: Int64Array,
    domains: Float32Array,
    scores: Float32Array,
) -> None:
    """Compute the scores of a sequence and complete those of its domains.

    `nats` are its score over all paths and the background's. `envelopes`, (n, 2), and `domains`,
    (n, 5), are of each domain; `corrects` says whether scores are corrected for composition.
    """
    forward, null = nats[0], nats[1]
    zero = np.float32(0)
    bias = log_sum(kahan_sum(corrections), table, logs) if corrects else zero
    scores[PLAIN] = bits_of(forward - null)
    scores[SCORE] = bits_of(forward - (null + bias))
    ratio = np.float32(residues) / np.float32(residues + 3)
    outside = log64(logs.long, np.float64(ratio))
    total, bias, inside = zero, zero, 0
    for one in range(domains.shape[0]):
        envelope, correction = domains[one, ENVELOPE], domains[one, CORRECTION]
        if envelope - (correction if corrects else zero) > 0:
            total += envelope
            bias += correction
            inside += envelopes[one, 1] - envelopes[one, 0] + 1
    bias = log_sum(bias, table, logs) if corrects else zero
    total = np.float32(np.float64(total) + (residues - inside) * outside)
    scores[SUM] = bits_of(total - (null + bias))
    if inside > 0 and scores[SUM] > scores[SCORE]:
        scores[SCORE] = scores[SUM]
        scores[PLAIN] = bits_of(total - null)
    for one in range(domains.shape[0]):
        size = envelopes[one, 1] - envelopes[one, 0] + 1
        own = np.float32(np.float64(domains[one, ENVELOPE]) + (residues - size) * outside)
        bias = log_sum(domains[one, CORRECTION], table, logs) if corrects else zero
        domains[one, BIAS] = bias
        domains[one, BITS] = bits_of(own - (null + bias))


@jit
def score_backgrounds(
    codes: ByteArray,
    offsets: Int64Array,
    sequences: Int64Array,
    odds: Float32Array,
    steps: Float32Array,
    corrects: bool,
    logs: Logarithms,
    scores: Float32Array,
) -> None:
    """Compute the scores of sequences without the profile in nats, (n, 2).

    The second ones are corrected for the composition of the profile, if `corrects`.

    `odds`, (29, 2), are those of each code in the states without and with the profile's
    composition; `steps` are the chances to leave the latter and to stay there.
    """
    for sequence in range(sequences.size):
        begin, end = offsets[sequences[sequence]], offsets[sequences[sequence] + 1]
        size = np.float32(end - begin)
        stay = size / np.float32(end - begin + 1)
        exact = np.float64(stay)
        left = log64(logs.long, 1.0 - exact)
        scores[sequence, 0] = np.float32(np.float64(size) * log64(logs.long, exact) + left)
        scores[sequence, 1] = scores[sequence, 0]
        if not corrects:
            continue
        leave = np.float32(1) - stay
        plain, biased, total = np.float32(0.999), np.float32(0.001), np.float32(0)
        for place in range(begin, end):
            code = np.int64(codes[place])
            if place > begin:
                before = plain
                plain = before * stay + biased * steps[0]
                biased = before * leave + biased * steps[1]
            plain, biased = plain * odds[code, 0], biased * odds[code, 1]
            most = plain if plain > biased else biased
            plain, biased = plain / most, biased / most
            total += np.float32(log64(logs.long, np.float64(most)))
        total += np.float32(log64(logs.long, np.float64(plain + biased)))
        total += size * log32(logs.short, stay)
        scores[sequence, 1] = total + log32(logs.short, np.float32(1.0 - exact))
