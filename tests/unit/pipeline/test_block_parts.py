"""Blocks are cut by the number of matches that their queries are expected to have."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.interface import WorkSizes
from mummergpu.pipeline.block_search_loop import LEAST_SHARE, SAFETY, SAFETY_OF_SMALL, BlockParts
from mummergpu.sequence.codes import MARGIN

SIZES = WorkSizes(10_000, 10, 10, 10, 1000, 100)


def block_of(lengths):
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    codes = np.arange(offsets[-1] + 2 * MARGIN, dtype=np.int64).astype(np.uint8)
    names = np.frombuffer(b"n" * len(lengths), dtype=np.uint8)
    return QueryBlock(3, codes, offsets, names, np.arange(len(lengths) + 1, dtype=np.int64))


@given(st.lists(st.integers(0, 300), min_size=1, max_size=40), st.lists(st.integers(0, 99)))
def test_parts_are_the_block(lengths, densities):
    block, parts = block_of(lengths), BlockParts(SIZES)
    found = []
    rest = iter(densities)
    for part in parts.parts(block):
        found.append(part)
        if (rows := next(rest, None)) is not None:
            parts.add(part.base_count, rows * part.base_count // 30)
    assert all(part.query_count > 0 and part.index == 3 for part in found)
    assert [n for part in found for n in np.diff(part.offsets).tolist()] == lengths
    assert np.concatenate([part.codes for part in found]).tolist() == block.codes.tolist()


def test_the_first_part_is_small_and_the_others_as_large_as_matches_allow():
    block, parts = block_of([10] * 200), BlockParts(SIZES)
    sizes = []
    for part in parts.parts(block):
        sizes.append(part.base_count)
        parts.add(part.base_count, part.base_count)
    assert sizes[0] == SIZES.first_batch_bases
    assert set(sizes[1:-1]) == {int(SIZES.max_rows / SAFETY) // 10 * 10}


def test_no_matches_cut_nothing_and_many_cut_to_small_parts():
    parts = BlockParts(SIZES)
    parts.add(100, 0)
    assert parts.max_bases() >= 100_000
    # Some matches a base leave what fits, with less to spare, and very many no less than a small
    # part of the first.
    parts.add(100, 800)
    assert parts.max_bases() == int(SIZES.max_rows / SAFETY_OF_SMALL / 8) < SIZES.first_batch_bases
    parts.add(100, 10**9)
    assert parts.max_bases() == max(1, SIZES.first_batch_bases // LEAST_SHARE)


def test_many_matches_are_forgotten_after_a_while():
    parts = BlockParts(SIZES)
    parts.add(100, 10_000)
    dense = parts.max_bases()
    for _ in range(40):
        parts.add(100, 1)
    assert parts.max_bases() > 10 * dense
