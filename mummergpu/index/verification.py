"""Verifies a whole index file: that it is unchanged, and which reference it was built from.

Opening an index file runs only the checks whose time does not grow with the number of bases
(`index.file`). The functions here read every byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mummergpu.errors import InputError, OptionError
from mummergpu.index.file import IndexFile
from mummergpu.index.format import PIECE_BYTES, digest_of
from mummergpu.index.kmer_table import bucket_counts, bucket_shift, slices_of
from mummergpu.index.pages import Page
from mummergpu.input.reference import Reference
from mummergpu.runtime.words import pluralize


def verify(index: IndexFile, map_function: Callable[..., Iterable[Any]] = map) -> None:
    """Refuse an index file that has changed since it was written.

    An `InputError` names the damaged sections, or says that the digest of the reference is not the
    one in the header.
    """
    damaged = index.damaged_sections(map_function)
    if damaged:
        raise InputError(f"the index is damaged in its sections {', '.join(damaged)}", index.path)
    if digest_of(index.original, map_function) != index.header.digest:
        raise InputError("the index is not of the reference that it names", index.path)
    for page in index.pages:
        is_own = _is_own_tree if index.header.search == "tree" else _is_own_table
        if not is_own(index, page, map_function):
            text = f"the index is damaged: its page {page.index} is of another reference"
            raise InputError(f"{text}, or of another step", index.path)


def _is_own_tree(index: IndexFile, page: Page, _: Callable[..., Iterable[Any]]) -> bool:
    """Return whether a tree's copy of the page's bases is that of the reference."""
    from mummergpu.index.tree.flatten import lay_out_reference
    from mummergpu.index.tree_index import page_codes

    tree = index.tree(page)
    laid_out = lay_out_reference(page_codes(index.reference, page), tree.layout)
    return np.array_equal(tree.reference, laid_out)


def _is_own_table(index: IndexFile, page: Page, map_function: Callable[..., Iterable[Any]]) -> bool:
    """Return whether a table lists the reference's k-mers: how many per bucket, and where."""
    table, step = index.table(page), index.header.reference_step
    length = table.sampling.kmer_length
    slices = slices_of(index.padded_reference, page.begin, page.owned_end, table.sampling)
    counts = bucket_counts(slices, length, map_function).sum(axis=0)
    listed = np.diff(table.offsets[:: 1 << bucket_shift(length)].astype(np.int64))
    if not (listed == counts).all():
        return False
    pieces = range(0, 0 if table.sampling.is_picked else table.positions.size, PIECE_BYTES)
    first = -page.begin % step
    return not any(
        (table.positions[at : at + PIECE_BYTES] % np.uint32(step) != first).any() for at in pieces
    )


def verify_for_run(
    index: IndexFile | None, path: str, map_function: Callable[..., Iterable[Any]] = map
) -> None:
    """Verify the index file that a run was given as its reference.

    Without an index `OptionError` is raised, since a FASTA file has no checksums, and `InputError`
    if it is damaged.
    """
    if index is None:
        raise OptionError("verify", f"'{path}' is not an index file")
    verify(index, map_function)


def require_reference(
    index: IndexFile, reference: Reference, map_function: Callable[..., Iterable[Any]] = map
) -> None:
    """Refuse a verified index that was built from another reference than this one.

    The message of the `InputError` names the first difference.
    """
    if digest_of(reference, map_function) == index.header.digest:
        return
    difference = first_difference(index.original, reference)
    raise InputError(f"the index is not of '{reference.path}': {difference}", index.path)


def first_difference(indexed: Reference, other: Reference) -> str:
    """Describe the first difference between the reference of an index and another.

    That is the numbers of records, or the name, the length, or the position of the first different
    base, counted from 1, of the first different record.
    """
    if len(indexed.names) != len(other.names):
        records = pluralize(len(indexed.names), "record")
        return f"the index has {records}, and the file {len(other.names):,}"
    different = _first_different_code(indexed, other)
    for number, (name, other_name) in enumerate(zip(indexed.names, other.names, strict=True)):
        shown = f"record {number + 1:,}"
        if name != other_name:
            return f"{shown} is '{_text(name)}' in the index, and '{_text(other_name)}' in the file"
        lengths = int(indexed.record_lengths[number]), int(other.record_lengths[number])
        shown = f"record '{_text(name)}'"
        if lengths[0] != lengths[1]:
            bases = pluralize(lengths[0], "base")
            return f"{shown} has {bases} in the index, and {lengths[1]:,} in the file"
        position = different - int(indexed.record_starts[number])
        if position < lengths[0]:
            return f"{shown} differs from its base {position + 1:,} on"
    raise ValueError("the references do not differ")


def _first_different_code(one: Reference, other: Reference) -> int:
    """Return the first index at which the codes differ, or the length of the shorter array."""
    size = min(one.codes.size, other.codes.size)
    for begin in range(0, size, PIECE_BYTES):
        end = min(begin + PIECE_BYTES, size)
        differs = one.codes[begin:end] != other.codes[begin:end]
        if differs.any():
            return begin + int(np.argmax(differs))
    return size


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
