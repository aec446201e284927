"""Alphabets, base codes and reverse complements.

Inside the package a sequence is an array of codes, one byte per base. A, C, G and T are 0
to 3, and the U of RNA has the code of T. Every other character, the border between two
records and the end of a page are `BREAK`. A break matches nothing, not even another break.

If letters are to be written as in the input, those that stand for several bases have their own
codes above `BREAK` (`LETTERS`). Searches never see these: `flatten` turns them into breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import jit
from mummergpu.runtime.llvm import intrinsic, ir, load_from, store_to, types

_LETTER_COUNT: Final = 26
_TO_LOWER: Final = 0x20


class Alphabet(NamedTuple):
    """The letters of sequences, and their codes.

    Attributes
    ----------
    letters : bytes
        The letter of each code, in upper case: first those of single residues, then the letter for
        any residue, whose code all other characters get, and then the letters that stand for
        several residues.
    residue_count : int
        The number of letters for one residue: 4 for nucleotides, 20 for amino acids. It is also the
        code of a break.
    synonyms : tuple of tuple of int
        Letters that have the code of another one: the letter, and the one before it in `letters`.
    """

    letters: bytes
    residue_count: int
    synonyms: tuple[tuple[int, int], ...] = ()

    @property
    def residues(self) -> tuple[bytes, ...]:
        """The letters of each residue, in upper case: its own, and its synonyms."""
        return tuple(
            bytes([own, *(other for other, letter in self.synonyms if letter == own)])
            for own in self.letters[: self.residue_count]
        )

    @property
    def foreign_letters(self) -> bytes:
        """The letters, in upper case, that are not in the alphabet."""
        known = {*self.letters, *(letter for letter, _ in self.synonyms)}
        every = range(ord("A"), ord("A") + _LETTER_COUNT)
        return bytes(letter for letter in every if letter not in known)

    def code_of_byte(self, keeps_letters: bool = False) -> ByteArray:
        """Return the code of each byte of text, in either case: dtype=uint8, shape=(256,).

        Letters that stand for several residues have their own codes if they are kept; otherwise
        they are breaks, as are all other bytes.
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


NUCLEOTIDES: Final = Alphabet(b"ACGTNSWNRYKMBVDH", 4, ((ord("U"), ord("T")), (ord("X"), ord("N"))))
"""DNA and RNA; X masks bases, as N does. The bases that S, W and N stand for are their own
complements; from R on, the codes of two complements differ in their lowest bit (the second N fills
a gap)."""

AMINO_ACIDS: Final = Alphabet(b"ACDEFGHIKLMNPQRSTVWY-BJZOUX*~", 20)
"""Proteins, in the order of HMMER's Easel library: after the gap, letters for several residues or
rare ones, then symbols that are not residues."""


CodeArray = ByteArray

BREAK: Final[int] = NUCLEOTIDES.residue_count
"""The code of every character other than A, C, G, T and U."""

STEP: Final = 32
"""Codes that are processed together: one vector register on most machines."""

MARGIN: Final = 64
"""Breaks on each side of a sequence that is read in steps of `STEP` codes."""

_FLATTEN_STEP: Final = 1 << 18
"""The codes that are processed together; they stay in the caches."""

BASES: Final = b"ACGTN"
"""The letter that stands for each code in readable text."""

_LETTER_OF_CODE: Final = BASES.ljust(256, BASES[BREAK:])

LETTERS: Final = NUCLEOTIDES.letters
"""The letter of each code where letters are kept."""

FIRST_TWO_FOLD: Final = LETTERS.index(b"R")
"""The first code of a letter whose complement is another letter."""


CODE_OF_BYTE: Final[CodeArray] = NUCLEOTIDES.code_of_byte()
"""The code of each byte of text: ndarray, dtype=uint8, shape=(256,)."""

LETTER_CODE_OF_BYTE: Final[CodeArray] = NUCLEOTIDES.code_of_byte(keeps_letters=True)
"""The code of each byte of text where letters are kept: ndarray, dtype=uint8, shape=(256,)."""

COMPLEMENT_OF_CODE: Final[CodeArray] = np.array(
    [3, 2, 1, 0, 4, 5, 6, 7, 9, 8, 11, 10, 13, 12, 15, 14], np.uint8
)
"""The complement of each code, also where letters are kept: ndarray, dtype=uint8, shape=(16,)."""


def encode(text: bytes, keeps_letters: bool = False) -> CodeArray:
    """Return the codes of a piece of sequence text, in either case: dtype=uint8.

    Letters that stand for several bases have codes of their own (`LETTERS`) if they are kept; white
    space is not removed.

    Examples
    --------
    >>> encode(b"ACgtN").tolist()
    [0, 1, 2, 3, 4]
    """
    table = LETTER_CODE_OF_BYTE if keeps_letters else CODE_OF_BYTE
    return table[np.frombuffer(text, dtype=np.uint8)]


class Letters(NamedTuple):
    """The letters of a sequence that stand for several bases; its codes have breaks there.

    Attributes
    ----------
    positions : ndarray, dtype=int64, shape=(n_letters,)
        Their indices in the codes of the sequence, ascending.
    codes : ndarray, dtype=uint8, shape=(n_letters,)
        Their codes (`LETTERS`).
    """

    positions: Int64Array
    codes: CodeArray


