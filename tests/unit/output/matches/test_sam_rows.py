"""Rows of SAM: every match once, the longest as the primary one, and no more than asked for."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from helpers.match_cases import MatchCase, match_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.input.reference import record_lookup
from mummergpu.output.matches.sam_rows import alignment_tables
from mummergpu.sequence.codes import Strand


def plain_rows(case: MatchCase, most_hits: int | None) -> list[tuple[Any, ...]]:
    """The rows of a case, the slow way: those of each query sorted by length."""
    names = [name for name, _ in case.records]
    found = {query: list(group) for query, group in groupby(case.matches(), lambda one: one.query)}
    rows: list[tuple[Any, ...]] = []
    for query in range(len(case.queries)):
        matches = found.get(query, [])
        if not matches:
            rows.append((query, -1, -1, 0, 0, 4, 0, 0))
        by_length = sorted(range(len(matches)), key=lambda place: -matches[place].length)
        kept = sorted(by_length[:most_hits])
        for number, place in enumerate(kept, 1):
            one = matches[place]
            flag = 16 * one.is_reverse + 256 * (place != by_length[0])
            clip = one.query_length - one.query_end if one.is_reverse else one.query_start
            record = names.index(one.record_name)
            rows.append((query, record, one.start, clip, one.length, flag, len(matches), number))
    return rows


def rows_of(case: MatchCase, most_hits: int | None, most_rows: int) -> list[tuple[Any, ...]]:
    reference = case.reference
    lookup = record_lookup(reference.record_starts, reference.codes.size)
    rows: list[tuple[Any, ...]] = []
    for table in alignment_tables(case.block, case.columns, lookup, most_hits, most_rows):
        assert 0 < table.row_count <= most_rows
        columns = (
            *(table.queries, table.records, table.positions, table.clips),
            *(table.lengths, table.flags, table.hit_counts, table.hit_numbers),
        )
        rows.extend(zip(*(column.tolist() for column in columns), strict=True))
    return rows


@settings(deadline=None)
@given(match_cases(), st.sampled_from([None, 1, 2, 3, 7]), st.integers(1, 9))
def test_tables_of_every_size_hold_the_rows(
    case: MatchCase, most_hits: int | None, most_rows: int
) -> None:
    assert rows_of(case, most_hits, most_rows) == plain_rows(case, most_hits)


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(1, 40))
def test_the_longest_are_kept(lengths: list[int], most_hits: int) -> None:
    rows = [(0, (length, 0, length)) for length in lengths]
    middle = len(rows) // 3
    strands = {Strand.FORWARD: [rows[:middle]], Strand.REVERSE: [rows[middle:]]}
    case = MatchCase([(b"r", b"A" * 9)], [(b"q", b"A" * 18)], strands)
    for most_rows in (1, 5, 100):
        assert rows_of(case, most_hits, most_rows) == plain_rows(case, most_hits)


@pytest.mark.parametrize("strand", list(Strand))
def test_a_table_that_is_just_full_is_no_endless_loop(strand: Strand) -> None:
    case = MatchCase([(b"r", b"ACGT")], [(b"q", b"ACGT")], {strand: [[(0, (0, 0, 4))]]})
    assert rows_of(case, None, 1) == plain_rows(case, None)


def test_a_block_without_queries_has_no_table() -> None:
    case = MatchCase([(b"r", b"ACGT")], [], {Strand.FORWARD: []})
    assert rows_of(case, None, 5) == []
