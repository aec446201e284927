"""Many bases compared at a time, and k-mers read as words: what plain Python counts."""

import random

import numpy as np
import pytest
from helpers.loops import each
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mummergpu.sequence.codes import BREAK, MARGIN, with_margins
from mummergpu.sequence.extension import (
    MAXIMUM_KMER_LENGTH,
    STEP,
    extend_left,
    extend_match,
    extend_right,
    kmer_at,
)

ANY = 1 << 40

# The first example compiles.
EXAMPLES = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def codes_of(numbers):
    return np.array(numbers, dtype=np.uint8)


def count_ahead(one, at, other, other_at, most):
    equal = 0
    while (
        equal < most
        and at + equal < len(one)
        and other_at + equal < len(other)
        and one[at + equal] == other[other_at + equal] != BREAK
    ):
        equal += 1
    return equal


def count_behind(one, at, other, other_at, most):
    backward = len(one) - at, len(other) - other_at
    return count_ahead(one[::-1], backward[0], other[::-1], backward[1], most)


@st.composite
def pairs(draw):
    """Two sequences that have a long run in common, with a few differences and breaks."""
    letters = draw(st.sampled_from([1, 2, 4]))
    common = draw(st.lists(st.integers(0, letters - 1), max_size=4 * STEP))
    found = []
    for _ in range(2):
        text = [*draw(st.lists(st.integers(0, BREAK), max_size=STEP + 2)), *common]
        text += draw(st.lists(st.integers(0, BREAK), max_size=3))
        for _ in range(draw(st.integers(0, 2)) if text else 0):
            text[draw(st.integers(0, len(text) - 1))] = draw(st.integers(0, BREAK))
        found.append(text)
    return found[0], found[1]


@EXAMPLES
@given(pair=pairs(), data=st.data(), most=st.one_of(st.integers(0, 3 * STEP), st.just(ANY)))
def test_as_many_are_equal_as_are_counted_one_by_one(pair, data, most):
    one, other = pair
    at = data.draw(st.integers(0, len(one)), "at")
    # Mostly on the diagonal that has the common run.
    along = min(max(at + len(other) - len(one), 0), len(other))
    other_at = data.draw(st.one_of(st.just(along), st.integers(0, len(other))), "other at")
    texts = with_margins(codes_of(one)), with_margins(codes_of(other))
    where = (texts[0], MARGIN + at, texts[1], MARGIN + other_at, most)
    assert extend_right(*where) == count_ahead(one, at, other, other_at, most)
    assert extend_left(*where) == count_behind(one, at, other, other_at, most)


@each("most", [0, 1, STEP - 1, STEP, STEP + 1, 2 * STEP, ANY])
@pytest.mark.parametrize("length", [0, 1, *range(STEP - 2, STEP + 3), 2 * STEP, 5 * STEP + 7])
def test_runs_of_every_length_end_at_a_difference_or_a_break(length, most):
    """However long the run is, and wherever it begins; margins are breaks as well."""
    run = np.random.default_rng(length).integers(0, BREAK, length).tolist()
    for ends in (([], []), ([0], [1]), ([BREAK], [BREAK]), ([2], [BREAK]), ([BREAK], [3])):
        for shift in (0, 1, STEP - 1, STEP):
            one = with_margins(codes_of([BREAK] * shift + ends[0] + run + ends[0]))
            other = with_margins(codes_of(ends[1] + run + ends[1]))
            begin, behind = MARGIN + shift + len(ends[0]), MARGIN + len(ends[1])
            expected = min(length, most)
            assert extend_right(one, begin, other, behind, most) == expected
            begin, behind = begin + length, behind + length
            assert extend_left(one, begin, other, behind, most) == expected


def test_a_break_equals_nothing_in_either_sequence():
    breaks = with_margins(codes_of([BREAK] * 100))
    bases = with_margins(codes_of([0] * 100))
    for one, other in ((breaks, breaks), (breaks, bases), (bases, breaks)):
        for at in range(MARGIN, MARGIN + 101, 20):
            assert extend_right(one, at, other, at, ANY) == 0
            assert extend_left(one, at, other, at, ANY) == 0


def test_margins_are_a_copy_with_breaks_around_it():
    codes = codes_of([0, 1, 2, 3, 4, 0])
    padded = with_margins(codes)
    assert padded.dtype == np.uint8 and padded.flags.c_contiguous
    assert padded.tolist() == [BREAK] * MARGIN + codes.tolist() + [BREAK] * MARGIN
    codes[:] = 3
    assert padded[MARGIN] == 0
    assert with_margins(codes[:0]).tolist() == [BREAK] * 2 * MARGIN


def test_margins_are_as_wide_as_what_is_read_beyond_the_ends():
    # A step that begins at the last base or behind it, and the two words of a k-mer.
    assert MARGIN >= STEP
    assert MARGIN >= 16 >= MAXIMUM_KMER_LENGTH


def number_of(kmer):
    if BREAK in kmer:
        return -1
    return sum(code << 2 * place for place, code in enumerate(kmer))


@EXAMPLES
@given(codes=st.lists(st.integers(0, 3), min_size=1, max_size=40), data=st.data())
@example([3] * 40, None)
@example([0] * 40, None)
def test_kmers_are_numbers_with_the_first_base_lowest(codes, data):
    codes = list(codes)
    if data is not None:
        for place in data.draw(st.lists(st.integers(0, len(codes) - 1), max_size=3), "breaks"):
            codes[place] = BREAK
    padded = with_margins(codes_of(codes))
    for length in range(1, MAXIMUM_KMER_LENGTH + 1):
        for at in range(len(codes)):
            kmer = codes[at : at + length]
            expected = number_of(kmer) if len(kmer) == length else -1
            assert kmer_at(padded, MARGIN + at, length) == expected


@pytest.mark.parametrize("length", range(1, MAXIMUM_KMER_LENGTH + 1))
def test_a_break_counts_just_within_the_kmer(length):
    for place in range(18):
        codes = [3] * 18
        codes[place] = BREAK
        expected = -1 if place < length else 4**length - 1
        assert kmer_at(with_margins(codes_of(codes)), MARGIN, length) == expected


@EXAMPLES
@given(data=st.data())
def test_a_match_is_followed_to_the_first_difference(data):
    """Neither sequence has margins, and nothing outside them is compared."""
    common = data.draw(st.integers(0, 200))
    some = random.Random(data.draw(st.integers(0, 1 << 20)))
    shared = some.choices(range(4), k=common)
    texts = []
    for _ in range(2):
        before = some.choices(range(4), k=data.draw(st.integers(0, 40)))
        rest = data.draw(st.lists(st.integers(0, 4), max_size=40))
        texts.append((len(before), np.array([*before, *shared, *rest], dtype=np.uint8)))
    (start, codes), (reference_start, reference) = texts
    known = data.draw(st.integers(0, common))
    end = data.draw(st.integers(start + known, codes.size))
    expected = known
    while (
        start + expected < end
        and reference_start + expected < reference.size
        and codes[start + expected] == reference[reference_start + expected] != BREAK
    ):
        expected += 1
    assert extend_match(reference, codes, start, end, reference_start, known) == expected
