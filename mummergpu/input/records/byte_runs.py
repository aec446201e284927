"""Functions that scan runs of similar bytes, 32 at a time, for the FASTA and FASTQ parsers.

Each function starts at a byte of a text and returns where a run ends. It does not test for the
end of the text: the caller puts a line feed, which ends every run, after the text and makes
sure that `STEP` bytes after it can be read.

The loops advance by the constant `STEP`, not by the length of the run. The processor would have
to wait for that length before it could load the next bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from mummergpu.input.records.qualities import LOWEST_CHARACTER, MOST_QUALITY
from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.jit import as_index, inline
from mummergpu.runtime.llvm import intrinsic, ir, load_from, store_to, types
from mummergpu.sequence.codes import AMINO_ACIDS, LETTER_CODE_OF_BYTE, NUCLEOTIDES, Alphabet

STEP: Final = 32
"""The number of bytes scanned together: one vector register on most machines."""

RunFrom = Callable[[ByteArray, int], int]
RunFromTo = Callable[[ByteArray, int, ByteArray, int], int]

_TO_LOWER: Final = 0x20
_RUN_BITS: Final = 6
"""The bits of a number that hold the length of a run, 0 to `STEP`."""


def _bytes() -> Any:
    """Return the type of a vector register with `STEP` bytes."""
    return ir.VectorType(ir.IntType(8), STEP)


def _all(value: int) -> Any:
    return ir.Constant(_bytes(), [value] * STEP)


def _load(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    return load_from(context, builder, _bytes(), array_type, array, index)


def _first(builder: Any, outside: Any) -> Any:
    """Return the index of the first lane that is set, `STEP` if there is none."""
    mask = builder.bitcast(outside, ir.IntType(STEP))
    index = builder.cttz(mask, ir.Constant(ir.IntType(1), 0))
    return builder.zext(index, ir.IntType(64))


def _run_of(outside: Callable[[Any, Any], Any]) -> RunFrom:
    """Return an intrinsic ``f(text, at)``: the number of bytes, at most `STEP`, in the run."""

    def run(typing_context: Any, text: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = _load(context, builder, signature.args[0], *arguments)
            return _first(builder, outside(builder, lanes))

        return types.int64(text, types.int64), generate

    return cast(RunFrom, intrinsic(run))


def _not_quality(builder: Any, lanes: Any) -> Any:
    return builder.icmp_unsigned(
        ">", builder.sub(lanes, _all(LOWEST_CHARACTER)), _all(MOST_QUALITY)
    )


def _control(builder: Any, lanes: Any) -> Any:
    return builder.icmp_unsigned("<", lanes, _all(32))


_run_of_quality = _run_of(_not_quality)
_run_of_text = _run_of(_control)


def _generate_copy_run(typing_context: Any, text: Any, at: Any, names: Any, to: Any) -> Any:
    """Copy `STEP` bytes; return how many precede a blank or control byte."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = _load(context, builder, signature.args[0], *arguments[:2])
        store_to(context, builder, lanes, signature.args[2], *arguments[2:])
        return _first(builder, builder.icmp_unsigned("<=", lanes, _all(32)))

    return types.int64(text, types.int64, names, types.int64), generate


def _generate_copy_step(typing_context: Any, source: Any, at: Any, target: Any, to: Any) -> Any:
    """Copy `STEP` bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = _load(context, builder, signature.args[0], *arguments[:2])
        store_to(context, builder, lanes, signature.args[2], *arguments[2:])
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), generate


def _generate_copy_quality(typing_context: Any, text: Any, at: Any, qualities: Any, to: Any) -> Any:
    """Write the qualities of `STEP` bytes; return how many precede one that is no quality."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = _load(context, builder, signature.args[0], *arguments[:2])
        numbers = builder.sub(lanes, _all(LOWEST_CHARACTER))
        store_to(context, builder, numbers, signature.args[2], *arguments[2:])
        return _first(builder, builder.icmp_unsigned(">", numbers, _all(MOST_QUALITY)))

    return types.int64(text, types.int64, qualities, types.int64), generate


def _is_among(builder: Any, lanes: Any, letters: bytes) -> Any:
    """Return which of the lanes are one of some letters, in either case."""
    if len(letters) == 2 and (letters[0] ^ letters[1]).bit_count() == 1:
        # T and U, for example, differ in one bit: one comparison finds both.
        bits = _TO_LOWER | letters[0] ^ letters[1]
        return builder.icmp_unsigned("==", builder.or_(lanes, _all(bits)), _all(letters[0] | bits))
    lower = builder.or_(lanes, _all(_TO_LOWER))
    found: Any = ir.Constant(ir.VectorType(ir.IntType(1), STEP), [0] * STEP)
    for letter in letters:
        same = builder.icmp_unsigned("==", lower, _all(letter | _TO_LOWER))
        found = builder.or_(found, same)
    return found


