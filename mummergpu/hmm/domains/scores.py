"""Scores of sequences and of their domains, rounded to float32 wherever HMMER rounds them."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np

from mummergpu.hmm.domains import fields
from mummergpu.hmm.domains.parses import (
    Envelopes,
    Parses,
)
from mummergpu.hmm.logarithms import Logarithms, log32, log64
from mummergpu.hmm.tables import LN2
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int64Array
from mummergpu.runtime.jit import inline, jit

_OMEGA: Final = 1.0 / 256
"""The chance that a sequence is of biased composition."""
_SUMS: Final = 16_000
_SUMS_OF_NAT: Final = 1000
_LARGEST_DIFFERENCE: Final = 15.7


@cache
def log_sums() -> Float32Array:
    """Return log(1 + exp(-x)) for thousandths x."""
    steps = (-one / _SUMS_OF_NAT for one in range(_SUMS))
    return np.array([math.log(1 + math.exp(one)) for one in steps], dtype=np.float32)


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
def score_sequences(
    parses: Parses, found: Envelopes, corrects: bool, table: Float32Array, logs: Logarithms
) -> None:
    """Compute the scores of all sequences and of their domains, in bits.

    `corrects` says whether scores are corrected for composition.
    """
    end = 0
    for one in range(len(parses.sequences)):
        begin = end
        while end < len(found.places) and found.places[end, fields.SEQUENCE] == one:
            end += 1
        own = Envelopes(found.places[begin:end], found.numbers[begin:end])
        count_domains(parses.sequences[one], own)
        score_sequence(parses, one, own, corrects, table, logs)


@inline
def count_domains(sequence: Int64Array, own: Envelopes) -> None:
    """Count the envelopes and domains of a sequence, and the overlaps of sampled ones."""
    last = 0
    sequence[fields.ENVELOPES] = len(own.places)
    for envelope in own.places:
        sequence[fields.OVERLAPS] += envelope[fields.IS_SAMPLED] and envelope[fields.FIRST] <= last
        if envelope[fields.IS_DOMAIN]:
            sequence[fields.DOMAINS] += 1
            last = envelope[fields.LAST]


@inline
def score_sequence(
    parses: Parses,
    one: int,
    own: Envelopes,
    corrects: bool,
    table: Float32Array,
    logs: Logarithms,
) -> None:
    """Compute the scores of a sequence and of its domains."""
    sequence, scores = parses.sequences[one], parses.scores[one]
    forward, null, residues = scores[fields.FORWARD], scores[fields.NULL], sequence[fields.RESIDUES]
    zero, first = np.float32(0), sequence[fields.CORRECTIONS]
    corrections = parses.corrections[first : first + residues + 1]
    bias = log_sum(kahan_sum(corrections), table, logs) if corrects else zero
    scores[fields.PLAIN] = bits_of(forward - null)
    scores[fields.SCORE] = bits_of(forward - (null + bias))
    ratio = np.float32(residues) / np.float32(residues + 3)
    outside = log64(logs.long, np.float64(ratio))
    total, bias, inside, best, highest = zero, zero, 0, 0, np.float32(-np.inf)
    for envelope, numbers in zip(own.places, own.numbers):  # noqa: B905
        if not envelope[fields.IS_DOMAIN]:
            continue
        size = envelope[fields.LAST] - envelope[fields.FIRST] + 1
        if numbers[fields.ENVELOPE] - (numbers[fields.CORRECTION] if corrects else zero) > 0:
            total += numbers[fields.ENVELOPE]
            bias += numbers[fields.CORRECTION]
            inside += size
        alone = np.float32(np.float64(numbers[fields.ENVELOPE]) + (residues - size) * outside)
        numbers[fields.BIAS] = (
            log_sum(numbers[fields.CORRECTION], table, logs) if corrects else zero
        )
        numbers[fields.BITS] = bits_of(alone - (null + numbers[fields.BIAS]))
        if numbers[fields.BITS] > highest:
            highest, sequence[fields.BEST] = numbers[fields.BITS], best
        best += 1
    bias = log_sum(bias, table, logs) if corrects else zero
    total = np.float32(np.float64(total) + (residues - inside) * outside)
    scores[fields.SUM] = bits_of(total - (null + bias))
    if inside > 0 and scores[fields.SUM] > scores[fields.SCORE]:
        scores[fields.SCORE] = scores[fields.SUM]
        scores[fields.PLAIN] = bits_of(total - null)


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
