"""Minimizers, contexts and extensions on the other strand: what plain Python finds."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.loops import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mummergpu.sequence import minimizers
from mummergpu.sequence.codes import BREAK, MARGIN, STEP, with_margins
from mummergpu.sequence.contexts import BROKEN, CONTEXT_BASES, context_at, equal_sides
from mummergpu.sequence.extension import (
    extend_left,
    extend_left_reversed,
    extend_right,
    extend_right_reversed,
)
from mummergpu.sequence.minimizers import find_minimizers, minimizers_expected, new_workspace

# The first example compiles.
EXAMPLES = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])

Found = list[tuple[int, bool, int]]
"""The position of each minimizer, whether it is turned, and its rank."""


def codes_of(numbers):
    return np.array(numbers, dtype=np.uint8)


def turned(codes):
    """The reverse complement."""
    return [3 - code if code < BREAK else BREAK for code in reversed(codes)]


def rank_of(kmer):
    """The rank of a k-mer, and whether its reverse complement is the lower number."""
    if BREAK in kmer:
        return None
    numbers = [
        sum(code << 2 * place for place, code in enumerate(one)) for one in (kmer, turned(kmer))
    ]
    mixed = min(numbers)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        mixed = (mixed ^ mixed >> shift) * factor & 0xFFFFFFFF
    return (mixed >> 1) + 1, numbers[0] > numbers[1]


def by_definition(codes, kmer_length, window):
    """All k-mers that have the lowest rank of some window."""
    ranks = [rank_of(codes[at : at + kmer_length]) for at in range(len(codes) - kmer_length + 1)]
    found = set()
    for begin in range(len(ranks) - window + 1):
        whole = [(rank, at) for at in range(begin, begin + window) if (rank := ranks[at])]
        lowest = min(whole)[0][0] if whole else 0
        found |= {(at, rank[1], rank[0]) for rank, at in whole if rank[0] == lowest}
    return sorted(found)


def found_in(codes, kmer_length, window, cuts=()):
    """What the compiled function finds, part by part."""
    padded = with_margins(codes_of(codes))
    places, ranks = np.empty(len(codes) + 1, np.int64), np.empty(len(codes) + 1, np.uint32)
    bounds = [0, *sorted(cuts), len(codes)]
    filled = 0
    for first, behind in pairwise(bounds):
        filled = find_minimizers(
            *(padded, MARGIN, MARGIN + len(codes), MARGIN + first, MARGIN + behind),
            *(kmer_length, window, new_workspace(), filled, places, ranks),
        )
    return [
        (place // 2 - MARGIN, place % 2 == 1, rank)
        for place, rank in zip(places[:filled].tolist(), ranks[:filled].tolist(), strict=True)
    ]


@EXAMPLES
@given(data=st.data(), kmer_length=st.sampled_from([1, 3, 5, 9]), window=st.integers(1, 20))
def test_the_lowest_kmers_of_all_windows_are_found(data, kmer_length, window):
    letters = data.draw(st.integers(0, BREAK))
    codes = data.draw(st.lists(st.integers(0, letters), min_size=1, max_size=120))
    cuts = data.draw(st.lists(st.integers(0, len(codes)), max_size=3))
    expected = by_definition(codes, kmer_length, window)
    assert found_in(codes, kmer_length, window, tuple(cuts)) == expected
    # Those of the other strand are the same.
    last = len(codes) - kmer_length
    mirrored = [(last - at, not is_turned, rank) for at, is_turned, rank in reversed(expected)]
    assert found_in(turned(codes), kmer_length, window) == mirrored


@pytest.mark.parametrize("window", [1, 8, 100, minimizers.MAXIMUM_WINDOW])
def test_parts_that_are_looked_at_together_meet(window, monkeypatch):
    """A sequence of several chunks, with a break beside a border."""
    codes = np.random.default_rng(window).integers(0, BREAK, 2 * minimizers.CHUNK + 700).tolist()
    codes[minimizers.CHUNK - 1] = BREAK
    expected = by_definition(codes, 9, window)
    assert found_in(codes, 9, window) == found_in(codes, 9, window, (1, 2500)) == expected
    assert 0.8 < len(expected) / minimizers_expected(len(codes), window) < 1.2


def test_no_window_has_no_minimizer():
    assert found_in([0, 1, 2, 3] * 3, 9, 5) == []
    assert found_in([BREAK] * 50, 9, 5) == []
    assert [at for at, _, _ in found_in([0] * 20, 9, 5)] == list(range(12))


@EXAMPLES
@given(data=st.data())
def test_contexts_tell_how_far_the_sides_agree(data):
    """Of two k-mers, each on either strand."""
    length = 5
    kmer = data.draw(st.lists(st.integers(0, 3), min_size=length, max_size=length))
    texts, contexts = [], []
    for _ in range(2):
        sides = st.lists(st.integers(0, data.draw(st.integers(0, BREAK))), min_size=9, max_size=9)
        texts.append(data.draw(sides) + kmer + data.draw(sides))
    is_lower = rank_of(kmer) == (rank_of(kmer)[0], False)  # type: ignore[index]
    for text in texts:
        shown = turned(text) if data.draw(st.booleans()) else text
        is_turned = (shown is text) != is_lower
        contexts.append(int(context_at_of(shown, length, is_turned)))
        near = text[9 - CONTEXT_BASES : 9 + length + CONTEXT_BASES]
        assert (contexts[-1] >> 32 == 1) == (BREAK in near)
    if any(context & int(BROKEN) for context in contexts):
        return
    one, other = (with_margins(codes_of(text)) for text in texts)
    where = MARGIN + 9
    sides = (
        extend_left(one, where, other, where, CONTEXT_BASES),
        extend_right(one, where + length, other, where + length, CONTEXT_BASES),
    )
    told = equal_sides(np.uint64(contexts[0] ^ contexts[1] | 0b101 << 33))
    assert tuple(told) == (sides if is_lower else sides[::-1])


def context_at_of(codes, kmer_length, is_turned):
    """The context of the k-mer behind nine bases."""
    return context_at(with_margins(codes_of(codes)), MARGIN + 9, kmer_length, is_turned)


@EXAMPLES
@given(data=st.data(), most=st.one_of(st.integers(0, 3 * STEP), st.just(1 << 40)))
def test_bases_pair_as_on_the_reverse_complement(data, most):
    common = data.draw(st.lists(st.integers(0, 3), max_size=3 * STEP))
    one = data.draw(st.lists(st.integers(0, BREAK), max_size=3)) + common
    other = data.draw(st.lists(st.integers(0, BREAK), max_size=3)) + common
    one += data.draw(st.lists(st.integers(0, BREAK), max_size=3))
    at = data.draw(st.integers(0, len(one)), "at")
    along = min(max(at + len(other) - len(one), 0), len(other))
    other_at = data.draw(st.one_of(st.just(along), st.integers(0, len(other))), "other at")
    texts = with_margins(codes_of(one)), with_margins(codes_of(other))
    where = (texts[0], MARGIN + at, texts[1], MARGIN + other_at, most)
    back = with_margins(codes_of(turned(other)))
    reversed_where = (texts[0], MARGIN + at, back, MARGIN + len(other) - other_at, most)
    assert extend_right_reversed(*reversed_where) == extend_right(*where)
    assert extend_left_reversed(*reversed_where) == extend_left(*where)


@each("length", [0, 1, STEP - 1, STEP, STEP + 1, 3 * STEP + 5])
def test_pairs_end_at_differences_and_breaks(length):
    run = np.random.default_rng(length).integers(0, BREAK, length).tolist()
    for ends in ((0, 1), (BREAK, BREAK), (2, BREAK), (BREAK, 3)):
        one = with_margins(codes_of([ends[0], *run, ends[0]]))
        back = with_margins(codes_of(turned([ends[1], *run, ends[1]])))
        begin, end = MARGIN + 1, MARGIN + 1 + length
        assert extend_right_reversed(one, begin, back, end, 1 << 40) == length
        assert extend_left_reversed(one, end, back, begin, 1 << 40) == length
