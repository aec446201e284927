"""K-mers, minimizers and comparisons of many bases at a time: what plain Python finds."""

import random
from itertools import pairwise

import numpy as np
import pytest
from helpers.loops import each
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mummergpu.runtime.jit import jit
from mummergpu.sequence import minimizers
from mummergpu.sequence.codes import BREAK, MARGIN, with_margins
from mummergpu.sequence.contexts import BROKEN, CONTEXT_BASES, context_at, equal_sides
from mummergpu.sequence.extension import (
    MAXIMUM_KMER_LENGTH,
    STEP,
    digest_before,
    digest_bits,
    equal_bytes,
    extend_left,
    extend_left_reversed,
    extend_match,
    extend_right,
    extend_right_reversed,
    kmer_at,
)
from mummergpu.sequence.minimizers import find_minimizers, minimizers_expected, new_workspace
from mummergpu.sequence.picked_kmers import MAX_BASES, mark_picked, picked_kmer

ANY = 1 << 40


# The first example compiles.
EXAMPLES = settings(max_examples=100)


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


def places_in(data, one, other):
    """A place in each of two sequences, mostly on the diagonal that has the common run."""
    at = data.draw(st.integers(0, len(one)), "at")
    along = min(max(at + len(other) - len(one), 0), len(other))
    return at, data.draw(st.one_of(st.just(along), st.integers(0, len(other))), "other at")


@EXAMPLES
@given(pair=pairs(), data=st.data(), most=st.one_of(st.integers(0, 3 * STEP), st.just(ANY)))
def test_as_many_are_equal_as_are_counted_one_by_one(pair, data, most):
    """In step with a sequence, and with its reverse complement."""
    one, other = pair
    at, other_at = places_in(data, one, other)
    texts = with_margins(codes_of(one)), with_margins(codes_of(other))
    where = (texts[0], MARGIN + at, texts[1], MARGIN + other_at, most)
    ahead = count_ahead(one, at, other, other_at, most)
    behind = count_behind(one, at, other, other_at, most)
    assert extend_right(*where) == ahead and extend_left(*where) == behind
    back = with_margins(codes_of(turned(other)))
    where = (texts[0], MARGIN + at, back, MARGIN + len(other) - other_at, most)
    assert extend_right_reversed(*where) == ahead and extend_left_reversed(*where) == behind


@each("most", [0, 1, STEP - 1, STEP, STEP + 1, 2 * STEP, ANY])
@pytest.mark.parametrize("length", [0, 1, *range(STEP - 2, STEP + 3), 2 * STEP, 5 * STEP + 7])
def test_runs_of_every_length_end_at_a_difference_or_a_break(length, most):
    """However long the run is, and wherever it begins; margins are breaks as well."""
    run = np.random.default_rng(length).integers(0, BREAK, length).tolist()
    expected = min(length, most)
    for ends in (([], []), ([0], [1]), ([BREAK], [BREAK]), ([2], [BREAK]), ([BREAK], [3])):
        second = ends[1] + run + ends[1]
        other, back = with_margins(codes_of(second)), with_margins(codes_of(turned(second)))
        for shift in (0, 1, STEP - 1, STEP):
            one = with_margins(codes_of([BREAK] * shift + ends[0] + run + ends[0]))
            begin, behind = MARGIN + shift + len(ends[0]), MARGIN + len(ends[1])
            end = begin + length
            assert extend_right(one, begin, other, behind, most) == expected
            assert extend_left(one, end, other, behind + length, most) == expected
            assert extend_right_reversed(one, begin, back, behind + length, most) == expected
            assert extend_left_reversed(one, end, back, behind, most) == expected


def test_margins_are_a_copy_with_breaks_around_it():
    codes = codes_of([0, 1, 2, 3, 4, 0])
    padded = with_margins(codes)
    assert padded.dtype == np.uint8 and padded.flags.c_contiguous
    assert padded.tolist() == [BREAK] * MARGIN + codes.tolist() + [BREAK] * MARGIN
    codes[:] = 3
    assert padded[MARGIN] == 0 and with_margins(codes[:0]).tolist() == [BREAK] * 2 * MARGIN


def test_margins_are_as_wide_as_what_is_read_beyond_the_ends():
    # A step that begins at the last base or behind it, and the two words of a k-mer.
    assert MARGIN >= STEP and MARGIN >= 16 >= MAXIMUM_KMER_LENGTH


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


@each("equal", range(14))
def test_the_bits_of_a_digest_say_whether_the_nearest_bases_are_equal(equal):
    """Whatever lies before these; and they change with any one of them."""
    assert [digest_bits(bases) for bases in (0, 1, 3, 4, 7, 8, 11, 12, 40)] == [
        *(0, 0xC0, 0xC0, 0xF0, 0xF0, 0xFC, 0xFC, 0xFF, 0xFF),
    ]
    random = np.random.default_rng(equal)
    bits = digest_bits(equal)
    for _ in range(50):
        codes = random.integers(0, 4, 20)
        other = random.integers(0, BREAK + 1, 20)
        other[20 - equal :] = codes[20 - equal :]
        one, two = (with_margins(codes_of(bases)) for bases in (codes, other))
        first, second = (int(digest_before(bases, MARGIN + 20)) for bases in (one, two))
        assert first & bits == second & bits
        if equal >= 12:
            one[MARGIN + 20 - random.integers(1, 13)] ^= random.integers(1, 4)
            assert int(digest_before(one, MARGIN + 20)) != first


