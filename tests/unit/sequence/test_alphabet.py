"""Alphabets: each byte of text has one code, whichever letters a kind of sequence has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mummergpu.input.records.byte_runs import STEP, encoder_of, foreign_counter_of
from mummergpu.runtime.jit import jit
from mummergpu.sequence.codes import NUCLEOTIDES, Alphabet

AMINO_ACIDS = Alphabet(b"ACDEFGHIKLMNPQRSTVWYXBJZOU", 20)


@pytest.mark.parametrize(
    ("alphabet", "foreign"), [(NUCLEOTIDES, b"EFIJLOPQXZ"), (AMINO_ACIDS, b"")]
)
def test_each_byte_has_the_code_of_its_letter(alphabet: Alphabet, foreign: bytes) -> None:
    assert alphabet.foreign_letters == foreign
    plain, full = alphabet.code_of_byte(), alphabet.code_of_byte(keeps_letters=True)
    assert plain.max() == alphabet.residue_count
    known = set(alphabet.letters) | {letter for letter, _ in alphabet.synonyms}
    for byte in range(256):
        upper = bytes([byte]).upper()[0]
        own = dict(alphabet.synonyms).get(upper, upper)
        code = alphabet.letters.find(own) if upper in known else alphabet.residue_count
        assert full[byte] == code
        assert plain[byte] == min(code, alphabet.residue_count)


encode_bases, encode_amino_acids = encoder_of(NUCLEOTIDES), encoder_of(AMINO_ACIDS)
count_in_bases = foreign_counter_of(NUCLEOTIDES)
count_in_amino_acids = foreign_counter_of(AMINO_ACIDS)


@jit
def encoded_bases(text, codes, at, among):  # type: ignore[no-untyped-def]
    return encode_bases(text, at, codes, at), count_in_bases(text, at, among)


@jit
def encoded_amino_acids(text, codes, at, among):  # type: ignore[no-untyped-def]
    return encode_amino_acids(text, at, codes, at), count_in_amino_acids(text, at, among)


@pytest.mark.parametrize(
    ("alphabet", "encoded"), [(NUCLEOTIDES, encoded_bases), (AMINO_ACIDS, encoded_amino_acids)]
)
def test_compiled_code_agrees_with_the_tables(alphabet: Alphabet, encoded: Any) -> None:
    for begin in range(0, 256, STEP):
        text = np.arange(begin, begin + STEP).astype(np.uint8)
        codes = np.empty(STEP, dtype=np.uint8)
        found, foreign = encoded(text, codes, 0, (1 << STEP) - 1)
        assert codes.tobytes() == alphabet.code_of_byte()[text].tobytes()
        assert foreign == sum(byte in alphabet.foreign_letters for byte in text.tobytes().upper())
        run = next((at for at in range(STEP) if not text[at : at + 1].tobytes().isalpha()), STEP)
        assert found & (2 * STEP - 1) == run
