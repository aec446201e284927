import numpy as np
import pytest
from helpers.in_memory import block_of

from mummergpu.matching.long_queries import cut_queries, has_long_query

PIECE_BASES = 4
LONG_QUERY = 8
PART_BASES = 9


def test_pieces_own_every_start_once_and_see_what_they_need():
    block = block_of(["ACGTACGTAC", "", "GGT", "TTTTACGT"])
    pieces = cut_queries(block.offsets, 3, PIECE_BASES)
    assert pieces.queries.tolist() == [0, 0, 0, 1, 2, 3, 3]
    assert pieces.begins.tolist() == [0, 4, 8, 10, 10, 13, 17]
    assert pieces.ends.tolist() == [4, 8, 10, 10, 13, 17, 21]
    assert pieces.text_begins.tolist() == [0, 3, 7, 10, 10, 13, 16]
    assert pieces.text_ends.tolist() == [7, 10, 10, 10, 13, 20, 21]


def test_parts_hold_all_pieces_in_order():
    block = block_of(["ACGTACGTACCA", "GGT", "TTTTACGT"])
    pieces = cut_queries(block.offsets, 3, PIECE_BASES)
    parts = list(pieces.parts(PART_BASES))
    assert len(parts) > 2
    assert np.concatenate([part.begins for part in parts]).tolist() == pieces.begins.tolist()
    texts = [part.as_block(block.codes) for part in parts]
    for part, text in zip(parts, texts, strict=True):
        for piece in range(part.queries.size):
            seen = text.codes[text.offsets[piece] : text.offsets[piece + 1]]
            true = block.codes[part.text_begins[piece] : part.text_ends[piece]]
            assert seen.tolist() == true.tolist()


@pytest.mark.parametrize(
    ("queries", "expected"),
    [
        (["ACGTACGT"], False),
        (["ACGTACGTA"], True),
        (["ACGT", "ACGT", "ACGT"], False),
        (["", "ACGTACGTACGT"], True),
        ([], False),
    ],
)
def test_only_blocks_with_a_long_query_are_cut(queries, expected):
    assert has_long_query(block_of(queries), LONG_QUERY) is expected