NO_LETTERS: Final = Letters(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint8))


def flatten(codes: CodeArray) -> Letters:
    """Replace the letters that stand for several bases by breaks, in place; return the letters.

    Most sequences have none.
    """
    found = [NO_LETTERS]
    for begin in range(0, codes.size, _FLATTEN_STEP):
        step = codes[begin : begin + _FLATTEN_STEP]
        if step.max() > BREAK:
            places = np.flatnonzero(step > BREAK)
            found.append(Letters(places + begin, step[places]))
            step[places] = BREAK
    if len(found) == 1:
        return NO_LETTERS
    return Letters(*map(np.concatenate, zip(*found, strict=True)))


def with_margins(codes: CodeArray) -> CodeArray:
    """Return a copy of a sequence with `MARGIN` breaks on both sides."""
    padded = empty_with_margins(codes.size)
    padded[MARGIN : MARGIN + codes.size] = codes
    return padded


def empty_with_margins(base_count: int) -> CodeArray:
    """Return an unfilled array for `base_count` bases, with `MARGIN` breaks on both sides."""
    padded = np.empty(base_count + 2 * MARGIN, dtype=np.uint8)
    fill_margins(padded)
    return padded


def fill_margins(padded: CodeArray) -> None:
    """Set the first and the last `MARGIN` codes to breaks."""
    padded[:MARGIN] = padded[padded.size - MARGIN :] = BREAK


def decode(codes: CodeArray) -> bytes:
    """Return codes 0 to 4 as letters: ``ACGT``, and ``N`` for a break.

    Examples
    --------
    >>> decode(encode(b"acgu"))
    b'ACGT'
    """
    return codes.tobytes().translate(_LETTER_OF_CODE)


def _reverse_complement_lanes(
    typing_context: Any, codes: Any, at: Any, result: Any, to: Any
) -> Any:
    """Write the reverse complement of `STEP` codes of `LETTERS`, which lie inside both arrays."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes_type = ir.VectorType(ir.IntType(8), STEP)
        order = ir.Constant(ir.VectorType(ir.IntType(32), STEP), list(range(STEP))[::-1])
        lanes = load_from(context, builder, lanes_type, signature.args[0], *arguments[:2])
        lanes = builder.shuffle_vector(lanes, lanes, order)
        is_base = builder.icmp_unsigned("<", lanes, ir.Constant(lanes_type, [BREAK] * STEP))
        two_fold = ir.Constant(lanes_type, [FIRST_TWO_FOLD] * STEP)
        is_two_fold = builder.icmp_unsigned(">=", lanes, two_fold)
        zero = ir.Constant(lanes_type, [0] * STEP)
        others = builder.select(is_two_fold, ir.Constant(lanes_type, [1] * STEP), zero)
        # The complement, 3 minus the base, flips both of its bits.
        bits = builder.select(is_base, ir.Constant(lanes_type, [3] * STEP), others)
        lanes = builder.xor(lanes, bits)
        store_to(context, builder, lanes, signature.args[2], *arguments[2:])
        return context.get_dummy_value()

    return types.void(codes, types.int64, result, types.int64), generate


reverse_complement_lanes = cast(
    "Callable[[CodeArray, int, CodeArray, int], None]", intrinsic(_reverse_complement_lanes)
)


def reverse_complement_each(codes: CodeArray, offsets: Int64Array) -> CodeArray:
    """Return the reverse complement of each sequence at the same offsets; breaks stay breaks.

    Parameters
    ----------
    codes : ndarray, dtype=uint8, shape=(n_bases,)
        Sequences one after the other.
    offsets : ndarray, dtype=int64, shape=(n_sequences + 1,)
        Where each sequence begins, and where the last ends.
    """
    result = np.empty_like(codes)
    write_reverse_complements(codes, offsets, result)
    return result


def padded_reverse_complements(padded_codes: CodeArray, offsets: Int64Array) -> CodeArray:
    """Return the reverse complement of each sequence at the same offsets, between margins.

    The offsets count from the end of the first margin.
    """
    base_count = padded_codes.size - 2 * MARGIN
    padded = empty_with_margins(base_count)
    end = MARGIN + base_count
    write_reverse_complements(padded_codes[MARGIN:end], offsets, padded[MARGIN:end])
    return padded


@jit
def write_reverse_complements(codes: CodeArray, offsets: Int64Array, result: CodeArray) -> None:
    """Write the reverse complement of each sequence (`reverse_complement_each`)."""
    for sequence in range(offsets.size - 1):
        begin = offsets[sequence]
        end = offsets[sequence + 1]
        if end - begin < STEP:
            for position in range(begin, end):
                result[begin + end - 1 - position] = COMPLEMENT_OF_CODE[codes[position] & 15]
            continue
        for done in range(0, end - begin - STEP, STEP):
            reverse_complement_lanes(codes, end - done - STEP, result, begin + done)
        # The last step may overlap the one before and write the same codes again.
        reverse_complement_lanes(codes, begin, result, end - STEP)


@jit
def longest_of(offsets: Int64Array) -> int:
    """Return the length of the longest of the sequences between offsets, 0 if there is none."""
    longest = 0
    for sequence in range(offsets.size - 1):
        longest = max(longest, offsets[sequence + 1] - offsets[sequence])
    return longest