@each("bits", [0xFF, 0xF0, 0xC0, 0x3F])
def test_bytes_with_some_bits_are_found_at_once(bits):
    content = np.random.default_rng(bits).integers(0, 256, 3 * STEP).astype(np.uint8)
    for at in range(2 * STEP):
        wanted = int(content[at + at % STEP]) & bits
        found = [int(byte) & bits == wanted for byte in content[at : at + STEP]]
        mask = mask_of_equal_bytes(content, at, bits, wanted)
        assert [mask >> lane & 1 == 1 for lane in range(STEP)] == found


@jit
def mask_of_equal_bytes(content, at, bits, wanted):
    return equal_bytes(content, at, bits, wanted)


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
        texts.append((len(before), codes_of([*before, *shared, *rest])))
    (start, codes), (other_start, other) = texts
    known = data.draw(st.integers(0, common))
    end = data.draw(st.integers(start + known, codes.size))
    expected = known + count_ahead(codes[:end], start + known, other, other_start + known, ANY)
    assert extend_match(other, codes, start, end, other_start, known) == expected


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
    assert found_in([0, 1, 2, 3] * 3, 9, 5) == [] and found_in([BREAK] * 50, 9, 5) == []
    assert [at for at, _, _ in found_in([0] * 20, 9, 5)] == list(range(12))


@EXAMPLES
@given(data=st.data())
def test_contexts_tell_how_far_the_sides_agree(data):
    """Of two k-mers, each on either strand."""
    length, where = 5, MARGIN + 9
    kmer = data.draw(st.lists(st.integers(0, 3), min_size=length, max_size=length))
    texts, contexts = [], []
    for _ in range(2):
        sides = st.lists(st.integers(0, data.draw(st.integers(0, BREAK))), min_size=9, max_size=9)
        texts.append(data.draw(sides) + kmer + data.draw(sides))
    is_lower = not rank_of(kmer)[1]
    for text in texts:
        shown = turned(text) if data.draw(st.booleans()) else text
        is_turned = (shown is text) != is_lower
        contexts.append(int(context_at(with_margins(codes_of(shown)), where, length, is_turned)))
        near = text[9 - CONTEXT_BASES : 9 + length + CONTEXT_BASES]
        assert (contexts[-1] >> 32 == 1) == (BREAK in near)
    if any(context & int(BROKEN) for context in contexts):
        return
    one, other = (with_margins(codes_of(text)) for text in texts)
    sides = (
        extend_left(one, where, other, where, CONTEXT_BASES),
        extend_right(one, where + length, other, where + length, CONTEXT_BASES),
    )
    told = equal_sides(np.uint64(contexts[0] ^ contexts[1] | 0b101 << 33))
    assert tuple(told) == (sides if is_lower else sides[::-1])


SAMPLINGS = [(14, 7), (13, 8), (6, 4), (3, 2), (6, 15), (3, 5), (15, 18), (1, 3), (5, 1)]


@jit
def picked_at(codes, at, kmer_length, kmers):
    """Call `picked_kmer`."""
    return picked_kmer(codes, at, kmer_length, kmers)


def sequence_of(bases, seed=0):
    """Random bases with breaks, a run of one base, and copies of two."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 4, bases).astype(np.uint8)
    codes[random.integers(0, bases, bases // 200)] = BREAK
    codes[bases // 4 : bases // 3] = 0
    codes[bases // 2 : bases // 2 + 200] = np.tile([0, 1], 100)
    return codes


def listed(padded, first, behind, kmer_length, kmers):
    """The places of picked k-mers of a part."""
    marks = np.zeros(-(-(behind - first) // 64), dtype=np.uint64)
    mark_picked(padded, first, behind, kmer_length, kmers, marks)
    bits = np.unpackbits(marks.view(np.uint8), bitorder="little")
    return (first + np.flatnonzero(bits)).tolist()


@pytest.mark.parametrize(("kmer_length", "kmers"), SAMPLINGS)
def test_those_are_listed_that_are_picked_somewhere(kmer_length, kmers):
    codes = sequence_of(3000)
    padded, span = with_margins(codes), kmer_length + kmers - 1
    picked = []
    for begin in range(MARGIN - 5, padded.size - MARGIN):
        offset = picked_at(padded, begin, kmer_length, kmers)
        has_break = bool((padded[begin : begin + span] == BREAK).any())
        assert (offset == -1) if has_break else 0 <= offset < kmers
        if offset >= 0:
            picked.append(begin + offset)
    # They never step back.
    assert picked == sorted(picked)
    expected = sorted(set(picked))
    behind = MARGIN + codes.size
    assert listed(padded, MARGIN, behind, kmer_length, kmers) == expected
    parts = [
        place
        for first in range(MARGIN, behind, 77)
        for place in listed(padded, first, min(first + 77, behind), kmer_length, kmers)
    ]
    assert parts == expected


def test_the_same_bases_have_the_same_picked_kmer():
    codes = sequence_of(500, 1)
    copies = with_margins(np.concatenate((codes, [BREAK], codes)))
    for kmer_length, kmers in SAMPLINGS:
        assert kmer_length + kmers - 1 <= MAX_BASES
        one, other = (
            [
                picked_at(copies, MARGIN + first + at, kmer_length, kmers)
                for at in range(500 - kmer_length - kmers + 1)
            ]
            for first in (0, 501)
        )
        assert one == other


def test_of_random_bases_few_are_picked():
    padded = with_margins(np.random.default_rng(3).integers(0, 4, 200_000).astype(np.uint8))
    for (kmer_length, kmers), share in (((14, 7), 3 / 15), ((12, 5), 3 / 11), ((5, 5), 2 / 6)):
        found = listed(padded, MARGIN, padded.size - MARGIN, kmer_length, kmers)
        assert len(found) == pytest.approx(share * 200_000, rel=0.03)