def encoder_of(alphabet: Alphabet) -> RunFromTo:
    """Return a function that writes the codes of `STEP` bytes; its result has the run of letters.

    The lowest `_RUN_BITS` bits of the result hold the number of bytes before the first byte that is
    no letter. The bits above them are a mask: a bit is set for each of these bytes that is no
    residue. The letters are compared one by one: a table would be
    read byte by byte.
    """

    def encode(typing_context: Any, text: Any, at: Any, codes: Any, to: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = _load(context, builder, signature.args[0], *arguments[:2])
            lower = builder.or_(lanes, _all(_TO_LOWER))
            encoded: Any = _all(alphabet.residue_count)
            for code, letters in enumerate(alphabet.residues):
                encoded = builder.select(_is_among(builder, lanes, letters), _all(code), encoded)
            store_to(context, builder, encoded, signature.args[2], *arguments[2:])
            outside = builder.icmp_unsigned(">", builder.sub(lower, _all(ord("a"))), _all(25))
            ends = builder.bitcast(outside, ir.IntType(STEP))
            # Keep the bits below the lowest set bit, or all bits if none is set.
            in_run = builder.and_(
                builder.sub(ends, ir.Constant(ir.IntType(STEP), 1)), builder.not_(ends)
            )
            no_base = builder.bitcast(
                builder.icmp_unsigned("==", encoded, _all(alphabet.residue_count)), ir.IntType(STEP)
            )
            others = builder.zext(builder.and_(no_base, in_run), ir.IntType(64))
            shifted = builder.shl(others, ir.Constant(ir.IntType(64), _RUN_BITS))
            return builder.or_(shifted, _first(builder, outside))

        return types.int64(text, types.int64, codes, types.int64), generate

    return cast(RunFromTo, intrinsic(encode))


def foreign_counter_of(alphabet: Alphabet) -> Callable[[ByteArray, int, int], int]:
    """Return a function that counts foreign letters in `STEP` bytes, of those set in a mask."""

    def count(typing_context: Any, text: Any, at: Any, among: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = _load(context, builder, signature.args[0], *arguments[:2])
            foreign = _is_among(builder, lanes, alphabet.foreign_letters)
            mask = builder.zext(builder.bitcast(foreign, ir.IntType(STEP)), ir.IntType(64))
            return builder.ctpop(builder.and_(mask, arguments[2]))

        return types.int64(text, types.int64, types.int64), generate

    return cast("Callable[[ByteArray, int, int], int]", intrinsic(count))


_copy_run_of_name = cast(RunFromTo, intrinsic(_generate_copy_run))
_copy_step = cast(
    "Callable[[ByteArray, int, ByteArray, int], None]", intrinsic(_generate_copy_step)
)
_copy_run_of_quality = cast(RunFromTo, intrinsic(_generate_copy_quality))
_encode_run_of_letters = encoder_of(NUCLEOTIDES)
_count_foreign = foreign_counter_of(NUCLEOTIDES)
_encode_run_of_residues = encoder_of(AMINO_ACIDS)

RESIDUE_CODE_OF_BYTE: Final = AMINO_ACIDS.code_of_byte(keeps_letters=True)
"""The code of each byte of a protein; the dot and the underline are gaps, as all others are."""


@inline
def encode_letters(
    text: ByteArray, at: int, codes: ByteArray, to: int, keeps_letters: bool = False
) -> tuple[int, int]:
    """Write the codes of a run of letters.

    Parameters
    ----------
    keeps_letters : bool, default False
        Whether letters that stand for several bases get codes of their own (`codes.LETTERS`).

    Returns
    -------
    end : int
        The index in `text` of the first byte that is no letter.
    foreign : int
        How many letters of the run are neither bases nor IUPAC codes of several bases.
    """
    foreign = 0
    while True:
        run = _encode_run_of_letters(text, at, codes, to)
        if run > STEP:
            others = run >> _RUN_BITS
            foreign += _count_foreign(text, at, others)
            run &= (1 << _RUN_BITS) - 1
            if keeps_letters:
                for place in range(run):
                    if others >> place & 1:
                        letter = text[as_index(at + place)]
                        codes[as_index(to + place)] = LETTER_CODE_OF_BYTE[letter]
        if run < STEP:
            return at + run, foreign
        at += STEP
        to += STEP


@inline
def encode_residues(text: ByteArray, at: int, codes: ByteArray, to: int) -> int:
    """Write the codes of a run of letters of a protein; return where it ends."""
    while True:
        run = _encode_run_of_residues(text, at, codes, to)
        others = run >> _RUN_BITS
        run &= (1 << _RUN_BITS) - 1
        if others:
            for place in range(run):
                if others >> place & 1:
                    letter = text[as_index(at + place)]
                    codes[as_index(to + place)] = RESIDUE_CODE_OF_BYTE[letter]
        if run < STEP:
            return at + run
        at += STEP
        to += STEP


@inline
def copy_name(text: ByteArray, at: int, names: ByteArray, to: int) -> int:
    """Copy a run without blanks and control bytes; return where it ends."""
    while True:
        run = _copy_run_of_name(text, at, names, to)
        if run < STEP:
            return at + run
        at += STEP
        to += STEP


@inline
def copy_bytes(source: ByteArray, at: int, target: ByteArray, to: int, size: int) -> None:
    """Copy `size` bytes from one array to another, and touch no others."""
    if size < STEP:
        for index in range(size):
            target[as_index(to + index)] = source[as_index(at + index)]
        return
    for step in range(0, size - STEP, STEP):
        _copy_step(source, at + step, target, to + step)
    # The last step may overlap the one before it.
    _copy_step(source, at + size - STEP, target, to + size - STEP)


@inline
def copy_quality(text: ByteArray, at: int, qualities: ByteArray, to: int) -> int:
    """Write the numbers of a run of quality characters (bytes 33 to 126); return where it ends."""
    while True:
        run = _copy_run_of_quality(text, at, qualities, to)
        if run < STEP:
            return at + run
        at += STEP
        to += STEP


@inline
def skip_quality(text: ByteArray, at: int) -> int:
    """Return where a run of quality characters (bytes 33 to 126) ends."""
    while True:
        run = _run_of_quality(text, at)
        if run < STEP:
            return at + run
        at += STEP


@inline
def skip_text(text: ByteArray, at: int) -> int:
    """Return where a run without control bytes (those below 32) ends."""
    while True:
        run = _run_of_text(text, at)
        if run < STEP:
            return at + run
        at += STEP
