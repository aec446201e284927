"""FASTA and FASTQ, cut into pieces of every size; their faults; letters that are no bases."""

import gzip
import os
import random
import re
from itertools import chain, product
from pathlib import Path

import numpy as np
import pytest
from helpers.loops import each
from helpers.naive import fold, pairs_of
from helpers.parsed_text import reader_of
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.records import byte_runs, comments, parser_state
from mummergpu.input.records.record_arrays import (
    CHUNK_SIZE,
    NO_SPANS,
    UNLIMITED,
    UNLIMITED_BLOCK,
    Limits,
    RecordOptions,
    Spans,
)
from mummergpu.input.records.record_reader import line_of_record, printable
from mummergpu.input.records.tags import dropped_tags
from mummergpu.input.reference import read_reference
from mummergpu.runtime.jit import jit
from mummergpu.sequence.codes import BREAK, CODE_OF_BYTE, LETTER_CODE_OF_BYTE, MARGIN, decode

CHUNK_SIZES = (2, 3, 4, 5, 7, 8, 16, 31, 32, 33, CHUNK_SIZE)


def parse(text, is_fastq, chunk_size=CHUNK_SIZE, limits=UNLIMITED_BLOCK, any_letters=False):
    """Return the records of each block."""
    reader = reader_of(text, is_fastq, RecordOptions(limits, chunk_size, any_letters))
    blocks = []
    while (block := reader.next_block()) is not None:
        blocks.append(pairs_of([block]))
    assert reader.next_block() is None
    return blocks


@jit
def run_ends(text, codes, names, qualities):
    return (
        byte_runs.encode_letters(text, 0, codes, 0)[0],
        byte_runs.copy_name(text, 0, names, 0),
        byte_runs.skip_quality(text, 0),
        byte_runs.copy_quality(text, 0, qualities, 0),
        byte_runs.skip_text(text, 0),
    )


def ends_of_runs(text):
    padded = np.frombuffer(text + b"\n" * (byte_runs.STEP + 1), dtype=np.uint8).copy()
    codes, names, qualities = (np.empty_like(padded) for _ in range(3))
    ends = run_ends(padded, codes, names, qualities)
    assert bytes(np.frombuffer(b"ACGTN", np.uint8)[codes[: ends[0]]]) == fold(text[: ends[0]])
    assert names[: ends[1]].tobytes() == text[: ends[1]]
    assert (qualities[: ends[3]] + 33).tobytes() == text[: ends[3]]
    return ends


@each("byte", range(256))
def test_every_byte_ends_the_runs_that_it_should(byte):
    letter = chr(byte).isascii() and chr(byte).isalpha()
    ends_run = (not letter, byte <= 32, *[not 33 <= byte <= 126] * 2, byte < 32)
    for before in (0, 1, 31, 32, 40):
        text = b"A" * before + bytes([byte]) + b"CGT"
        assert ends_of_runs(text) == tuple(before if ends else len(text) for ends in ends_run)


