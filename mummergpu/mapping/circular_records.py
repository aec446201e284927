"""The circular records of a reference, and how reads are searched and scored on them.

Reads are mapped to a circular record that goes on at both ends: its last bases lie before it, and
its first ones behind it. A read has one candidate for all copies of a place, that of the copy in
which it begins between the record's own ends (`candidate_search`).
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
from mummergpu.sequence.codes import BREAK, MARGIN

ALL: Final = "all"
"""The word for all records of the reference."""

BEYOND: Final = 2048
"""How many bases of a circular record lie before it and behind it once more: more than those of the
longest read and its gaps. No circular record that reads are mapped to has fewer."""

NO_CIRCLES: Final = np.empty(0, dtype=np.int64)
"""The circles of a reference that has none."""


@frozen
class UnrolledReference(Reference):
    """A reference whose circular records are replaced by longer ones, behind all others.

    In their own places are records without bases, so that the others stay where they are.
    """

    original: Reference = field(kw_only=True)  # The reference as it is.
    originals: Int64Array = field(kw_only=True)  # Which record of that each record is.
    # The bases of each circular record, without those that are there twice; 0 for the others.
    circles: Int64Array = field(kw_only=True)


def circular_records(reference: Reference, names: Sequence[str]) -> BoolArray:
    """Return which records are circular; `OptionError` is raised for an unknown name."""
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

    `OptionError` is raised if there is no record of a name, or one is too short.
    """
    circular = np.flatnonzero(circular_records(reference, names)).tolist()
    codes = reference.padded_codes[: reference.padded_codes.size - MARGIN].copy()
    pieces, starts = [codes], []
    filled = codes.size - MARGIN
    for record in circular:
        length = int(reference.record_lengths[record])
        if length < BEYOND:
            name = reference.names[record].decode(errors="replace")
            text = f"the record '{name}' has {length:,} bases, and circular ones have"
            raise OptionError("circular", f"{text} at least {BEYOND:,}")
        begin = MARGIN + int(reference.record_starts[record])
        own = codes[begin : begin + length].copy()
        codes[begin : begin + length] = BREAK
        pieces += [np.full(1, BREAK, dtype=np.uint8), own[-BEYOND:], own, own[:BEYOND]]
        starts.append(filled + 1)
        filled += 1 + own.size + 2 * BEYOND
    padded = np.concatenate((*pieces, np.full(MARGIN, BREAK, dtype=np.uint8)))
    lengths = reference.record_lengths.copy()
    circles = np.concatenate((np.zeros_like(lengths), lengths[circular]))
    lengths[circular] = 0
    return UnrolledReference(
        reference.path,
        padded[MARGIN:-MARGIN],
        np.concatenate((reference.record_starts, np.array(starts, dtype=np.int64))),
        np.concatenate((lengths, reference.record_lengths[circular] + 2 * BEYOND)),
        (*reference.names, *(reference.names[record] for record in circular)),
        padded,
        original=reference,
        originals=np.concatenate((np.arange(lengths.size), np.array(circular, dtype=np.int64))),
        circles=circles,
    )
