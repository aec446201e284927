"""Matches as lines: each format against a plain formatter, in pieces of every size."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from helpers.compilations import compilation_count
from helpers.in_memory import columns_of
from helpers.match_cases import MatchCase, joined, match_cases, text_of, words
from helpers.match_records import far_reference, match_sam
from helpers.text_cases import AWKWARD_NUMBERS, TextCase, named_block, named_reference
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.input.reference import record_lookup
from mummergpu.output.bytes.texts import OVERSHOOT, PIECE_BYTES
from mummergpu.output.matches import match_rows, mummer
from mummergpu.output.matches.lines import BED, COLUMNS, PAF, TSV, LineFormat, write_lines
from mummergpu.output.matches.match_rows import PIECE_ROWS
from mummergpu.output.matches.match_table import match_table, match_tables
from mummergpu.output.matches.mummer import MummerFormatter
from mummergpu.output.options import SamOptions, TextStyle, read_group_of
from mummergpu.output.records import sam
from mummergpu.output.records.header import AlignmentHead, sam_header
from mummergpu.output.records.sam import PART_BASES
from mummergpu.sequence.codes import decode, encode
from mummergpu.sequence.strand import Strand

GROUP = read_group_of(r"@RG\tID:a group\tSM:sample")
COMPLEMENTS = bytes.maketrans(b"ACGTN", b"TGCAN")
STYLES = [TextStyle(*flags) for flags in product([False, True], repeat=4)]


def place_of(one):
    """What PAF and TSV begin with."""
    return (
        *(one.query_name, one.query_length, one.query_start, one.query_end, one.strand),
        *(one.record_name, one.record_length, one.start, one.end),
    )


def plain_paf(case):
    return joined(
        (*place_of(one), one.length, one.length, 255, b"cg:Z:%d=" % one.length)
        for one in case.matches()
    )


def plain_bed(case):
    return joined(
        (
            *(one.record_name, one.start, one.end),
            *(one.query_name or b".", min(one.length, 1000), one.strand),
        )
        for one in case.matches()
    )


def plain_tsv(case):
    head = [name.encode() for name in COLUMNS]
    return joined([head, *((*place_of(one), one.length) for one in case.matches())])


def plain_mummer(case, style):
    width = max(len(name) for name, _ in case.records)
    matches, text = list(case.matches()), []
    for query, (name, bases) in enumerate(case.queries):
        for strand in sorted(case.rows):
            is_reverse = strand is Strand.REVERSE
            header = b"> " + name + b" Reverse" * is_reverse
            text.append(header + b"  Len = %d" % len(bases) * style.show_query_lengths)
            for one in matches:
                if (one.query, one.is_reverse) != (query, is_reverse):
                    continue
                row = b""
                if style.four_columns or len(case.records) > 1:
                    row = b"  " + one.record_name.ljust(width) + b"  "
                place = one.query_start + 1
                if is_reverse:
                    # The last base on the forward strand is the first one on the other.
                    forward = style.forward_coordinates
                    place = one.query_end if forward else len(bases) - one.query_end + 1
                text.append(row + b"%8d  %8d  %8d" % (one.start + 1, place, one.length))
                if style.show_sequences:
                    record = dict(case.records)[one.record_name]
                    text.append(decode(encode(record))[one.start : one.end].lower())
    return b"".join(line + b"\n" for line in text)


def letters_of(bases, is_reverse):
    """The letters of a query on a strand: A, C, G, T and N."""
    letters = decode(encode(bases))
    return letters[::-1].translate(COMPLEMENTS) if is_reverse else letters


def plain_sam(case, options):
    group = [] if options.read_group is None else [b"RG:Z:" + options.read_group.name.encode()]
    lines = []
    for query, (name, bases) in enumerate(case.queries):
        matches = [one for one in case.matches() if one.query == query]
        name = name or b"*"
        if not matches:
            letters = letters_of(bases, False) or b"*"
            lines.append([name, 4, b"*", 0, 0, b"*", b"*", 0, 0, letters, b"*", *group])
        # Python sorts equal lengths in their order.
        best = sorted(matches, key=lambda one: -one.length)
        kept = best[: options.max_hits]
        for number, one in enumerate([one for one in matches if any(one is two for two in kept)]):
            is_primary = one is best[0]
            has_bases = is_primary or options.secondary_bases
            clips = [one.query_start, one.query_length - one.query_end]
            if one.is_reverse:
                clips.reverse()
            before, behind = (b"%dS" % clip if clip else b"" for clip in clips)
            lines.append(
                [
                    *(name, 16 * one.is_reverse + 256 * (not is_primary)),
                    *(one.record_name, one.start + 1, 255),
                    *(before + b"%d=" % one.length + behind, b"*", 0, 0),
                    *(letters_of(bases, one.is_reverse) if has_bases else b"*", b"*"),
                    *(b"NM:i:0", b"AS:i:%d" % one.length, b"NH:i:%d" % len(matches)),
                    *(b"HI:i:%d" % (number + 1), *group),
                ]
            )
    head = AlignmentHead(options.read_group, "mummergpu r q")
    return sam_header(case.reference, head).text + joined(lines)


def sam_of(options):
    return (
        partial(match_sam, options=options, command="mummergpu r q"),
        partial(plain_sam, options=options),
    )


def mummer_of(style):
    return partial(MummerFormatter, style=style), partial(plain_mummer, style=style)


LINES = [
    (partial(LineFormat, PAF), plain_paf),
    (partial(LineFormat, BED), plain_bed),
    (partial(LineFormat, TSV), plain_tsv),
]
LINE_NAMES = ["paf", "bed", "tsv"]
STYLE_NAMES = ["".join(str(int(flag)) for flag in flags) for flags in product([0, 1], repeat=4)]
lines = pytest.mark.parametrize(("make", "plain"), LINES, ids=LINE_NAMES)
formats = pytest.mark.parametrize(
    ("make", "plain"),
    [*LINES, sam_of(SamOptions(GROUP)), *map(mummer_of, STYLES)],
    ids=[*LINE_NAMES, "sam", *STYLE_NAMES],
)

# A name is a piece of a line, so it may have any bytes but white space.
ANY_NAME = words(bytes(byte for byte in range(256) if not bytes([byte]).isspace()), 0, 70)
PIECES = st.one_of(st.integers(1, 500), st.just(PIECE_BYTES))


@lines
@given(data=st.data())
def test_lines_equal_those_of_a_plain_formatter(make, plain, data):
    names = ANY_NAME if plain is not plain_bed else ANY_NAME.filter(len)
    case = data.draw(match_cases(ANY_NAME, names))
    assert text_of(make(case.reference, piece_bytes=data.draw(PIECES)), case) == plain(case)


@given(match_cases(ANY_NAME, ANY_NAME), st.sampled_from(STYLES), PIECES)
def test_text_of_mummer_equals_that_of_a_plain_formatter(case, style, piece_bytes):
    make, plain = mummer_of(style)
    assert text_of(make(case.reference, piece_bytes=piece_bytes), case) == plain(case)


OPTIONS = st.builds(
    SamOptions, st.sampled_from([None, GROUP]), st.sampled_from([None, 1, 2, 5]), st.booleans()
)


@given(
    *(match_cases(), OPTIONS, PIECES),
    st.one_of(st.integers(1, 9), st.just(PIECE_ROWS)),
    st.booleans(),
)
def test_sam_equals_that_of_a_plain_formatter(case, options, piece_bytes, piece_rows, nameless):
    if nameless:
        case = MatchCase(case.records, [(b"", bases) for _, bases in case.queries], case.rows)
    make, plain = sam_of(options)
    made = make(case.reference, piece_bytes=piece_bytes, piece_rows=piece_rows)
    assert text_of(made, case) == plain(case)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(1, 40))
def test_the_longest_are_kept(lengths, max_hits):
    rows = [(0, (length, 0, length)) for length in lengths]
    middle = len(rows) // 3
    strands = {Strand.FORWARD: [rows[:middle]], Strand.REVERSE: [rows[middle:]]}
    case = MatchCase([(b"r", b"A" * 9)], [(b"q", b"A" * 18)], strands)
    make, plain = sam_of(SamOptions(max_hits=max_hits))
    for piece_bytes, piece_rows in ((1, 1), (300, 7), (PIECE_BYTES, PIECE_ROWS)):
        made = make(case.reference, piece_bytes=piece_bytes, piece_rows=piece_rows)
        assert text_of(made, case) == plain(case)


@given(match_cases(), st.integers(1, 9))
def test_tables_of_every_size_hold_every_row(case, max_rows):
    names = [name for name, _ in case.records]
    expected = []
    for one in case.matches():
        places = names.index(one.record_name), one.query_start, one.start
        expected.append((one.query, *places, one.length, one.is_reverse))
    lookup = record_lookup(case.reference.record_starts, case.reference.codes.size)
    tables = list(match_tables(case.block, case.columns, lookup, max_rows))
    assert [row for table in tables for row in rows_of(table)] == expected
    assert rows_of(match_table(case.block, case.columns, lookup)) == expected
    assert all(table.lengths.size <= max_rows for table in tables)


def rows_of(table):
    return list(zip(*(column.tolist() for column in table), strict=True))


def many_rows(query_count=20, row_count=10, record_count=7):
    """Some rows for each query, in several records, on both strands."""
    random = np.random.default_rng(query_count + row_count + record_count)
    sizes = [*random.choice([0, 1, 200, 5000], record_count - 1).tolist(), 250]
    records = [(b"r%d" % number, (b"ACGTA" * 1000)[:size]) for number, size in enumerate(sizes)]
    long = [number for number, size in enumerate(sizes) if size >= 200]
    queries = [(b"query%d" % number, b"A" * 90) for number in range(query_count)]

    def rows():
        for place in range(int(random.poisson(row_count))):
            record, starts = int(random.choice(long)), random.integers(0, [50, 150]).tolist()
            yield record, (*starts, 1 + place % 40)

    found = {strand: [list(rows()) for _ in queries] for strand in Strand}
    return MatchCase(records, queries, found)


@formats
@pytest.mark.parametrize("record_count", [1, 7, 300])
def test_pieces_are_bounded(make, plain, record_count):
    case = many_rows(30, record_count=record_count)
    expected = plain(case)
    for piece_bytes in (1, 150, 1000):
        made = make(case.reference, piece_bytes=piece_bytes)
        pieces = [bytes(piece) for piece in made.format_block(case.block, case.columns)]
        assert made.head() + b"".join(pieces) == expected
        # A piece has room for the longest line that there can be.
        assert len(pieces) > 10 and max(map(len, pieces)) <= max(piece_bytes, 400)


@formats
def test_pieces_that_come_back_are_used_again(make, plain):
    case = many_rows(30, 5)
    made = make(case.reference, piece_bytes=2000)
    places = set()
    text = made.head()
    for piece in made.format_block(case.block, case.columns):
        text += bytes(piece)
        places.add(piece.ctypes.data)
        made.take_back(piece)
    assert text == plain(case)
    assert len(places) == 1


def test_arrays_of_others_are_not_taken_back():
    case = MatchCase([(b"r", b"ACGT")], [(b"q", b"A")], {Strand.FORWARD: [[]]})
    made = MummerFormatter(case.reference, TextStyle(), 100)
    foreign = np.zeros(50, dtype=np.uint8)
    made.take_back(foreign)
    made.take_back(foreign[:10])
    (piece,) = made.format_block(case.block, case.columns)
    assert not np.shares_memory(piece, foreign)


def check_guards(make, case, expected, sizes, monkeypatch):
    """Wide moves stay within the array, which is full to the last byte that counts."""
    guards = []

    def guarded(size):
        whole = np.full(size + OVERSHOOT + 64, 255, dtype=np.uint8)
        guards.append(whole[-64:])
        return whole[: size + OVERSHOOT]

    for piece_bytes in sizes:
        made = make(case.reference, piece_bytes=piece_bytes)
        monkeypatch.setattr(made._pool, "room_for", guarded)
        assert text_of(made, case) == expected
    assert guards and all((guard == 255).all() for guard in guards)


@formats
def test_nothing_is_written_behind_the_text(make, plain, monkeypatch):
    case = many_rows(5, 4)
    check_guards(make, case, plain(case), range(200, 400, 3), monkeypatch)


def long_query(length):
    random = np.random.default_rng(length)
    bases = decode(random.integers(0, 5, length).astype(np.uint8))
    rows = [(0, (3, 0, 5)), (0, (4, 1, 7))]
    strands = {Strand.FORWARD: [[], rows[:1], []], Strand.REVERSE: [[], rows, []]}
    return MatchCase([(b"r", b"ACGTACGTA")], [(b"a", bases), (b"b", bases), (b"", b"")], strands)


def test_nothing_is_written_behind_a_part_of_a_query(monkeypatch):
    case, (make, plain) = long_query(11_000), sam_of(SamOptions())
    check_guards(make, case, plain(case), range(9000, 10_200, 17), monkeypatch)


@pytest.mark.parametrize("length", [11, PART_BASES - 1, PART_BASES, PART_BASES + 1, 50_003])
def test_the_bases_of_a_query_may_lie_in_many_pieces(length):
    case, (make, plain) = long_query(length), sam_of(SamOptions())
    for piece_bytes in (1, 10_000, 10_033, 20_000):
        made = make(case.reference, piece_bytes=piece_bytes)
        pieces = [bytes(piece) for piece in made.format_block(case.block, case.columns)]
        assert made.head() + b"".join(pieces) == plain(case)
        assert max(map(len, pieces)) <= max(piece_bytes, 2 * PART_BASES + 1000)


@lines
@pytest.mark.parametrize("strand", list(Strand))
def test_numbers_around_every_power_of_ten(make, plain, strand):
    """A reference and a query of more bases than there are, of which nothing is read."""
    largest = 2 * AWKWARD_NUMBERS[-1]
    rows = [(one, other, 9) for one in AWKWARD_NUMBERS for other in AWKWARD_NUMBERS[::5]]
    rows += [(other, one, one) for one in AWKWARD_NUMBERS for other in AWKWARD_NUMBERS[::5]]
    reference, block = named_reference([b"r"], [largest]), named_block([b"q"], [largest])
    pieces = make(reference).format_block(block, {strand: columns_of([rows])})
    text = b"".join(bytes(piece) for piece in pieces)
    found = [line.split(b"\t") for line in text.splitlines()]
    for fields, (query_start, start, length) in zip(found, rows, strict=True):
        if strand is Strand.REVERSE:
            query_start = largest - query_start - length
        place = [query_start, query_start + length, start, start + length, length]
        if plain is plain_bed:
            assert list(map(int, fields[1:3])) == place[2:4]
            assert int(fields[4]) == min(length, 1000)
        else:
            assert [int(fields[at]) for at in (2, 3, 7, 8, 9)] == place
            assert fields[1] == fields[6] == b"%d" % largest


def mummer_numbers(numbers, names):
    """Rows of any 1-based reference position, query position and length, in the last record."""
    largest = max(max(row) for row in numbers)
    reference = named_reference(names, [1] * (len(names) - 1) + [2 * largest])
    first = int(reference.record_starts[-1])
    rows = [(query - 1, first + start - 1, length) for start, query, length in numbers]
    block = named_block([b"q"], [2 * largest])
    case = TextCase("numbers", reference, block, {Strand.FORWARD: columns_of([rows])})
    return case.text(TextStyle())


@pytest.mark.parametrize("column", range(3))
def test_numbers_of_mummer_around_every_power_of_ten(column):
    others = (1, 99_999_999, 100_000_000)
    numbers = [[other, 7, 20] for _ in AWKWARD_NUMBERS for other in others]
    for row, number in zip(numbers, np.repeat(AWKWARD_NUMBERS, 3).tolist(), strict=True):
        row[column] = number
    for names, name in (
        ([b"r"], b""),
        ([b"a_name_of_more_than_16_bytes", b"last"], b"  last" + b" " * 24 + b"  "),
    ):
        expected = b"".join(name + b"%8d  %8d  %8d\n" % tuple(row) for row in numbers)
        assert mummer_numbers(numbers, names) == b"> q\n" + expected


def test_every_group_of_four_digits_in_every_place():
    numbers = [(n, n * 10_000, 99_999_999 - n) for n in range(1, 10_000)]
    expected = b"".join(b"%8d  %8d  %8d\n" % row for row in numbers)
    assert mummer_numbers(numbers, [b"r"]) == b"> q\n" + expected


def test_long_clips_and_positions_of_sam():
    """Numbers beyond the table of small ones, and of more than eight digits."""
    rows = [(0, (999, 998, 1)), (0, (1000, 999, 1000)), (0, (2999, 4000, 1000))]
    queries, records = [(b"q", b"A" * 4000)], [(b"r", b"A" * 5000)]
    case = MatchCase(records, queries, {Strand.FORWARD: [rows]})
    make, plain = sam_of(SamOptions())
    assert text_of(make(case.reference), case) == plain(case)
    longest = (1 << 31) - 1
    columns = case.columns
    columns[Strand.FORWARD].reference_starts[:] = [99_999_998, 99_999_999, longest - 1000]
    made = make(far_reference(longest))
    text = b"".join(bytes(piece) for piece in made.format_block(case.block, columns))
    positions = [int(line.split(b"\t")[3]) for line in text.splitlines()]
    assert positions == [99_999_999, 100_000_000, longest - 999]


def test_a_long_line_has_a_piece_of_its_own():
    rows = {Strand.FORWARD: [[(0, (0, 0, 4))] * 3]}
    case = MatchCase([(b"r" * 9000, b"ACGT")], [(b"q" * 7000, b"ACGT")], rows)
    assert text_of(LineFormat(PAF, case.reference, 100), case) == plain_paf(case)


def test_records_need_names_for_bed():
    case = MatchCase([(b"a", b"ACGT"), (b"", b"ACGT")], [])
    with pytest.raises(InputError, match="BED needs names, and record 2 has none"):
        LineFormat(BED, case.reference)


@formats
def test_a_block_without_matches(make, plain):
    for queries in ([], [(b"q", b"ACGT")] * 3):
        case = MatchCase([(b"r", b"ACGT")], queries, {Strand.FORWARD: [[] for _ in queries]})
        assert text_of(make(case.reference), case) == plain(case)


def test_sequences_are_the_formatters_work():
    """A device has no letters of the reference."""
    reference = named_reference([b"r"], [9])
    assert MummerFormatter(reference, TextStyle(show_sequences=True)).row_format() is None


def test_one_compilation_serves_all():
    of_sam = sam_of(SamOptions()), sam_of(SamOptions(GROUP, 1))
    for make, _ in (*LINES, *of_sam, *map(mummer_of, STYLES)):
        for case in (many_rows(3, 2, 1), many_rows(3, 2), long_query(50)):
            block = case.block
            for array in (block.padded_codes, block.offsets, block.names, block.name_offsets):
                array.flags.writeable = False
            for strand in Strand:
                columns = {strand: case.columns[strand]}
                assert list(make(case.reference).format_block(block, columns))
    functions = write_lines, match_rows.fill_match_rows, sam.write_sam_matches, mummer.fill_text
    assert [compilation_count(function) for function in functions] == [1] * 4