FASTA = {
    b">a\nACGT\n": [(b"a", b"ACGT")],
    b">a\nACGT": [(b"a", b"ACGT")],
    b">a\r\nAC\r\nGT\r\n": [(b"a", b"ACGT")],
    b">a\r\nAC\r\nGT\r": [(b"a", b"ACGT")],
    b"\n\r\n \t\n>a b c\nAC\n\n\nGT\n\n": [(b"a", b"ACGT")],
    b">a\tb\n>b\x0bc\n>c\x0cd\n": [(b"a", b""), (b"b", b""), (b"c", b"")],
    b"> a\nA\n>\nC\n>": [(b"", b"A"), (b"", b"C"), (b"", b"")],
    b">a\n>a\nA": [(b"a", b""), (b"a", b"A")],
    b">a\nacgtnNuURYKMSWBDHVx\n": [(b"a", b"ACGTNNTTNNNNNNNNNNN")],
    b">a\n A C\tG\x0bT\x0cA \nC": [(b"a", b"ACGTAC")],
    b">a\nA*-.C\n": [(b"a", b"ANNNC")],
    b">a>b @c\nA": [(b"a>b", b"A")],
    b">\xc3\xa4\x01\x7f\x80 \xff\nA": [(b"\xc3\xa4\x01\x7f\x80", b"A")],
    b">" + b"n" * 5000 + b" " + b"d" * 5000 + b"\n" + b"ACGT" * 999 + b"\n>b": [
        (b"n" * 5000, b"ACGT" * 999),
        (b"b", b""),
    ],
}
FASTQ = {
    # What follows '+' is of no account: fastq-dump and fastp write other names there.
    b"@a:UMI x\nACGT\n+a x\nIIII\n@b\nA\n+b length=1\nI\n": [(b"a:UMI", b"ACGT"), (b"b", b"A")],
    b"@a\nAC\n+b\n+I\n@c\nA\n+@d\r\n@\n": [(b"a", b"AC"), (b"c", b"A")],
    b"@a\nACGT\n+\nIIII\n": [(b"a", b"ACGT")],
    b"@a\nACGT\n+\nIIII": [(b"a", b"ACGT")],
    b"@a\r\nACGT\r\n+\r\nIIII\r\n": [(b"a", b"ACGT")],
    b"@a\r\nACGT\r\n+\r\nIIII\r": [(b"a", b"ACGT")],
    b"\n\n@a b\nAC\n+a\nII\n\n\r\n@b\nG\n+b c\n!\n\n": [(b"a", b"AC"), (b"b", b"G")],
    b"@a\nAC\nGT\n+\nII\nII\n@b\nA\n+\n~": [(b"a", b"ACGT"), (b"b", b"A")],
    b"@a\nAC\nG\n+\n@\n+\n@\n@b\nA\n+\n@\n": [(b"a", b"ACG"), (b"b", b"A")],
    b"@a\nACG\n+\n@+>\n@b\nAC\n+\n++\n": [(b"a", b"ACG"), (b"b", b"AC")],
    b"@a\n\n+\n\n@b\n+\n@c\n\n+c\n": [(b"a", b""), (b"b", b""), (b"c", b"")],
    b"@a\n\n+\n\n@b\nA\n+\nI": [(b"a", b""), (b"b", b"A")],
    b"@a\n+": [(b"a", b"")],
    b"@ a\nA\n+\nI\n@\nC\n+ a\nI": [(b"", b"A"), (b"", b"C")],
    b"@a\nacgtnU*-.\n+\nIIIIIIIII": [(b"a", b"ACGTNTNNN")],
    b"@" + b"n" * 4000 + b"\n" + b"A" * 3000 + b"\n+\n" + b"I" * 3000: [(b"n" * 4000, b"A" * 3000)],
}


@each("chunk_size", CHUNK_SIZES)
@pytest.mark.parametrize("text", [*FASTA, *FASTQ], ids=lambda text: repr(text[:30]))
def test_text_is_read_whatever_its_pieces(text, chunk_size):
    is_fastq = text in FASTQ
    expected = FASTQ[text] if is_fastq else FASTA[text]
    assert parse(text, is_fastq, chunk_size) == [expected]


