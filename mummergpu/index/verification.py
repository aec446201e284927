"""Reading an index file whole: whether it is as it was written, and of which reference it is.

Opening an index file checks only what takes no time that grows with the reference
(`index.file`). What stands here reads every byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mummergpu.errors import InputError, OptionError
from mummergpu.index.checksums import PIECE_BYTES, digest_of
from mummergpu.index.file import IndexFile
from mummergpu.input.reference import Reference


def verify(index: IndexFile, map_function: Callable[..., Iterable[Any]] = map) -> None:
    """Refuse an index file that is not as it was written.

    Parameters
    ----------
    index : IndexFile
        The index.
    map_function : callable
        A kind of map: the sections are read by independent tasks.

    Raises
    ------
    InputError
        If a section does not have its checksum, or the reference does not have the digest that
        the header names.
    """
    damaged = index.damaged_sections(map_function)
    if damaged:
        raise InputError(f"the index is damaged in its sections {', '.join(damaged)}", index.path)
    if digest_of(index.reference, map_function) != index.header.digest:
        raise InputError("the index is not of the reference that it names", index.path)


def verify_for_run(
    index: IndexFile | None, path: str, map_function: Callable[..., Iterable[Any]] = map
) -> None:
    """Verify what a run was given as its reference.

    Parameters
    ----------
    index : IndexFile or None
        The index; None if the reference is no index file.
    path : str
        The file as the user named it.
    map_function : callable
        As in `verify`.

    Raises
    ------
    OptionError
        If there is no index: a FASTA file has no checksums.
    InputError
        If the index is damaged.
    """
    if index is None:
        raise OptionError("--verify", f"'{path}' is not an index file")
    verify(index, map_function)


def require_reference(
    index: IndexFile, reference: Reference, map_function: Callable[..., Iterable[Any]] = map
) -> None:
    """Refuse an index that is of another reference.

    Parameters
    ----------
    index : IndexFile
        The index; its own reference must have been verified.
    reference : Reference
        What it should be of.
    map_function : callable
        A kind of map, for the pieces of the reference.

    Raises
    ------
    InputError
        Names the first difference.
    """
    if digest_of(reference, map_function) == index.header.digest:
        return
    difference = first_difference(index.reference, reference)
    raise InputError(f"the index is not of '{reference.path}': {difference}", index.path)


def first_difference(indexed: Reference, other: Reference) -> str:
    """Say in what two references differ first.

    Parameters
    ----------
    indexed, other : Reference
        The reference of an index, and another that does not have its digest.

    Returns
    -------
    str
        The number of records; else, of the first record that differs, its name, its length in
        bases, or the position of its first base that differs, counted from 1.
    """
    if len(indexed.names) != len(other.names):
        return f"the index has {len(indexed.names):,} records, and the file {len(other.names):,}"
    different = _first_different_code(indexed, other)
    for number, (name, other_name) in enumerate(zip(indexed.names, other.names, strict=True)):
        shown = f"record {number + 1:,}"
        if name != other_name:
            return f"{shown} is '{_text(name)}' in the index, and '{_text(other_name)}' in the file"
        lengths = int(indexed.record_lengths[number]), int(other.record_lengths[number])
        shown = f"record '{_text(name)}'"
        if lengths[0] != lengths[1]:
            return f"{shown} has {lengths[0]:,} bases in the index, and {lengths[1]:,} in the file"
        position = different - int(indexed.record_starts[number])
        if position < lengths[0]:
            return f"{shown} differs from its base {position + 1:,} on"
    raise ValueError("the references do not differ")


def _first_different_code(one: Reference, other: Reference) -> int:
    """Return the first place at which the codes differ, or the length of the shorter codes."""
    size = min(one.codes.size, other.codes.size)
    for begin in range(0, size, PIECE_BYTES):
        end = min(begin + PIECE_BYTES, size)
        differs = one.codes[begin:end] != other.codes[begin:end]
        if differs.any():
            return begin + int(np.argmax(differs))
    return size


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
