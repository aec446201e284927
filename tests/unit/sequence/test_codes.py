"""Codes of bases, their letters, reverse complements."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.oracle import normalised

from mummergpu.input.records.byte_runs import STEP, encoder_of, foreign_counter_of
from mummergpu.runtime.jit import jit
from mummergpu.sequence.codes import (
    BREAK,
    CODE_OF_BYTE,
    LETTERS,
    MARGIN,
    NO_LETTERS,
    NUCLEOTIDES,
    Alphabet,
    decode,
    encode,
    flatten,
    padded_reverse_complements,
    reverse_complement_each,
    with_margins,
)


def test_bases_have_numbers_in_both_cases_and_all_else_is_a_break():
    known = dict(zip(b"ACGTUacgtu", [0, 1, 2, 3, 3] * 2, strict=True))
    every = bytes(range(256))
    assert encode(every).tolist() == [known.get(byte, BREAK) for byte in every]
    assert CODE_OF_BYTE.shape == (256,) and CODE_OF_BYTE.dtype == np.uint8
    for text in (b"ACGTNacgtnRYKM-*uU ", b""):
        assert decode(encode(text)).decode() == normalised(text.decode())


def test_letters_that_are_kept_have_codes_of_their_own():
    letters = b"ACGTRYSWKMBDHVN"
    for text in (letters, letters.lower()):
        codes = encode(text, keeps_letters=True)
        assert bytes(LETTERS[code] for code in codes) == letters
        assert np.minimum(codes, BREAK).tolist() == encode(text).tolist()


def test_kept_letters_are_complemented_in_sequences_of_any_length():
    letters, complements = b"ACGTRYSWKMBDHVN", b"TGCAYRSWMKVHDBN"
    for length in range(100):
        text = (letters * 7)[:length]
        turned = reverse_complement_each(encode(text, keeps_letters=True), np.array([0, length]))
        expected = text.translate(bytes.maketrans(letters, complements))[::-1]
        assert bytes(LETTERS[code] for code in turned) == expected


def test_flattened_codes_are_breaks_and_tell_what_they_were():
    text = b"ACNR" + b"A" * 300_000 + b"Y" + b"N" * 300_000 + b"W"
    codes = encode(text, keeps_letters=True)
    letters = flatten(codes)
    assert codes.tobytes() == encode(text).tobytes()
    assert letters.positions.tolist() == [3, 300_004, 600_005]
    assert [LETTERS[code] for code in letters.codes] == list(b"RYW")
    assert flatten(codes) is NO_LETTERS


def test_turned_queries_lie_between_breaks():
    codes = encode(b"ACGTTNA" * 30)
    offsets = np.array([0, 5, 5, 40, 210])
    padded = with_margins(codes)
    # What lies in the margins makes no difference.
    padded[:MARGIN] = padded[-MARGIN:] = 2
    found = padded_reverse_complements(padded, offsets)
    assert found.size == padded.size
    assert np.array_equal(found[MARGIN:-MARGIN], reverse_complement_each(codes, offsets))
    assert (found[:MARGIN] == BREAK).all() and (found[-MARGIN:] == BREAK).all()


def test_every_length_around_a_vector_register_is_turned_in_its_place():
    made = np.random.default_rng(5)
    offsets = np.concatenate(([0], np.cumsum([*range(100), 33, 0, 31, 128, 1])))
    codes = made.integers(0, BREAK + 1, offsets[-1]).astype(np.uint8)
    before = codes.copy()
    complement = np.array([3, 2, 1, 0, BREAK], dtype=np.uint8)
    expected = [complement[codes[begin:end]][::-1] for begin, end in pairwise(offsets)]
    assert np.array_equal(reverse_complement_each(codes, offsets), np.concatenate(expected))
    assert np.array_equal(codes, before), "the input was changed"
    assert reverse_complement_each(codes[:0], offsets[:1]).size == 0


AMINO_ACIDS = Alphabet(b"ACDEFGHIKLMNPQRSTVWYXBJZOU", 20)


@pytest.mark.parametrize(("alphabet", "foreign"), [(NUCLEOTIDES, b"EFIJLOPQZ"), (AMINO_ACIDS, b"")])
def test_each_byte_has_the_code_of_its_letter(alphabet, foreign):
    assert alphabet.foreign_letters == foreign
    plain, full = alphabet.code_of_byte(), alphabet.code_of_byte(keeps_letters=True)
    assert plain.max() == alphabet.residue_count
    known = set(alphabet.letters) | {letter for letter, _ in alphabet.synonyms}
    for byte in range(256):
        upper = bytes([byte]).upper()[0]
        own = dict(alphabet.synonyms).get(upper, upper)
        code = alphabet.letters.find(own) if upper in known else alphabet.residue_count
        assert full[byte] == code and plain[byte] == min(code, alphabet.residue_count)


encode_bases, encode_amino_acids = encoder_of(NUCLEOTIDES), encoder_of(AMINO_ACIDS)
count_in_bases = foreign_counter_of(NUCLEOTIDES)
count_in_amino_acids = foreign_counter_of(AMINO_ACIDS)


@jit
def encoded_bases(text, codes, at, among):
    return encode_bases(text, at, codes, at), count_in_bases(text, at, among)


@jit
def encoded_amino_acids(text, codes, at, among):
    return encode_amino_acids(text, at, codes, at), count_in_amino_acids(text, at, among)


@pytest.mark.parametrize(
    ("alphabet", "encoded"), [(NUCLEOTIDES, encoded_bases), (AMINO_ACIDS, encoded_amino_acids)]
)
def test_compiled_code_agrees_with_the_tables(alphabet, encoded):
    for begin in range(0, 256, STEP):
        text = np.arange(begin, begin + STEP).astype(np.uint8)
        codes = np.empty(STEP, dtype=np.uint8)
        found, foreign = encoded(text, codes, 0, (1 << STEP) - 1)
        assert codes.tobytes() == alphabet.code_of_byte()[text].tobytes()
        assert foreign == sum(byte in alphabet.foreign_letters for byte in text.tobytes().upper())
        run = next((at for at in range(STEP) if not text[at : at + 1].tobytes().isalpha()), STEP)
        assert found & (2 * STEP - 1) == run
