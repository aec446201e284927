"""nucmer's .delta: against a plain formatter, in pieces of every size."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from helpers.compilations import compilation_count
from helpers.match_cases import MatchCase, match_cases, text_of
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.output.bytes.text_arrays import PIECE_BYTES
from mummergpu.output.bytes.text_stores import OVERSHOOT
from mummergpu.output.matches import delta
from mummergpu.output.matches.delta import DeltaFormat
from mummergpu.sequence.codes import Strand


def plain_delta(case: MatchCase) -> bytes:
    """The file of a case, the slow way."""
    lines = [b"r.fa q.fa", b"NUCMER"]
    order = [name for name, _ in case.records]
    for _, group in groupby(case.matches(), lambda one: one.query):
        # Python keeps the order of the matches of a record.
        by_record = sorted(group, key=lambda one: order.index(one.record_name))
        for record, matches in groupby(by_record, lambda one: one.record_name):
            found = list(matches)
            lengths = found[0].record_length, found[0].query_length
            lines.append(b">%b %b %d %d" % (record, found[0].query_name, *lengths))
            for one in found:
                bases = [one.query_start + 1, one.query_end]
                if one.is_reverse:
                    bases.reverse()
                lines.append(b"%d %d %d %d 0 0 0" % (one.start + 1, one.end, *bases))
                lines.append(b"0")
    return b"".join(line + b"\n" for line in lines)


def delta_of(case: MatchCase, piece_bytes: int = PIECE_BYTES) -> DeltaFormat:
    return DeltaFormat(case.reference, ["q.fa"], piece_bytes)


@settings(deadline=None)
@given(match_cases(), st.one_of(st.integers(1, 500), st.just(PIECE_BYTES)))
def test_lines_equal_those_of_a_plain_formatter(case: MatchCase, piece_bytes: int) -> None:
    assert text_of(delta_of(case, piece_bytes), case) == plain_delta(case)


def many_rows(record_count: int, row_count: int) -> MatchCase:
    random = np.random.default_rng(row_count)
    records = [(b"r%d" % number, b"ACGT") for number in range(record_count)]
    queries = [(b"a", b"ACGT"), (b"b", b"ACGT"), (b"c", b"ACGT")]

    def rows(count: int) -> list[tuple[int, tuple[int, int, int]]]:
        return [(int(random.integers(0, record_count)), (at % 3, 1, 1)) for at in range(count)]

    counts = [[row_count, 0, row_count // 2], [row_count // 3, row_count, 0]]
    strands = {strand: [rows(count) for count in counts[strand]] for strand in Strand}
    return MatchCase(records, queries, strands)


@pytest.mark.parametrize("record_count", [1, 2, 300, 70_000])
@pytest.mark.parametrize("row_count", [20, 32, 33, 1000])
def test_many_rows_of_a_query_are_grouped_by_record(record_count: int, row_count: int) -> None:
    case = many_rows(record_count, row_count)
    found = plain_delta(case) if record_count < 1000 else None
    text = text_of(delta_of(case, 3000), case)
    if found is not None:
        assert text == found
    headers = [line for line in text.splitlines() if line.startswith(b">")]
    assert len(headers) == len(set(headers))
    assert text.count(b" 0 0 0\n0\n") == sum(1 for _ in case.matches())


def test_nothing_is_written_behind_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    case = many_rows(5, 40)
    guards = []

    def guarded(size: int) -> np.ndarray:
        whole = np.full(size + OVERSHOOT + 64, 255, dtype=np.uint8)
        guards.append(whole[-64:])
        return whole[: size + OVERSHOOT]

    for piece_bytes in range(200, 500, 7):
        made = delta_of(case, piece_bytes)
        monkeypatch.setattr(made._pool, "room_for", guarded)
        assert text_of(made, case) == plain_delta(case)
    assert guards and all((guard == 255).all() for guard in guards)


def test_what_the_format_cannot_hold_is_refused() -> None:
    case = MatchCase([(b"r", b"ACGT")], [(b"", b"ACGT")], {Strand.FORWARD: [[(0, (0, 0, 4))]]})
    with pytest.raises(InputError, match=r"b\.fa: a \.delta is of one file of queries"):
        DeltaFormat(case.reference, ["a.fa", "b.fa"])
    with pytest.raises(InputError, match=r"a b\.fa: a \.delta cannot name a file with a blank"):
        DeltaFormat(case.reference, ["a b.fa"])
    with pytest.raises(InputError, match=r"q\.fa: a \.delta needs names, and a query has none"):
        text_of(delta_of(case), case)
    nameless = MatchCase([(b"r", b"A"), (b"", b"A")], [])
    with pytest.raises(InputError, match=r"r\.fa: .* needs names, and record 2 has none"):
        delta_of(nameless)


def test_queries_without_names_that_match_nothing_are_left_out() -> None:
    case = MatchCase([(b"r", b"ACGT")], [(b"", b"ACGT")], {Strand.FORWARD: [[]]})
    assert text_of(delta_of(case), case) == b"r.fa q.fa\nNUCMER\n"


def test_one_compilation_serves_all() -> None:
    for case in (many_rows(1, 5), many_rows(4, 5)):
        block = case.block
        for array in (block.offsets, block.names, block.name_offsets):
            array.flags.writeable = False
        for strand in Strand:
            list(delta_of(case).format_block(block, {strand: case.columns[strand]}))
    assert compilation_count(delta.write_delta) == 1
