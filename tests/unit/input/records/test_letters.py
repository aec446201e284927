"""Letters that are not those of DNA: RNA is read as DNA, protein is refused."""

import gzip
import random
from itertools import chain

import numpy as np
import pytest
from helpers.naive import fold, pairs_of
from helpers.parsed_text import reader_of

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.records import byte_runs
from mummergpu.input.records.record_arrays import CHUNK_SIZE, UNLIMITED_BLOCK, Limits, RecordOptions
from mummergpu.input.reference import read_reference
from mummergpu.runtime.jit import jit
from mummergpu.sequence.codes import CODE_OF_BYTE, LETTER_CODE_OF_BYTE, decode

PROTEIN = b"MKVLAAGIVGLCAKAYPEFQRTWHSDNMKVLAAGIVGLCAKAYLLPEFQ"
ACIDS = b"ACDEFGHIKLMNPQRSTVWY"
IUPAC = b"ACGTURYSWKMBDHVN"
LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
CHUNK_SIZES = (2, 3, 7, 31, 32, 33, 64, CHUNK_SIZE)


def parse(text, chunk_size=CHUNK_SIZE, limits=UNLIMITED_BLOCK, any_letters=False):
    options = RecordOptions(limits, chunk_size, any_letters)
    reader = reader_of(text, text.startswith(b"@"), options)
    blocks = []
    while (block := reader.next_block()) is not None:
        blocks.append(pairs_of([block]))
    return list(chain.from_iterable(blocks))


def fault_of(text, chunk_size=CHUNK_SIZE, limits=UNLIMITED_BLOCK):
    with pytest.raises(InputError) as caught:
        parse(text, chunk_size, limits)
    assert "neither bases nor IUPAC codes" in caught.value.message
    assert "--any-letters" in caught.value.message
    return caught.value


def written(records, is_fastq, width=60):
    """Return the text of records, in lines of `width` letters."""
    parts = []
    for name, bases in records:
        lines = [bases[i : i + width] for i in range(0, len(bases), width)]
        if is_fastq:
            quality = [b"I" * len(line) for line in lines]
            parts += [b"@" + name, *lines, b"+", *quality]
        else:
            parts += [b">" + name, *lines]
    return b"\n".join([*parts, b""])


@jit
def encoded(text, codes, keeps_letters):  # type: ignore[no-untyped-def]
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
        assert end == length
        assert codes[:length].tobytes() == table[text[:length]].tobytes()
        assert foreign == sum(letter not in IUPAC for letter in run.upper())


def test_rna_is_read_as_dna(tmp_path):
    dna = b"ACGTTGCATTTT" * 20
    for is_fastq in (False, True):
        for turn in (bytes.upper, bytes.lower):
            rna = turn(dna).replace(turn(b"T"), turn(b"U"))
            assert parse(written([(b"a", rna)], is_fastq)) == [(b"a", dna)]
    path = tmp_path / "rna.fa"
    path.write_bytes(written([(b"a", dna.replace(b"T", b"u"))], False))
    assert decode(read_reference(str(path)).codes) == dna


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
        assert parse(text, any_letters=True) == [(name, fold(bases)) for name, bases in records]


def test_line_is_that_of_the_first_foreign_letter():
    error = fault_of(b">a\nACGT\n\nMKVA\r\nACE\nEFIL\n")
    assert error.line == 5


@pytest.mark.parametrize("is_fastq", [False, True])
def test_the_border_lies_at_a_tenth_of_the_letters(is_fastq):
    """Gap symbols are no letters, and every record counts for itself."""
    for length in (1, 9, 10, 11, 20, 100, 1000):
        for foreign in range(0, min(length, 12) + 1):
            for gaps in (b"", b"-*." * 50):
                bases = b"E" * foreign + b"n" * (length - foreign) + gaps
                text = written([(b"ok", b"ACGT" * 99), (b"x", bases)], is_fastq)
                if 10 * foreign <= length:
                    assert parse(text)[1] == (b"x", b"N" * len(bases))
                    assert parse(text + text, 13, Limits(1, 1, 1))[3] == (b"x", b"N" * len(bases))
                else:
                    assert fault_of(text).record == "x"
                    assert fault_of(text + text, 13, Limits(1, 1, 1)).record == "x"


def test_iupac_and_gaps_alone_are_no_protein():
    for bases in (IUPAC, IUPAC.lower(), b"RYSWKMBDHV" * 9, b"N" * 999, b"-" * 99, b"*.-", b""):
        for is_fastq in (False, True):
            assert parse(written([(b"a", bases)], is_fastq)) == [(b"a", fold(bases))]


def test_random_protein_never_passes():
    generator = random.Random(2)
    for _ in range(200):
        protein = bytes(generator.choices(ACIDS, k=generator.randrange(100, 500)))
        fault_of(written([(b"p", protein)], False))


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
