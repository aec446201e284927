"""The files of reads of a user: single reads or pairs, in one file or in two."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from mummergpu.errors import InputError
from mummergpu.input.bytes.file_part import FileRange
from mummergpu.runtime.frozen import frozen

if TYPE_CHECKING:
    from mummergpu.input.blocks.memory import ReadsInMemory


@frozen
class ReadFile:
    """A file of reads.

    Attributes
    ----------
    path : str
        The file, "-" being standard input: FASTQ, FASTA, SAM, BAM or CRAM.
    interleaved : bool
        Whether mates alternate. The flags of SAM, BAM and CRAM say so themselves.
    ignores_flags : bool
        Whether to ignore the flags of SAM, BAM and CRAM for mates, and for which mate is the first.
    part : FileRange or None
        The range of records to read; None for all.
    """

    path: str
    interleaved: bool = False
    ignores_flags: bool = False
    part: FileRange | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The path of the file."""
        return (self.path,)

    @property
    def parts(self) -> tuple[FileRange | None, ...]:
        """The range to read."""
        return (self.part,)


@frozen
class MateFiles:
    """Two files: the first mates, and the second mates in the same order.

    Attributes
    ----------
    first, second : str
        The files, of the formats of `ReadFile`.
    parts : tuple of FileRange or None
        The records that are read of each; None for all.

    Raises
    ------
    InputError
        If both are the same file.
    """

    first: str
    second: str
    parts: tuple[FileRange | None, FileRange | None] = (None, None)

    def __post_init__(self) -> None:
        if self.first == self.second == "-" or _are_same_file(self.first, self.second):
            message = "the same file for both mates (if they alternate in it, name it once)"
            raise InputError(message, self.second)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the two files."""
        return self.first, self.second


ReadSource: TypeAlias = "ReadFile | MateFiles | ReadsInMemory"


def _are_same_file(one: str, other: str) -> bool:
    with suppress(OSError, ValueError):
        both = os.stat(one), os.stat(other)
        return stat.S_ISREG(both[0].st_mode) and os.path.samestat(*both)
    return False
