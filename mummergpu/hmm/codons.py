"""Translates a record at every position, 64 at once, where registers look up bytes.

A record of A, C, G and T alone has its residues, and a bit for each stop codon, on both strands:
what lies between two stops is copied. Other records go codon by codon (`translation`), with the
same ORFs.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.runtime.arrays import ByteArray, UInt64Array
from mummergpu.runtime.jit import jit_without_refcounts
from mummergpu.runtime.llvm import address_of, intrinsic, ir, load_from, types
from mummergpu.runtime.vectors import Vectors
from mummergpu.sequence.codes import CodeArray

AT_ONCE: Final = 64
"""The positions that are translated at once."""

BEYOND: Final = AT_ONCE + 2
"""The codes that are read from a position on; those behind the record do not matter."""

THIRDS: Final = 21
"""The residues of a frame among so many positions."""

BASES: Final = 4
"""Codes below it are A, C, G and T."""


class Codons(NamedTuple):
    """The codons of a record at every position, for compiled functions.

    Attributes
    ----------
    residues : ndarray of uint8, shape (2, positions)
        The residue of the codon that begins there, and on the other strand that of the codon that
        ends there.
    stops : ndarray of uint64, shape (2, positions / AT_ONCE)
        A bit for each of them that is a stop.
    """

    residues: ByteArray
    stops: UInt64Array


def room_for_codons(longest: int) -> Codons:
    """Return memory for records of up to so many bases."""
    words = longest // AT_ONCE + 1
    return Codons(
        np.empty((2, words * AT_ONCE), dtype=np.uint8), np.empty((2, words), dtype=np.uint64)
    )


def _translate_some(
    typing_context: Any, codes: Any, at: Any, tables: Any, residues: Any, to: Any, other: Any
) -> Any:
    """Translate `AT_ONCE` positions; return the bits of stops, and of codes that are no bases."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(builder, 8, AT_ONCE)
        _, at, _, residues, to, other = arguments
        word = ir.IntType(64)

        def loaded(of: int, place: Any, kind: Any = vectors.kind) -> Any:
            return load_from(context, builder, kind, signature.args[of], arguments[of], place)

        bases = [loaded(0, builder.add(at, ir.Constant(word, n))) for n in range(3)]
        # A look-up takes the lowest six bits; each position tells of its own base alone.
        codons = bases[0]
        for base in bases[1:]:
            codons = builder.or_(builder.shl(codons, vectors.constant(2)), base)
        unknown = builder.icmp_unsigned(">=", bases[0], vectors.constant(BASES))
        stop = loaded(2, ir.Constant(word, 2 * AT_ONCE), vectors.element)
        stop = vectors.splat(builder.zext(stop, word))
        found = []
        for strand, place in enumerate((to, other)):
            table = loaded(2, ir.Constant(word, AT_ONCE * strand))
            translated = vectors.looked_up(table, codons)
            kind = signature.args[3]
            target = address_of(context, builder, vectors.kind, kind, residues, place)
            builder.store(translated, target, align=1)
            found.append(builder.bitcast(builder.icmp_unsigned("==", translated, stop), word))
        found.append(builder.bitcast(unknown, word))
        return context.make_tuple(builder, signature.return_type, found)

    one = types.int64
    bits = types.UniTuple(types.uint64, 3)
    return bits(codes, one, tables, residues, one, one), generate


translate_some = cast(Any, intrinsic(_translate_some))
"""Called with codes, the first position, the tables of `translate_record`, residues, and the two
places in them to write to."""


def _copy_thirds(
    typing_context: Any, residues: Any, at: Any, forward: Any, codes: Any, to: Any
) -> Any:
    """Copy `THIRDS` residues three positions apart, with what does not matter behind them."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        residues, at, forward, codes, to = arguments
        vectors, few = Vectors(builder, 8, AT_ONCE), Vectors(builder, 8, AT_ONCE // 2)
        before = builder.sub(at, ir.Constant(ir.IntType(64), AT_ONCE - 1))
        first = builder.select(forward, at, before)
        loaded = load_from(context, builder, vectors.kind, signature.args[0], residues, first)
        index = ir.VectorType(ir.IntType(32), few.lanes)

        def thirds(order: range) -> Any:
            places = ir.Constant(index, [order[n % THIRDS] for n in range(few.lanes)])
            return builder.shuffle_vector(loaded, loaded, places)

        found = builder.select(
            forward, thirds(range(0, AT_ONCE, 3)), thirds(range(AT_ONCE - 1, -1, -3))
        )
        target = address_of(context, builder, few.kind, signature.args[3], codes, to)
        builder.store(found, target, align=1)
        return context.get_dummy_value()

    one = types.int64
    return types.void(residues, one, types.boolean, codes, one), generate


copy_thirds = cast(Any, intrinsic(_copy_thirds))
"""Called with `Codons.residues`, the place of the first among those of both strands, whether the
others lie behind it or before it, and the codes and the place to write to, which `BEYOND` codes
follow. There are `AT_ONCE` residues in that direction."""


@jit_without_refcounts
def translate_record(
    codes: CodeArray, begin: int, length: int, tables: ByteArray, into: Codons
) -> bool:
    """Translate a record at every position; return whether it has bases only.

    `tables` has a residue for each codon of two bits a base, then the same for the codon on the
    other strand, and then the code of a stop. Behind the record `BEYOND` codes may be read.
    """
    width = into.residues.shape[1]
    unknown = np.uint64(0)
    for place in range(0, length, AT_ONCE):
        forward, reverse, others = translate_some(
            codes, begin + place, tables, into.residues, place, width + place
        )
        into.stops[0, place // AT_ONCE] = forward
        into.stops[1, place // AT_ONCE] = reverse
        # What lies behind the record is another one's, or nothing.
        if length - place < AT_ONCE:
            others &= (np.uint64(1) << np.uint64(length - place)) - np.uint64(1)
        unknown |= others
    return not unknown