SHORT = "quality has 3 characters, sequence has 4"
MIXED = "a record begins with '>', not with '@' (FASTA and FASTQ mixed?)"
FAULTS = [
    # FASTA
    (b">a\nAC1", 2, "'1' is not a sequence character", "a"),
    (b">a\nAC\nAC>b\nA", 3, "'>' is not a sequence character", "a"),
    (b">a\nAC@b\nA", 2, "'@' is not a sequence character", "a"),
    (b">a\nA\n+\nI", 3, "'+' is not a sequence character", "a"),
    (b">a\nAC\0", 2, "byte 0x00 is not a sequence character", "a"),
    (b">a\n\xc3\xa4", 2, "byte 0xC3 is not a sequence character", "a"),
    (b">a\nA\x7f", 2, "byte 0x7F is not a sequence character", "a"),
    (b">a b\n\n>b c\rACGT\r>c\r", 3, "carriage return without line feed (old Mac text?)", "b"),
    (b">a\nAC\rGT\r", 2, "carriage return without line feed (old Mac text?)", "a"),
    (b">a\nAC\r\r\nGT", 2, "carriage return without line feed (old Mac text?)", "a"),
    (b">a\nAC\n@b\nAC\n+\nII", 3, "a line of bases begins with '@' (FASTA and FASTQ mixed?)", None),
    (b"\n\nx\n>a", 3, "text before the first line with '>'", None),
    # FASTQ
    (b"@a\nACGT\n+\nIII\n@b c\nACGT\n+\nIIII\n", 4, SHORT, "a"),
    (b"@a\nACGT\n+\nIII\n@b\nACGT\n+\nIIII\n", 4, SHORT, "a"),
    (b"@a\nACGT\n+\nIIIII\n", 4, "quality has 5 characters, sequence has 4", "a"),
    (b"@a\nAC\nGT\n+\nII\nIII\n", 6, "quality has 5 characters, sequence has 4", "a"),
    (b"@a\nACGT\n+\nIII", 4, SHORT, "a"),
    (b"@a\nACGT\n+\nII\nI\n", 5, SHORT, "a"),
    # The first line of quality with '@' is suspected, of this record, unless it begins its quality.
    (b"@a\nACGTACGT\n+\nIII\n@II\n@bc\n", 4, "quality has 3 characters, sequence has 8", "a"),
    (b"@a\nACGT\n+\nII\n@I\n@b\nAC\n+\nIII\n", 9, "quality has 3 characters, sequence has 2", "b"),
    (b"@a\nACGT\n+\n@IIII\n", 4, "quality has 5 characters, sequence has 4", "a"),
    (b"@a\nACGT\n+\n\n@b\nA\n+\nI\n", 4, "quality has 0 characters, sequence has 4", "a"),
    (b"@a\nACGT\n+\nII\n\nII\n", 5, "quality has 2 characters, sequence has 4", "a"),
    (b"@a\nACGT\n+\n", 3, "the file ends inside this record", "a"),
    (b"@a\nACGT\n+", 3, "the file ends inside this record", "a"),
    (b"@a\nACGT\n", 2, "the file ends inside this record", "a"),
    (b"@a\nAC", 2, "the file ends inside this record", "a"),
    (b"@a\n", 1, "the file ends inside this record", "a"),
    (b"@a", 1, "the file ends inside this record", "a"),
    (b"@a\nA\n+\nI\n@", 5, "the file ends inside this record", ""),
    (b"@a\nA C\n+\nI I\n", 2, "a blank is not a sequence character", "a"),
    (b"@a\nA\tC\n+\nIII\n", 2, "a tab is not a sequence character", "a"),
    (b"@a\n@b\nA\n+\nI\n", 2, "'@' is not a sequence character", "a"),
    (b"@a\n>b\nA\n", 2, "'>' is not a sequence character", "a"),
    (b"@a\nACGT\n+\nII\x7fI", 4, "byte 0x7F is not a quality character", "a"),
    (b"@a\nACGT\n+\nII\xe4I", 4, "byte 0xE4 is not a quality character", "a"),
    (b"@a\nACGT\n+\nI II\n", 4, "a blank is not a quality character", "a"),
    (b"@a\nACGT\n+\nI\tII\n", 4, "a tab is not a quality character", "a"),
    (b"@a\nAC\n\nGT\n+\nIIII\n", 3, "blank line inside a record", "a"),
    (b"@a\n\nAC\n+\nII\n", 3, "blank line inside a record", "a"),
    (b"@a\rAC\r+\rII\r", 1, "carriage return without line feed (old Mac text?)", "a"),
    (b"@a\nAC\r+\rII\r", 2, "carriage return without line feed (old Mac text?)", "a"),
    (b"@a\nAC\n+\rII\r", 3, "carriage return without line feed (old Mac text?)", "a"),
    (b"@a\nAC\n+\nII\r@b", 4, "carriage return without line feed (old Mac text?)", "a"),
    (b"@a\nA\n+\nI\n>b\nA\n", 5, MIXED, None),
    (b"@a\nA\n+\nI\nI\n", 5, "a record begins with 'I', not with '@'", None),
    (b"@a\n\n+\nI\n", 4, "a record begins with 'I', not with '@'", None),
    (b"@a\nA\n+\nI\n \n", 5, "a record begins with a blank, not with '@'", None),
]  # fmt: skip


@each("chunk_size", CHUNK_SIZES)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: repr(fault[0]))
def test_faults_are_placed(fault, chunk_size):
    text, line, message, record = fault
    with pytest.raises(InputError) as caught:
        parse(text, text.lstrip().startswith(b"@"), chunk_size)
    error = caught.value
    assert (error.line, error.message, error.record) == (line, message, record)
    assert error.path == "reads"


