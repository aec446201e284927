"""The circular records of a reference, and how reads are searched and scored on them.

Reads are mapped to a circular record that is extended at both ends: its last bases precede it, and
its first ones follow it. Of all copies of a place, a read has one candidate, in the copy in which
it begins between the record's own ends (`candidate_search`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.input.reference import Reference
from mummergpu.runtime.arrays import BoolArray, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray

ALL: Final = "all"
"""The word for all records of the reference."""

BEYOND: Final = 2048
"""The bases of a circular record that are repeated before it and after it: more than those of the
longest read and its gaps. No circular record that reads are mapped to has fewer."""

NO_CIRCLES: Final = np.empty(0, dtype=np.int64)
"""The circles of a reference that has none."""


@frozen
class UnrolledReference(Reference):
    """A reference whose circular records are replaced by longer ones, after all others.

    Records without bases take their places, so that the others keep theirs.
    """

    original: Reference = field(kw_only=True)  # The reference as it is.
    originals: Int64Array = field(kw_only=True)  # Which record of that each record is.
    # The bases of each circular record, without those that are there twice; 0 for the others.
    circles: Int64Array = field(kw_only=True)


def circular_records(reference: Reference, names: Sequence[str]) -> BoolArray:
    """Return which records are circular; raise `OptionError` for an unknown name."""
    if not names:
        return np.zeros(len(reference.names), dtype=np.bool_)
    known = [name.decode(errors="surrogateescape") for name in reference.names]
    for name in names:
        if name != ALL and name not in known:
            raise OptionError("circular", f"the reference has no record named '{name}'")
    wanted = set(known) if ALL in names else set(names)
    return np.array([name in wanted for name in known], dtype=np.bool_)


def unrolled(reference: Reference, names: Sequence[str]) -> UnrolledReference:
    """Return a reference to map reads to, with circular records of these names.

    Raise `OptionError` if there is no record of a name, or one is too short.
    """
    circular = np.flatnonzero(circular_records(reference, names))
    codes = reference.padded_codes
    pieces = [codes[:-MARGIN]]
    for record in circular.tolist():
        length = int(reference.record_lengths[record])
        if length < BEYOND:
            name = reference.names[record].decode(errors="replace")
            text = f"the record '{name}' has {length:,} bases, and circular ones have"
            raise OptionError("circular", f"{text} at least {BEYOND:,}")
        begin = MARGIN + int(reference.record_starts[record])
        own = codes[begin : begin + length]
        pieces += [np.full(1, BREAK, dtype=np.uint8), own[-BEYOND:], own, own[:BEYOND]]
    padded = np.concatenate((*pieces, np.full(MARGIN, BREAK, dtype=np.uint8)))
    for record in circular.tolist():
        begin = MARGIN + int(reference.record_starts[record])
        padded[begin : begin + int(reference.record_lengths[record])] = BREAK
    return unrolled_as(reference, circular, padded)


def unrolled_as(original: Reference, circular: Int64Array, padded: CodeArray) -> UnrolledReference:
    """Return a reference whose records of these numbers are circular; `padded` are its codes."""
    lengths = original.record_lengths.copy()
    circles = lengths[circular]
    lengths[circular] = 0
    longer = circles + 2 * BEYOND
    starts = original.codes.size + 1 + np.cumsum(longer + 1) - (longer + 1)
    return UnrolledReference(
        original.path,
        padded[MARGIN:-MARGIN],
        np.concatenate((original.record_starts, starts)),
        np.concatenate((lengths, longer)),
        (*original.names, *(original.names[record] for record in circular)),
        padded,
        original=original,
        originals=np.concatenate((np.arange(lengths.size), circular)),
        circles=np.concatenate((np.zeros_like(lengths), circles)),
    )


def original_codes(
    copy: CodeArray,
    padded: CodeArray,
    starts: Int64Array,
    lengths: Int64Array,
    circular: Int64Array,
) -> CodeArray:
    """Return the padded codes of the original of an `UnrolledReference` whose codes are `padded`.

    They are written into a `copy` of `padded`. `starts` and `lengths` are those of the records of
    the original.
    """
    size = int(starts[-1] + lengths[-1])
    codes = copy[: size + 2 * MARGIN]
    codes[size + MARGIN :] = BREAK
    begin = MARGIN + size + 1 + BEYOND
    for record in circular.tolist():
        length, own = int(lengths[record]), MARGIN + int(starts[record])
        codes[own : own + length] = padded[begin : begin + length]
        begin += length + 2 * BEYOND + 1
    return codes


def original_of(reference: Reference) -> Reference:
    """Return a reference as in its file."""
    return reference.original if isinstance(reference, UnrolledReference) else reference
