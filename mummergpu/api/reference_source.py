"""The reference of a user, in a file or in memory, as what an index is built of."""

from __future__ import annotations

import os
from collections.abc import Iterable

from mummergpu.api.requests import PathLike
from mummergpu.errors import OptionError
from mummergpu.index.format import is_index
from mummergpu.input.memory import NamedSequence, reference_in_memory
from mummergpu.input.reading_threads import ReadingThreads
from mummergpu.input.reference import Reference, read_reference


def source_of(
    reference: PathLike | Iterable[NamedSequence], any_letters: bool, threads: int
) -> Reference:
    """Read a reference.

    Parameters
    ----------
    reference : path, or iterable of tuple
        A FASTA file, plain or compressed, or names and sequences.
    any_letters : bool
        Accept records whose letters are mostly not DNA or RNA.
    threads : int
        The number of threads that read.

    Returns
    -------
    Reference
        Its records.

    Raises
    ------
    InputError
        If it cannot be read, or is not DNA or RNA.
    OptionError
        If the file is an index.
    """
    if not isinstance(reference, str | os.PathLike):
        return reference_in_memory(reference, any_letters=any_letters)
    path = os.fspath(reference)
    if is_index(path):
        raise OptionError("reference", f"'{path}' is an index already; use Index.open")
    with ReadingThreads(threads) as reading:
        return read_reference(path, any_letters=any_letters, threads=reading)
