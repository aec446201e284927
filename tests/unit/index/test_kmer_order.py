"""Long lists are sorted by the bases before each position; short lists stay as they are."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.index import kmer_order
from mummergpu.index.kmer_order import MAX_ORDERED_BASES, order_long_lists
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import KmerPage, build_kmer_table
from mummergpu.index.pages import Page
from mummergpu.sequence.codes import BREAK, with_margins

CODES = np.array([0, 1] * 60 + [BREAK, 2] + [0, 1] * 60 + [3] * 70 + [0, 1] * 9, dtype=np.uint8)


def page_of(codes, begin, length, step=1):
    padded = with_margins(np.asarray(codes, dtype=np.uint8))
    table = build_kmer_table(
        padded, begin, len(codes), KmerSampling(length, step), with_bases_beside=True
    )
    return KmerPage(Page(2, begin, len(codes), len(codes)), table, padded, "r.mgi")


def ordered(page, longest, period, spread=map):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kmer_order, "MAX_UNSORTED_OCCURRENCES", longest)
        return order_long_lists(page, period, spread)


def lists_in(page):
    table = page.table
    return [
        table.positions[table.offsets[kmer] : table.offsets[kmer + 1]].tolist()
        for kmer in range(table.offsets.size - 1)
    ]


def bases_before(page, position, count):
    """The nearest base first; what lies before the reference are breaks."""
    codes = page.joined_reference[: page.page.begin + position][::-1][:count].tolist()
    return [*codes, *[BREAK] * (count - len(codes))]


def bases_behind(page, position, length):
    """The four bases behind a k-mer, the last one first; behind the reference are breaks."""
    begin = page.page.begin + position + length
    codes = page.joined_reference[begin : begin + 4].tolist()
    return [*codes, *[BREAK] * (4 - len(codes))][::-1]


def as_byte(bases):
    """Four bases, of which the first one counts most; breaks count as A."""
    return sum(base % 4 << 2 * place for place, base in zip((3, 2, 1, 0), bases, strict=True))


def check(codes, begin, length, step, longest, period):
    """Sort a page's lists and hold them to the definition; return how many were sorted."""
    page = page_of(codes, begin, length, step)
    before = lists_in(page)
    found = ordered(page, longest, period)
    assert found.table.ordered_bases == period
    assert found.table.longest_ascending == longest
    beside = [
        as_byte(
            bases_behind(found, position, length)
            if len(list_found) > longest
            else bases_before(found, position, 4)
        )
        for list_found in lists_in(found)
        for position in list_found
    ]
    assert found.table.bases_beside.tolist() == beside
    for ascending, list_found in zip(before, lists_in(found), strict=True):
        assert sorted(list_found) == ascending
        keys = [bases_before(found, position, period) for position in list_found]
        if len(ascending) > longest:
            assert keys == sorted(keys)
        else:
            assert list_found == ascending
    return sum(len(ascending) > longest for ascending in before)


@settings(deadline=None)
@given(
    codes=st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, BREAK]), min_size=1, max_size=150),
    length=st.integers(1, 4),
    step=st.integers(1, 3),
    longest=st.sampled_from([0, 1, 3, 10, 1000]),
    period=st.integers(1, 11),
    data=st.data(),
)
def test_lists_are_sorted_by_the_bases_before_each_position(
    codes, length, step, longest, period, data
):
    begin = data.draw(st.integers(0, len(codes)), "begin")
    check(codes, begin, length, step, longest, period)


@pytest.mark.parametrize("period", [1, 4, 5, 63, 64, 65, 100, MAX_ORDERED_BASES])
@pytest.mark.parametrize("begin", [0, 7])
def test_bases_before_the_reference_are_breaks(begin, period):
    assert check(CODES, begin, 3, 1, 20, period) == 3


def test_lists_are_not_sorted_for_a_very_long_period():
    page = page_of(CODES, 0, 3)
    assert ordered(page, 20, MAX_ORDERED_BASES + 1) is page


def test_threads_sort_the_same_lists():
    codes = np.random.default_rng(5).integers(0, 4, 30_000)
    one = ordered(page_of(codes, 11, 5), 30, 9)
    with ThreadPoolExecutor(4) as pool:
        other = ordered(page_of(codes, 11, 5), 30, 9, pool.map)
    assert np.array_equal(one.table.positions, other.table.positions)
    assert not np.array_equal(one.table.positions, page_of(codes, 11, 5).table.positions)


@pytest.mark.parametrize("damage", ["a position", "an offset"])
def test_what_is_outside_is_an_error(damage):
    page = page_of(CODES, 0, 3)
    if damage == "a position":
        page.table.positions[page.table.offsets[0b000100]] = CODES.size - 2
    else:
        page.table.offsets[0b000100 + 1] = 1 << 31
    with pytest.raises(InputError, match=r"^r\.mgi: the index is damaged: its page 2 holds"):
        ordered(page, 20, 5)


def test_sorted_lists_stay_as_they_are():
    """A system may keep what was written to the arrays of an index file, and load them again."""
    once = ordered(page_of(CODES, 0, 2), 3, 7)
    lists = lists_in(once)
    assert lists != lists_in(page_of(CODES, 0, 2))
    assert lists_in(ordered(once, 3, 7)) == lists
