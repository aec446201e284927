"""PAF, BED and TSV: against plain formatters, in pieces of every size, with any names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from helpers.compilations import compilation_count
from helpers.in_memory import columns_of
from helpers.match_cases import MatchCase, joined, match_cases, text_of, words
from helpers.text_cases import named_block, named_reference
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.output.bytes.texts import OVERSHOOT, PIECE_BYTES
from mummergpu.output.matches.lines import BED, COLUMNS, PAF, TSV, LineFormat, write_lines
from mummergpu.sequence.strand import Strand

Maker = Callable[..., LineFormat]


def plain_paf(case):
    return joined(
        (
            *(one.query_name, one.query_length, one.query_start, one.query_end, one.strand),
            *(one.record_name, one.record_length, one.start, one.end),
            *(one.length, one.length, 255, b"cg:Z:%d=" % one.length),
        )
        for one in case.matches()
    )


def plain_bed(case):
    return joined(
        (
            *(one.record_name, one.start, one.end, one.query_name or b"."),
            *(min(one.length, 1000), one.strand),
        )
        for one in case.matches()
    )


def plain_tsv(case):
    head = [name.encode() for name in COLUMNS]
    lines = [
        (
            *(one.query_name, one.query_length, one.query_start, one.query_end, one.strand),
            *(one.record_name, one.record_length, one.start, one.end, one.length),
        )
        for one in case.matches()
    ]
    return joined([head, *lines])


FORMATS: list[tuple[Maker, Callable[[MatchCase], bytes]]] = [
    (partial(LineFormat, PAF), plain_paf),
    (partial(LineFormat, BED), plain_bed),
    (partial(LineFormat, TSV), plain_tsv),
]
formats = pytest.mark.parametrize(("make", "plain"), FORMATS, ids=["paf", "bed", "tsv"])

# A name is a piece of a line, so it may have any bytes but white space.
ANY_NAME = words(bytes(byte for byte in range(256) if not bytes([byte]).isspace()), 0, 70)
PIECES = st.one_of(st.integers(1, 400), st.just(PIECE_BYTES))


@formats
@settings(deadline=None)
@given(data=st.data())
def test_lines_equal_those_of_a_plain_formatter(make, plain, data):
    names = ANY_NAME if plain is not plain_bed else ANY_NAME.filter(len)
    case = data.draw(match_cases(ANY_NAME, names))
    assert text_of(make(case.reference, data.draw(PIECES)), case) == plain(case)


def many_rows(query_count, row_count):
    """Some rows for each query, in several records, on both strands."""
    random = np.random.default_rng(query_count + row_count)
    records = [(b"r%d" % number, b"ACGT" * 50) for number in range(7)]
    queries = [(b"query%d" % number, b"A" * 90) for number in range(query_count)]

    def rows():
        return [
            (
                int(random.integers(0, 7)),
                (int(random.integers(0, 50)), int(random.integers(0, 150)), 1 + place % 40),
            )
            for place in range(int(random.poisson(row_count)))
        ]

    return MatchCase(records, queries, {strand: [rows() for _ in queries] for strand in Strand})


@formats
@pytest.mark.parametrize("piece_bytes", [1, 150, 1000])
def test_pieces_are_bounded(make, plain, piece_bytes):
    case = many_rows(20, 10)
    made = make(case.reference, piece_bytes)
    pieces = [bytes(piece) for piece in made.format_block(case.block, case.columns)]
    assert made.head() + b"".join(pieces) == plain(case)
    # A piece has room for the longest line that there can be.
    assert len(pieces) > 10 and max(map(len, pieces)) <= max(piece_bytes, 250)


@formats
def test_nothing_is_written_behind_the_text(make, plain, monkeypatch):
    """Wide moves stay within the array."""
    case = many_rows(5, 4)
    guards = []

    def guarded(size):
        whole = np.full(size + OVERSHOOT + 64, 255, dtype=np.uint8)
        guards.append(whole[-64:])
        return whole[: size + OVERSHOOT]

    for piece_bytes in range(200, 400, 3):
        made = make(case.reference, piece_bytes)
        monkeypatch.setattr(made._pool, "room_for", guarded)
        assert text_of(made, case) == plain(case)
    assert guards and all((guard == 255).all() for guard in guards)


@formats
def test_pieces_that_come_back_are_used_again(make, plain):
    case = many_rows(30, 5)
    made = make(case.reference, 2000)
    places = set()
    text = made.head()
    for piece in made.format_block(case.block, case.columns):
        text += bytes(piece)
        places.add(piece.ctypes.data)
        made.take_back(piece)
    assert text == plain(case)
    assert len(places) == 1


AWKWARD_NUMBERS = sorted(
    {1, 2, 999, 1000, 1001, 123_456_789_012, 1 << 31, (1 << 31) - 1, 1 << 32, (1 << 32) + 1}
    | {10**exponent + more for exponent in range(1, 14) for more in (-1, 0, 1)}
)


@formats
@pytest.mark.parametrize("strand", list(Strand))
def test_numbers_around_every_power_of_ten(make, plain, strand):
    """A reference and a query of more bases than there are, of which nothing is read."""
    largest = 2 * AWKWARD_NUMBERS[-1]
    rows = [(one, other, 9) for one in AWKWARD_NUMBERS for other in AWKWARD_NUMBERS[::5]]
    rows += [(other, one, one) for one in AWKWARD_NUMBERS for other in AWKWARD_NUMBERS[::5]]
    reference, block = named_reference([b"r"], [largest]), named_block([b"q"], [largest])
    made = make(reference)
    text = b"".join(
        bytes(piece) for piece in made.format_block(block, {strand: columns_of([rows])})
    )
    found = [line.split(b"\t") for line in text.splitlines()]
    for fields, (query_start, start, length) in zip(found, rows, strict=True):
        if strand is Strand.REVERSE:
            query_start = largest - query_start - length
        place = [query_start, query_start + length, start, start + length, length]
        if plain is plain_bed:
            assert list(map(int, fields[1:3])) == place[2:4]
            assert int(fields[4]) == min(length, 1000)
        else:
            numbers = [fields[at] for at in (2, 3, 7, 8, 9)]
            assert list(map(int, numbers)) == place
            assert fields[1] == fields[6] == b"%d" % largest


def test_a_long_line_has_a_piece_of_its_own():
    rows = {Strand.FORWARD: [[(0, (0, 0, 4))] * 3]}
    case = MatchCase([(b"r" * 9000, b"ACGT")], [(b"q" * 7000, b"ACGT")], rows)
    made = LineFormat(PAF, case.reference, 100)
    assert text_of(made, case) == plain_paf(case)


def test_records_need_names_for_bed():
    case = MatchCase([(b"a", b"ACGT"), (b"", b"ACGT")], [])
    with pytest.raises(InputError, match="BED needs names, and record 2 has none"):
        LineFormat(BED, case.reference)


@formats
def test_a_block_without_matches_has_no_line(make, plain):
    for queries in ([], [(b"q", b"ACGT")] * 3):
        case = MatchCase([(b"r", b"ACGT")], queries, {Strand.FORWARD: [[] for _ in queries]})
        made = make(case.reference)
        assert text_of(made, case) == made.head() == plain(case)


def test_one_compilation_serves_all():
    for make, _ in FORMATS:
        case = many_rows(3, 2)
        block = case.block
        for array in (block.padded_codes, block.offsets, block.names, block.name_offsets):
            array.flags.writeable = False
        for strand in Strand:
            columns = {strand: case.columns[strand]}
            assert list(make(case.reference).format_block(block, columns))
    assert compilation_count(write_lines) == 1
