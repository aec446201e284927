"""The options of SAM and BAM of matches, and read groups."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

from mummergpu.errors import OptionError
from mummergpu.input.bytes.files import STANDARD_INPUT
from mummergpu.runtime.frozen import frozen

_FIELD: Final = re.compile(r"[A-Za-z][A-Za-z0-9]:[ -~]+")
_OPTION: Final = "read_group"
_COMPRESSED: Final = frozenset({".gz", ".bgz", ".bz2", ".xz", ".zst"})
_FASTQ: Final = frozenset({".fq", ".fastq"})
_NAMELESS: Final = "reads"

_READ_MARK: Final = re.compile(r"[._-][Rr][12](?:_[0-9]{3})?$")
_NUMBER_MARK: Final = re.compile(r"[._][12]$")
"""What ends the name of a file of mates: ``.R1``, ``_R1_001`` of Illumina, or ``_1`` of the SRA."""


@frozen
class SamOptions:
    """What the user decides about the matches in SAM and BAM.

    Attributes
    ----------
    read_group : ReadGroup or None
        The read group of all queries.
    max_hits : int or None
        The most alignments of a query, its longest ones; None for all.
    secondary_bases : bool
        Whether secondary alignments have the bases of the query, as primary ones do.
    """

    read_group: ReadGroup | None = None
    max_hits: int | None = None
    secondary_bases: bool = False


@frozen
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
        The files of the queries. The first one names the group; and the sample, without what tells
        first mates from second ones.

    Returns
    -------
    ReadGroup
        The read group.

    Examples
    --------
    >>> usual_read_group(["lanes/lane1_R1.fq.gz"]).line.split("\t")
    ['@RG', 'ID:lane1_R1', 'SM:lane1', 'PL:OTHER']
    """
    names = [_name_and_suffix(path) for path in query_paths[:2]]
    name, suffix = names[0]
    if query_paths[0] == STANDARD_INPUT or not name:
        name = _NAMELESS
    mark = _READ_MARK.search(name)
    number = _NUMBER_MARK.search(name)
    if mark is None and number is not None:
        # `sample_1.bam` and `sample.1.fq` may be the first of many samples.
        has_mates = sorted(names) == [(name[:-1] + digit, suffix) for digit in "12"]
        if has_mates or (suffix in _FASTQ and number[0].startswith("_")):
            mark = number
    sample = name[: mark.start()] if mark else name
    return ReadGroup(f"@RG\tID:{name}\tSM:{sample or name}\tPL:OTHER", name)


def _name_and_suffix(path: str) -> tuple[str, str]:
    """Return the name of a file as a header may have it, and what tells its format."""
    stem, suffix = os.path.splitext(os.path.basename(path))
    if suffix in _COMPRESSED:
        stem, suffix = os.path.splitext(stem)
    return re.sub("[^!-~]", "_", stem), suffix


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