@each("chunk_size", CHUNK_SIZES)
@pytest.mark.parametrize("good", [0, 1, 200])
def test_faults_are_found_behind_good_records(good, chunk_size):
    text = b"@r/1 x\nACGTACGT\n+\nIIIIIIII\n" * good + b"@bad\nACGT\n+\nIII\n"
    with pytest.raises(InputError) as caught:
        parse(text, True, chunk_size, Limits(100, 100, 1000))
    assert (caught.value.line, caught.value.record) == (4 * good + 4, "bad")


@each("chunk_size", CHUNK_SIZES)
@pytest.mark.parametrize("is_fastq", [False, True])
def test_blocks_end_at_the_record_that_reaches_a_limit(is_fastq, chunk_size):
    lengths = [3, 2, 0, 5, 9, 0, 0, 0, 1]
    records = [(b"r%d" % i, b"ACGTACGTA"[:length]) for i, length in enumerate(lengths)]
    text = written(records, is_fastq)

    def sizes(limits):
        blocks = parse(text, is_fastq, chunk_size, limits)
        assert list(chain.from_iterable(blocks)) == records
        return [len(block) for block in blocks]

    assert sizes(UNLIMITED_BLOCK) == [9]
    assert sizes(Limits(1, UNLIMITED, UNLIMITED)) == [1, 1, 2, 1, 4]
    assert sizes(Limits(5, UNLIMITED, UNLIMITED)) == [2, 2, 1, 4]
    assert sizes(Limits(UNLIMITED, 4, UNLIMITED)) == [4, 4, 1]
    assert sizes(Limits(UNLIMITED, UNLIMITED, 5)) == [3, 3, 3]
    assert sizes(Limits(20, 1, 1)) == [1] * 9


def test_blocks_own_their_arrays():
    records = [(b"r%d" % i, b"ACGT" * i) for i in range(50)]
    reader = reader_of(written(records, True), True, RecordOptions(Limits(20, 20, 100), 16))
    blocks = []
    while (block := reader.next_block()) is not None:
        blocks.append(block)
    assert pairs_of(blocks) == records and not np.shares_memory(blocks[0].codes, blocks[1].codes)
    assert blocks[0].tags is NO_SPANS
    assert all(array.flags.c_contiguous for block in blocks for array in block[:6])
    types = [array.dtype for array in blocks[0][:6]]
    assert types == [np.uint8, np.int64, np.uint8, np.int64, np.uint8, np.uint16]
    for block in blocks:
        padded = block.padded_codes
        assert (padded[:MARGIN] == BREAK).all() and (padded[-MARGIN:] == BREAK).all()
        assert np.shares_memory(padded[MARGIN:-MARGIN], block.codes) or block.codes.size == 0


def test_a_gap_lies_between_records():
    reader = reader_of(
        b">a\nAC\n>b\n>c\nG\n", False, RecordOptions(UNLIMITED_BLOCK, 3, has_gaps=True)
    )
    block = reader.next_block()
    assert block is not None and block.codes.tolist() == [0, 1, 4, 4, 2]
    assert block.offsets.tolist() == [0, 3, 4, 6]


NAME = st.binary(max_size=40).filter(lambda name: not set(name) & set(b"\n\r"))
SEQUENCE = st.text("ACGTacgtNnRYU*-.", max_size=80).map(str.encode)


@st.composite
def rendered(draw):
    """Draw records, and a text that holds them, in any style."""
    is_fastq = draw(st.booleans())
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    parts = []
    pairs = []
    for _ in range(draw(st.integers(1, 6))):
        header, sequence = draw(NAME), draw(SEQUENCE)
        name = re.split(rb"[ \t\v\f]", header)[0]
        pairs.append((name, fold(sequence)))
        blank_lines = end * draw(st.integers(0, 2))
        parts += [blank_lines, b"@" if is_fastq else b">", header, end]
        parts += wrap(sequence, draw(st.integers(1, 90)), end)
        if is_fastq:
            size = len(sequence)
            numbers = draw(st.lists(st.integers(33, 126), min_size=size, max_size=size))
            plus = draw(st.sampled_from([b"", name, header]))
            parts += [b"+", plus, end, *wrap(bytes(numbers), draw(st.integers(1, 90)), end)]
    text = b"".join(parts)
    return text.removesuffix(end) if draw(st.booleans()) else text, is_fastq, pairs


