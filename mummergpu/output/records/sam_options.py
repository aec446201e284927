"""The options of SAM, BAM and CRAM."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mummergpu.errors import OptionError
from mummergpu.input.files import STANDARD_INPUT

_FIELD: Final = re.compile(r"[A-Za-z][A-Za-z0-9]:[ -~]+")
_OPTION: Final = "--read-group"
_COMPRESSED: Final = frozenset({".gz", ".bgz", ".bz2", ".xz", ".zst"})
_NAMELESS: Final = "reads"


@dataclass(frozen=True)
class SamOptions:
    """What the user decides about the alignments of SAM, BAM and CRAM.

    Attributes
    ----------
    read_group : ReadGroup or None
        The read group of all queries.
    most_hits : int or None
        The most alignments of a query, its longest ones; None for all.
    secondary_bases : bool
        Whether secondary alignments have the bases of the query, as primary ones do.
    """

    read_group: ReadGroup | None = None
    most_hits: int | None = None
    secondary_bases: bool = False


@dataclass(frozen=True)
class ReadGroup:
    """A read group.

    Attributes
    ----------
    line : str
        Its line of the header, without the line end.
    name : str
        Its ID.
    """

    line: str
    name: str


def read_group_of(text: str) -> ReadGroup:
    r"""Return the read group that a line of the header describes, as for ``bwa mem -R``.

    Parameters
    ----------
    text : str
        ``@RG``, ``ID:`` and more fields, between tabs; ``\t`` stands for a tab.

    Returns
    -------
    ReadGroup
        The read group.

    Raises
    ------
    OptionError
        If the line is none of a read group.

    Examples
    --------
    >>> read_group_of("@RG\\tID:lane1\\tSM:sample").name
    'lane1'
    """
    line = text.replace("\\t", "\t")
    mark, *fields = line.split("\t")
    if mark != "@RG":
        raise OptionError(_OPTION, f"'{text}' does not begin with '@RG' and a tab, written \\t")
    for field in fields:
        if not _FIELD.fullmatch(field):
            raise OptionError(_OPTION, f"'{field}' is no field such as ID:lane1")
    tags = [field[:2] for field in fields]
    if len(set(tags)) < len(tags):
        raise OptionError(_OPTION, f"'{text}' has a field twice")
    if "ID" not in tags:
        raise OptionError(_OPTION, f"'{text}' has no ID")
    return ReadGroup(line, fields[tags.index("ID")][3:])


def usual_read_group(query_paths: Sequence[str]) -> ReadGroup:
    r"""Return the read group of a run whose user names none.

    Picard and GATK refuse files without one. They also want a platform, which nobody has told; its
    value is the one that they take for an unknown platform.

    Parameters
    ----------
    query_paths : sequence of str
        The files of the queries; the first one names the group and the sample.

    Returns
    -------
    ReadGroup
        The read group.

    Examples
    --------
    >>> usual_read_group(["lanes/lane1.fq.gz"]).line.split("\t")
    ['@RG', 'ID:lane1', 'SM:lane1', 'PL:OTHER']
    """
    stem, suffix = os.path.splitext(os.path.basename(query_paths[0]))
    if suffix in _COMPRESSED:
        stem, suffix = os.path.splitext(stem)
    name = re.sub("[^!-~]", "_", stem)
    if query_paths[0] == STANDARD_INPUT or not name:
        name = _NAMELESS
    return ReadGroup(f"@RG\tID:{name}\tSM:{name}\tPL:OTHER", name)


def check_groups(lines: Sequence[bytes], own: ReadGroup) -> None:
    """Refuse a read group that has the name of another one, which the header of reads tells of.

    Parameters
    ----------
    lines : sequence of bytes
        The lines of the header about read groups.
    own : ReadGroup
        The group of the reads without one.

    Raises
    ------
    OptionError
        If there is another group of that name.
    """
    if any(f"ID:{own.name}".encode() in line.split(b"\t") for line in lines):
        raise OptionError(
            _OPTION,
            f"some reads are of a read group '{own.name}', as their header says, and others of "
            "none: name one read group for all",
        )
