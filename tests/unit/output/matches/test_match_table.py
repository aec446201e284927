"""Tables of matches hold what the columns of a search say, row by row."""

import numpy as np
from helpers.in_memory import columns_of
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import record_lookup
from mummergpu.output.matches.match_table import match_table, match_tables
from mummergpu.sequence.codes import MARGIN
from mummergpu.sequence.strand import Strand

QUERY_LENGTH = 50
RECORD_LENGTHS = [0, 30, 7, 0, 100, 5]
RECORD_STARTS = np.cumsum([0, *(length + 1 for length in RECORD_LENGTHS[:-1])], dtype=np.int64)
SIZE = int(RECORD_STARTS[-1]) + RECORD_LENGTHS[-1]


def block_of(count):
    offsets = np.arange(count + 1, dtype=np.int64) * QUERY_LENGTH
    codes = np.zeros(count * QUERY_LENGTH + 2 * MARGIN, dtype=np.uint8)
    return QueryBlock(0, codes, offsets, np.empty(0, np.uint8), np.zeros(count + 1, np.int64))


def expected_rows(strands, count):
    found = []
    for query in range(count):
        for strand in Strand:
            for start, position, length in strands.get(strand, [[]] * count)[query]:
                (candidates,) = np.nonzero(RECORD_STARTS <= position)
                record = int(candidates[-1])
                if strand is Strand.REVERSE:
                    start = QUERY_LENGTH - start - length
                in_record = position - int(RECORD_STARTS[record])
                found.append((query, record, start, in_record, length, strand is Strand.REVERSE))
    return found


def rows_of(table):
    return list(zip(*(column.tolist() for column in table), strict=True))


row = st.tuples(st.integers(0, 20), st.integers(0, SIZE - 1), st.integers(1, 30))
row_lists = st.lists(row, max_size=4)


@settings(deadline=None)
@given(st.data(), st.integers(0, 6), st.integers(1, 9))
def test_tables_of_every_size_hold_every_row(data, count, max_rows):
    searched = data.draw(st.sampled_from([(Strand.FORWARD,), (Strand.REVERSE,), tuple(Strand)]))
    strands = {
        strand: data.draw(st.lists(row_lists, min_size=count, max_size=count))
        for strand in searched
    }
    block = block_of(count)
    mems = {strand: columns_of(rows) for strand, rows in strands.items()}
    lookup = record_lookup(RECORD_STARTS, SIZE)
    tables = list(match_tables(block, mems, lookup, max_rows))
    expected = expected_rows(strands, count)
    assert [one for table in tables for one in rows_of(table)] == expected
    assert rows_of(match_table(block, mems, lookup)) == expected
    assert all(table.lengths.size <= max_rows for table in tables)