def wrap(text, width, end=b""):
    return [text[i : i + width] + end for i in range(0, len(text), width)]


def written(records, is_fastq, width=60):
    """Return the text of records, in lines of `width` letters."""
    parts = []
    for name, bases in records:
        lines = wrap(bases, width)
        quality = [b"I" * len(line) for line in lines]
        parts += [b"@" + name, *lines, b"+", *quality] if is_fastq else [b">" + name, *lines]
    return b"\n".join([*parts, b""])


@settings(max_examples=300)
@given(rendered(), st.integers(2, 100), st.integers(1, 200), st.integers(1, 5))
def test_records_come_back_from_any_style(drawn, chunk_size, bases, records):
    text, is_fastq, pairs = drawn
    blocks = parse(text, is_fastq, chunk_size, Limits(bases, records, 50))
    assert list(chain.from_iterable(blocks)) == pairs


def test_names_are_made_printable():
    assert printable(b"read/1") == "read/1" and printable(b"a\x1b[31m\xff") == "a?[31m\ufffd"
    assert printable(b"n" * 100) == "n" * 80 + "..."


def test_state_has_room_for_all_that_is_in_it():
    """Each index of a state, from `MODE` on, is given away once."""
    source = Path(parser_state.__file__).read_text()
    block = source[source.index("MODE: Final") : source.index("STATE_SIZE: Final")]
    fields = re.findall(r"^([A-Z_]+): Final", block, re.MULTILINE)
    numbers = [getattr(parser_state, field) for field in fields]
    assert sorted(numbers) == list(range(parser_state.STATE_SIZE))


NUMBERED_FASTA = b"\n>a\nAC\n\nGT\n>b\n>c\nA"
NUMBERED_FASTQ = b"@a\nAC\nGT\n+a\n@@\n@@\n\n@b\n\n+\n\n@c\nA\n+\n@"


@each("text, lines", [(NUMBERED_FASTA, [2, 6, 7, None]), (NUMBERED_FASTQ, [1, 8, 12, None])])
def test_lines(text, lines, tmp_path):
    path = tmp_path / "file"
    for content in (text, gzip.compress(text)):
        path.write_bytes(content)
        assert [line_of_record(str(path), number) for number in range(4)] == lines


def test_no_lines(tmp_path):
    (tmp_path / "a.sam").write_text("@HD\tVN:1.6\nr\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI\n")
    os.mkfifo(tmp_path / "pipe")
    for path in ("-", tmp_path / "missing", tmp_path / "a.sam", tmp_path / "pipe"):
        assert line_of_record(str(path), 0) is None


PROTEIN = b"MKVLAAGIVGLCAKAYPEFQRTWHSDNMKVLAAGIVGLCAKAYLLPEFQ"
ACIDS = b"ACDEFGHIKLMNPQRSTVWY"
IUPAC = b"ACGTURYSWKMBDHVNX"
LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def records_of(text, chunk_size=CHUNK_SIZE, limits=UNLIMITED_BLOCK, any_letters=False):
    return [*chain(*parse(text, text.startswith(b"@"), chunk_size, limits, any_letters))]


def fault_of(text, chunk_size=CHUNK_SIZE, limits=UNLIMITED_BLOCK):
    with pytest.raises(InputError) as caught:
        records_of(text, chunk_size, limits)
    assert "neither bases nor IUPAC codes" in caught.value.message
    assert "--any-letters" in caught.value.message
    return caught.value


@jit
def encoded(text, codes, keeps_letters):
    return byte_runs.encode_letters(text, 0, codes, 0, keeps_letters)


def test_every_letter_is_encoded_and_counted_wherever_it_stands():
    generator = random.Random(1)
    for _ in range(2000):
        length = generator.randrange(100)
        pool = generator.choice([LETTERS + LETTERS.lower(), IUPAC, b"ACGT", b"EFX", ACIDS])
        run = bytes(generator.choices(pool, k=length))
        behind = bytes(generator.choices(b"\n*-. 1@[`{", k=1)) + b"EFILPQ" * 16
        text = np.frombuffer(run + behind, dtype=np.uint8).copy()
        codes = np.full(text.size, 99, dtype=np.uint8)
        table = generator.choice([CODE_OF_BYTE, LETTER_CODE_OF_BYTE])
        end, foreign = encoded(text, codes, table is LETTER_CODE_OF_BYTE)
        assert end == length and codes[:length].tobytes() == table[text[:length]].tobytes()
        assert foreign == sum(letter not in IUPAC for letter in run.upper())


