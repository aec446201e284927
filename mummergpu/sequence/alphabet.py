"""Alphabets: which letters a kind of sequence has, and which code stands for each."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import ByteArray

_LETTER_COUNT: Final = 26
_TO_LOWER: Final = 0x20


class Alphabet(NamedTuple):
    """The letters of sequences, and their codes.

    Attributes
    ----------
    letters : bytes
        The letter of each code, in upper case: those of single residues, then the letter that
        stands for any residue, whose code is also that of every other character, and then the
        letters that stand for several residues.
    residue_count : int
        How many letters stand for one residue: 4 for nucleotides, 20 for amino acids. It is also
        the code of a break.
    synonyms : tuple of tuple of int
        Letters that have the code of another one: the letter, and the one before it in `letters`.
    """

    letters: bytes
    residue_count: int
    synonyms: tuple[tuple[int, int], ...] = ()

    @property
    def residues(self) -> tuple[bytes, ...]:
        """The letters of each residue, in upper case: its own, and the synonyms of that."""
        return tuple(
            bytes([own, *(other for other, letter in self.synonyms if letter == own)])
            for own in self.letters[: self.residue_count]
        )

    @property
    def foreign_letters(self) -> bytes:
        """The letters, in upper case, that no sequence of this kind has."""
        known = {*self.letters, *(letter for letter, _ in self.synonyms)}
        every = range(ord("A"), ord("A") + _LETTER_COUNT)
        return bytes(letter for letter in every if letter not in known)

    def code_of_byte(self, keeps_letters: bool = False) -> ByteArray:
        """Return the code of each byte of text, in either case: dtype=uint8, shape=(256,).

        Letters that stand for several residues have codes of their own if they are kept, and are
        breaks otherwise, as all other bytes are.
        """
        table = np.full(256, self.residue_count, dtype=np.uint8)
        for code, letters in enumerate(self.residues):
            for letter in letters:
                table[[letter, letter | _TO_LOWER]] = code
        if keeps_letters:
            for code in range(self.residue_count + 1, len(self.letters)):
                letter = self.letters[code]
                if letter != self.letters[self.residue_count]:
                    table[[letter, letter | _TO_LOWER]] = code
        return table


NUCLEOTIDES: Final = Alphabet(b"ACGTNSWNRYKMBVDH", 4, ((ord("U"), ord("T")),))
"""DNA and RNA. The bases that S, W and N stand for are their own complements; from R on, the codes
of two complements differ in their lowest bit (the second N fills a gap)."""

AMINO_ACIDS: Final = Alphabet(b"ACDEFGHIKLMNPQRSTVWY-BJZOUX*~", 20)
"""Proteins, in the order of HMMER's Easel library: behind the gap, letters that stand for several
residues or rare ones, then what is no residue."""
