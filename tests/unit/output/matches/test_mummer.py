"""The text of matches: against a plain formatter, and against MUMmer 3.23 itself."""

import itertools
import subprocess

import numpy as np
import pytest
from helpers.compilations import compilation_count
from helpers.in_memory import columns_of, named_queries, named_records
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.output.bytes.texts import OVERSHOOT
from mummergpu.output.matches import mummer
from mummergpu.output.matches.mummer import MummerFormatter
from mummergpu.output.options import TextStyle
from mummergpu.sequence.codes import decode
from mummergpu.sequence.strand import Strand

STYLES = [TextStyle(*flags) for flags in itertools.product([False, True], repeat=4)]


def block_of(queries):
    return named_queries((name, b"A" * length) for name, length in queries)


def formatted(formatter, block, matches):
    return b"".join(piece.tobytes() for piece in formatter.format_block(block, matches))


def expected_text(records, queries, matches, style):
    """Format the slow and plain way."""
    reference = named_records(records)
    width = max(len(name) for name, _ in records)
    text = []
    for number, (name, query_length) in enumerate(queries):
        for strand in sorted(matches):
            header = b"> " + name + (b" Reverse" if strand == Strand.REVERSE else b"")
            if style.show_query_lengths:
                header += b"  Len = %d" % query_length
            text.append(header)
            for query_start, reference_start, length in matches[strand][number]:
                record = int(np.searchsorted(reference.record_starts, reference_start, "right")) - 1
                row = b""
                if style.four_columns or len(records) > 1:
                    row = b"  " + records[record][0].ljust(width) + b"  "
                position = query_start + 1
                if style.forward_coordinates and strand == Strand.REVERSE:
                    position = query_length - query_start
                start = reference_start - int(reference.record_starts[record]) + 1
                text.append(row + b"%8d  %8d  %8d" % (start, position, length))
                if style.show_sequences:
                    codes = reference.codes[reference_start : reference_start + length]
                    text.append(decode(codes).lower())
    return b"".join(line + b"\n" for line in text)


def random_case(seed, record_count):
    random = np.random.default_rng(seed)
    records = []
    for number in range(record_count):
        length = int(random.choice([0, 1, 9, 150]))
        bases = decode(random.integers(0, 4, length).astype(np.uint8))
        records.append((b"r%d" % number if number % 5 else b"", bases))
    records.append((b"long_name_of_the_last", decode(np.arange(200, dtype=np.uint8) % 4)))
    reference = named_records(records)
    queries = [
        (b"q" * int(random.integers(0, 30)), int(random.integers(0, 300))) for _ in range(40)
    ]
    matches = {}
    for strand in Strand:
        matches[strand] = []
        for _, query_length in queries:
            rows = []
            for _ in range(int(random.integers(0, 6)) if query_length else 0):
                record = int(random.integers(0, len(records)))
                bases = int(reference.record_lengths[record])
                start = int(random.integers(0, bases)) if bases else 0
                length = min(bases - start, query_length)
                if length:
                    begin = int(random.integers(0, query_length - length + 1))
                    rows.append((begin, int(reference.record_starts[record]) + start, length))
            matches[strand].append(rows)
    return records, queries, matches


@pytest.mark.parametrize("record_count", [0, 1, 2, 300])
@pytest.mark.parametrize("style", STYLES)
def test_text_equals_that_of_a_plain_formatter(style, record_count):
    records, queries, matches = random_case(7 + record_count, record_count)
    columns = {strand: columns_of(rows) for strand, rows in matches.items()}
    formatter = MummerFormatter(named_records(records), style)
    text = formatted(formatter, block_of(queries), columns)
    assert text == expected_text(records, queries, matches, style)


@pytest.mark.parametrize("strand", list(Strand))
def test_only_strands_that_were_asked_for_have_headers(strand):
    records, queries, matches = random_case(3, 2)
    formatter = MummerFormatter(named_records(records), TextStyle())
    text = formatted(formatter, block_of(queries), {strand: columns_of(matches[strand])})
    assert text == expected_text(records, queries, {strand: matches[strand]}, TextStyle())
    assert text.count(b"> ") == len(queries)


def test_order_of_the_mapping_does_not_matter():
    records, queries, matches = random_case(4, 1)
    formatter = MummerFormatter(named_records(records), TextStyle())
    columns = {strand: columns_of(matches[strand]) for strand in reversed(Strand)}
    text = formatted(formatter, block_of(queries), columns)
    assert text == expected_text(records, queries, matches, TextStyle())


@pytest.mark.parametrize("style", [STYLES[0], STYLES[-1]])
@pytest.mark.parametrize("piece_bytes", [1, 64, 300, 5000])
def test_pieces_are_bounded_and_join_to_the_whole(style, piece_bytes):
    records, queries, matches = random_case(5, 3)
    columns = {strand: columns_of(rows) for strand, rows in matches.items()}
    formatter = MummerFormatter(named_records(records), style, piece_bytes)
    pieces = [piece.tobytes() for piece in formatter.format_block(block_of(queries), columns)]
    assert b"".join(pieces) == expected_text(records, queries, matches, style)
    # One row with its sequence, or one header, may be longer than a piece.
    assert max(map(len, pieces)) <= max(piece_bytes, 300)
    assert len(pieces) > 1


