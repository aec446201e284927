"""The reference: its records as one array of codes, and the pages it is cut into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.errors import InputError
from mummergpu.input.files import Input
from mummergpu.input.formats import Format
from mummergpu.input.records import CHUNK_SIZE, UNLIMITED, Limits, RecordReader
from mummergpu.sequence.codes import BREAK, CodeArray, with_margins

_COUNT_STEP: Final = 1 << 18
"""Codes that are looked at together: what is made of them stays in the caches."""


@dataclass(frozen=True)
class Reference:
    """All records of a reference, joined by one break each.

    Attributes
    ----------
    path : str
        The file as the user named it.
    codes : ndarray, dtype=uint8, shape=(n_bases + n_records - 1,)
        The base codes; between two records lies one `codes.BREAK`.
    record_starts : ndarray, dtype=int64, shape=(n_records,)
        Where in `codes` each record begins.
    record_lengths : ndarray, dtype=int64, shape=(n_records,)
        The bases of each record; a record may be empty.
    names : tuple of bytes
        The names of the records, cut at the first white space.
    padded : ndarray, dtype=uint8, shape=(codes.size + 2 * MARGIN,), or None
        The array that `codes` is a part of, with breaks before and after them, if there is one.
    """

    path: str
    codes: CodeArray
    record_starts: npt.NDArray[np.int64]
    record_lengths: npt.NDArray[np.int64]
    names: tuple[bytes, ...]
    padded: CodeArray | None = None

    @cached_property
    def padded_codes(self) -> CodeArray:
        """The codes with `codes.MARGIN` breaks before and after them; never a second copy."""
        return with_margins(self.codes) if self.padded is None else self.padded

    @cached_property
    def base_count(self) -> int:
        """How many of the codes are A, C, G or T: no other can be part of a match."""
        return sum(
            int(np.count_nonzero(self.codes[begin : begin + _COUNT_STEP] != BREAK))
            for begin in range(0, self.codes.size, _COUNT_STEP)
        )


def read_reference(
    path: str, chunk_size: int = CHUNK_SIZE, *, any_letters: bool = False
) -> Reference:
    """Read a reference from FASTA, plain or gzipped.

    Parameters
    ----------
    path : str
        The file, "-" being standard input.
    chunk_size : int, default CHUNK_SIZE
        Bytes of text that are parsed at once.
    any_letters : bool, default False
        Take records whose letters are mostly not those of DNA or RNA, too.

    Returns
    -------
    Reference
        All records of the file, empty ones too.

    Raises
    ------
    InputError
        If the file cannot be read, is not FASTA or not DNA, or has no base.

    Notes
    -----
    Memory: a byte a base; half as much again while a gzipped file or a pipe is read.
    """
    with Input(path) as file:
        if file.format is not Format.FASTA:
            raise InputError(f"a reference must be FASTA, and this is {file.format.value}", path)
        expected = 0 if file.is_compressed else file.size or 0
        limits = Limits(UNLIMITED, UNLIMITED, UNLIMITED)
        reader = RecordReader(file, False, limits, True, expected, any_letters, chunk_size)
        records = reader.next_block()
    no_base = InputError("the reference holds no A, C, G or T", path)
    if records is None:
        raise no_base
    text = records.names.tobytes()
    bounds = records.name_offsets.tolist()
    reference = Reference(
        path,
        records.codes,
        records.offsets[:-1],
        np.diff(records.offsets) - 1,
        tuple(text[begin:end] for begin, end in pairwise(bounds)),
        records.padded_codes,
    )
    if reference.base_count == 0:
        raise no_base
    return reference