@pytest.mark.parametrize("is_fastq", [False, True])
def test_protein_is_told_by_file_record_and_line(is_fastq):
    """Wherever the text is cut into pieces and blocks, and however many records come before."""
    good = (b"good", b"ACGTNRYK" * 5)
    for before, after in ((0, 0), (0, 2), (3, 0), (40, 40)):
        records = [*[good] * before, (b"bad", PROTEIN), *[good] * after]
        text = written(records, is_fastq, width=30)
        foreign = sum(letter not in IUPAC for letter in PROTEIN)
        for chunk_size in CHUNK_SIZES:
            for limits in (UNLIMITED_BLOCK, Limits(1, 1, 1), Limits(100, 100, 100)):
                error = fault_of(text, chunk_size, limits)
                assert (error.path, error.record) == ("reads", "bad")
                assert error.line == before * (6 if is_fastq else 3) + 2
                assert error.message.startswith(f"{foreign} of {len(PROTEIN)} letters are")
        assert records_of(text, any_letters=True) == [
            (name, fold(bases)) for name, bases in records
        ]


def test_line_is_that_of_the_first_foreign_letter():
    assert fault_of(b">a\nACGT\n\nMKVA\r\nACE\nEFIL\n").line == 5


@pytest.mark.parametrize("is_fastq", [False, True])
def test_the_border_lies_at_a_tenth_of_the_letters(is_fastq):
    """Gap symbols are no letters, and every record counts for itself."""
    sizes = (0, 1, 9, 10, 11, 20, 100, 1000)
    for length, gaps in product(sizes, (b"", b"-*." * 50)):
        for foreign in range(0, min(length, 12) + 1):
            bases = b"E" * foreign + b"n" * (length - foreign) + gaps
            text = written([(b"ok", b"ACGT" * 99), (b"x", bases)], is_fastq)
            if 10 * foreign <= length:
                expected = (b"x", b"N" * len(bases))
                assert records_of(text)[1] == expected
                assert records_of(text + text, 13, Limits(1, 1, 1))[3] == expected
            else:
                assert fault_of(text).record == "x"
                assert fault_of(text + text, 13, Limits(1, 1, 1)).record == "x"
    for bases in (IUPAC, IUPAC.lower(), b"RYSWKMBDHV" * 9):
        assert records_of(written([(b"a", bases)], is_fastq)) == [(b"a", fold(bases))]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_files_of_queries_and_references_follow_the_same_rule(tmp_path, pack):
    path = tmp_path / "protein.fa"
    path.write_bytes(pack(written([(b"dna", b"ACGT" * 20), (b"p", PROTEIN)], False)))
    expected = [(b"dna", b"ACGT" * 20), (b"p", fold(PROTEIN))]
    with pytest.raises(InputError, match=r"protein.fa:5: .*\(record 'p'\)$"):
        read_reference(str(path))
    with pytest.raises(InputError, match=r"protein.fa:5: .*\(record 'p'\)$"):
        list(query_reader([str(path)], 1000))
    reference = read_reference(str(path), any_letters=True)
    assert decode(reference.codes) == b"N".join(bases for _, bases in expected)
    with query_reader([str(path)], 1000, rules=QueryRules(any_letters=True)) as reader:
        assert pairs_of(reader) == expected


def test_numbers_without_digits_are_not_noted_beyond_the_room():
    text = np.frombuffer(bytearray(b"r\tXB:B:f" + 60 * b","), dtype=np.uint8)
    lines = Spans(text, np.array([0, text.size], dtype=np.int64))
    names = Spans(np.empty_like(text), np.zeros(2, dtype=np.int64))
    tags = Spans(np.empty(4 * text.size + 8, dtype=np.uint8), np.zeros(2, dtype=np.int64))
    room = np.full((2 * text.size, 3), -7)
    spans = room[: text.size // 2 + 1]
    floats = comments._Floats(spans, np.zeros(1, dtype=np.int64))
    assert comments._split_lines(lines, dropped_tags(False), names, tags, floats) == 0
    assert (room[spans.shape[0] :] == -7).all()