def test_block_without_queries_has_no_text():
    formatter = MummerFormatter(named_records([(b"r", b"ACGT")]), TextStyle())
    assert list(formatter.format_block(block_of([]), {Strand.FORWARD: columns_of([])})) == []


def test_query_with_an_empty_name_and_no_bases():
    style = TextStyle(show_query_lengths=True)
    formatter = MummerFormatter(named_records([(b"r", b"ACGT")]), style)
    matches = {strand: columns_of([[]]) for strand in Strand}
    text = formatted(formatter, block_of([(b"", 0)]), matches)
    assert text == b">   Len = 0\n>  Reverse  Len = 0\n"


@given(st.data())
def test_any_names_and_records(data):
    """Names of all sizes around those of the moves, records of very different sizes."""
    name = st.binary(max_size=70).map(lambda text: text.replace(b"\n", b"x"))
    size = st.one_of(st.integers(0, 3), st.sampled_from([63, 64, 65, 5000]))
    records = [
        (text, b"A" * length)
        for text, length in data.draw(st.lists(st.tuples(name, size), min_size=1, max_size=30))
    ]
    queries = [(text, 100) for text in data.draw(st.lists(name, max_size=8))]
    starts = named_records(records).record_starts
    places = [
        (record, position)
        for record, (_, bases) in enumerate(records)
        for position in {0, len(bases) // 2, len(bases) - 1}
        if 0 <= position < len(bases)
    ]
    rows = [
        [(5, int(starts[record]) + position, 1) for record, position in places] for _ in queries
    ]
    style = TextStyle(*data.draw(st.tuples(*[st.booleans()] * 4)))
    matches = dict.fromkeys(Strand, rows)
    columns = dict.fromkeys(Strand, columns_of(rows))
    formatter = MummerFormatter(named_records(records), style, data.draw(st.integers(1, 400)))
    text = formatted(formatter, block_of(queries), columns)
    assert text == expected_text(records, queries, matches, style)


@pytest.mark.parametrize("style", STYLES)
def test_nothing_is_written_behind_the_text(style, monkeypatch):
    """Wide moves stay within the array, which is full to the last byte that counts."""
    records, queries, matches = random_case(11, 3)
    formatter = MummerFormatter(named_records(records), style)
    guards = []

    def guarded(size):
        whole = np.full(size + OVERSHOOT + 64, 255, dtype=np.uint8)
        guards.append(whole[-64:])
        return whole[: size + OVERSHOOT]

    block = block_of(queries)
    columns = {strand: columns_of(rows) for strand, rows in matches.items()}
    whole = expected_text(records, queries, matches, style)
    for piece_bytes in range(200, 400):
        formatter = MummerFormatter(named_records(records), style, piece_bytes)
        monkeypatch.setattr(formatter._pool, "room_for", guarded)
        assert formatted(formatter, block, columns) == whole
    assert all((guard == 255).all() for guard in guards)


def test_pieces_that_come_back_are_used_again():
    records, queries, matches = random_case(12, 3)
    columns = {strand: columns_of(rows) for strand, rows in matches.items()}
    formatter = MummerFormatter(named_records(records), TextStyle(), 1000)
    text = b""
    places = set()
    for piece in formatter.format_block(block_of(queries), columns):
        text += piece.tobytes()
        places.add(piece.ctypes.data)
        formatter.take_back(piece)
    assert text == expected_text(records, queries, matches, TextStyle())
    assert len(text) > 3000
    assert len(places) == 1


def test_arrays_of_others_are_not_taken_back():
    formatter = MummerFormatter(named_records([(b"r", b"ACGT")]), TextStyle(), 100)
    foreign = np.zeros(50, dtype=np.uint8)
    formatter.take_back(foreign)
    formatter.take_back(foreign[:10])
    block, matches = block_of([(b"q", 1)]), {Strand.FORWARD: columns_of([[]])}
    (piece,) = formatter.format_block(block, matches)
    assert not np.shares_memory(piece, foreign)


def test_one_compilation_serves_all():
    for style in STYLES:
        for count in (0, 2):
            records, queries, matches = random_case(6, count)
            block = block_of(queries)
            for array in (block.codes, block.offsets, block.names, block.name_offsets):
                array.flags.writeable = False
            for strand in Strand:
                columns = {strand: columns_of(matches[strand])}
                text = formatted(MummerFormatter(named_records(records), style), block, columns)
                assert text.startswith(b"> ")
    assert compilation_count(mummer.fill_text) == 1


MUMMER_REFERENCES = {
    "one record": b">only one\nACGTACGTAGCTAGCTAGCTAGCTAGCTGATCGATGCATGCATCGATTTGACCATTAGACGT\n",
    "several records": (
        b">a\tdescription\nACGTACGTAGCTAGCTAGCTAGCTAGCTGATCGATGCATGCATCGATTTGACCATTAGACGT\n"
        b">\nTTGACCATTAGACGTNACGTACGTAGCTAGCTA\n"
        b">a_rather_long_name x\nGGGATCGATGCATGCATCGATTTGACCATTAGACGT\n"
    ),
}
MUMMER_QUERIES = (
    b">first read\nACGTACGTAGCTAGCTAGCTAGCTAGCTGATCGATGCATGCATCGATTTGACCATTAGACGT\n"
    b">short\nACGT\n>\nACGTCTAATGGTCAAATCGATGCATGCATCGATC\n>empty\n\n>last\nTTTGACCATTAGACG\n"
)


@pytest.mark.parametrize(
    "flags", ["", "-b", "-r", "-b -c", "-b -L", "-F", "-s -b", "-r -c -s -F -L"]
)
@pytest.mark.parametrize("kind", sorted(MUMMER_REFERENCES))
def test_bytes_are_those_of_mummer(flags, kind, tmp_path, mummer_binary):
    """MUMmer's own rows, read back and formatted anew, are the same bytes."""
    (tmp_path / "r.fa").write_bytes(MUMMER_REFERENCES[kind])
    (tmp_path / "q.fa").write_bytes(MUMMER_QUERIES)
    command = [mummer_binary, "-maxmatch", "-n", "-l", "10", *flags.split(), "r.fa", "q.fa"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout

    records = parse_fasta(MUMMER_REFERENCES[kind])
    queries = [(name, len(bases)) for name, bases in parse_fasta(MUMMER_QUERIES)]
    style = TextStyle("-c" in flags, "-F" in flags, "-L" in flags, "-s" in flags)
    strands = [Strand.REVERSE] if "-r" in flags else list(Strand)[: 2 if "-b" in flags else 1]
    matches = read_back(told, records, queries, strands, style)
    assert sum(columns.count for columns in matches.values()) > 3
    formatter = MummerFormatter(named_records(records), style)
    assert formatted(formatter, block_of(queries), matches) == told


def parse_fasta(text):
    records = []
    for record in text.split(b">")[1:]:
        header, _, bases = record.partition(b"\n")
        name = header.split(b" ")[0].split(b"\t")[0]
        records.append((name, bases.replace(b"\n", b"")))
    return records


def read_back(text, records, queries, strands, style):
    starts = {
        name: int(start)
        for (name, _), start in zip(records, named_records(records).record_starts, strict=True)
    }
    rows = {strand: [] for strand in strands}
    headers = 0
    for line in text.splitlines():
        if line.startswith(b">"):
            strand = strands[headers % len(strands)]
            rows[strand].append([])
            headers += 1
        elif line.startswith(b" "):
            *name, start, position, length = line.split()
            first = starts[name[0] if name else (records[0][0] if len(records) == 1 else b"")]
            query_start = int(position) - 1
            if style.forward_coordinates and strand == Strand.REVERSE:
                query_start = queries[len(rows[strand]) - 1][1] - int(position)
            rows[strand][-1].append((query_start, first + int(start) - 1, int(length)))
    return {strand: columns_of(of_strand) for strand, of_strand in rows.items()}


def test_what_backends_make_text_by_is_what_the_formatter_has():
    records = [(b"one", b"ACGT"), (b"", b"A"), (b"longer", b"")]
    given = MummerFormatter(
        named_records(records), TextStyle(True, False, True), piece_bytes=99
    ).row_format()
    assert given is not None
    assert given.record_starts.tolist() == [0, 5, 7]
    assert given.record_names.tobytes() == b"onelonger"
    assert given.record_name_offsets.tolist() == [0, 3, 3, 9]
    # Two blanks before the longest name, and two after it.
    assert given.head_bytes == 2 + 6 + 2
    assert given.forward_coordinates and given.show_query_lengths
    assert given.piece_bytes == 99


@pytest.mark.parametrize(("four", "bytes_before"), [(False, 0), (True, 4)])
def test_a_name_of_no_bytes_has_blanks_around_it(four, bytes_before):
    style = TextStyle(four_columns=four)
    given = MummerFormatter(named_records([(b"", b"ACGT")]), style).row_format()
    assert given is not None and given.head_bytes == bytes_before


def test_sequences_are_the_formatters_work():
    style = TextStyle(show_sequences=True)
    assert MummerFormatter(named_records([(b"r", b"ACGT")]), style).row_format() is None


def test_pieces_for_backends_are_used_again():
    formatter = MummerFormatter(named_records([(b"r", b"ACGT")]), TextStyle(), piece_bytes=100)
    given = formatter.row_format()
    assert given is not None
    pieces = [given.new_piece(100), given.new_piece(7)]
    assert [piece.size for piece in pieces] == [100, 7]
    places = {piece.ctypes.data for piece in pieces}
    for piece in pieces:
        formatter.take_back(piece)
    del pieces, piece
    assert {given.new_piece(size).ctypes.data for size in (50, 1)} <= places
