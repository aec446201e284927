"""Blocks of queries as one block."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from mummergpu.input.blocks.memory import block_in_memory
from mummergpu.input.blocks.queries import QueryBlock, join_query_blocks
from mummergpu.sequence.codes import BREAK, MARGIN

QUERIES = [("one", "ACGT"), ("", "N"), ("two", ""), ("three", "GGATTACA"), ("four", "T")]


def made(queries: list[tuple[str, str]] = QUERIES) -> QueryBlock:
    block = block_in_memory(queries)
    assert block is not None
    return block


@pytest.mark.parametrize("ends", [(2,), (0, 1), (1, 1, 3, 5), (1, 2, 3, 4)])
def test_parts_become_the_whole(ends: tuple[int, ...]) -> None:
    whole = made()
    parts = [whole.part(first, end) for first, end in pairwise([0, *ends, 5])]
    joined = join_query_blocks(parts)
    for name in ("codes", "offsets", "names", "name_offsets"):
        found, expected = getattr(joined, name), getattr(whole, name)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected), name
    assert (joined.query_count, joined.base_count) == (5, 14)


def test_margins_are_those_of_a_block() -> None:
    joined = join_query_blocks([made(), made()])
    assert joined.query_count == 10 and joined.padded_codes.size == joined.base_count + 2 * MARGIN
    assert (joined.padded_codes[:MARGIN] == BREAK).all()
    assert (joined.padded_codes[-MARGIN:] == BREAK).all()


def test_a_single_block_stays_as_it_is() -> None:
    block = made()
    assert join_query_blocks([block]) is block
