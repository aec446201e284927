"""Reads the primary records of SAM, BAM and CRAM: as much of them as judging needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from mapping.truth import Span

UNMAPPED, REVERSE, SECOND_MATE, NOT_PRIMARY = 0x4, 0x10, 0x80, 0x900
FIELDS = 11
RUN = re.compile(r"(\d+)([MIDNSHP=X])")
TAKES_REFERENCE = frozenset("MDN=X")


class Placement(NamedTuple):
    """What the primary record of a read tells.

    Attributes
    ----------
    name : str
        The name of the read, without ``/1`` or ``/2``.
    mate : int
        2 for the second of a pair; 1 for the first, and for a read without a mate.
    read_bases : int
        The length of the read.
    span : Span or None
        Where it lies; None if it is unmapped.
    quality : int
        The mapping quality.
    cigar : str
        The alignment.
    tags : str
        The optional fields, with tabs.
    """

    name: str
    mate: int
    read_bases: int
    span: Span | None
    quality: int
    cigar: str
    tags: str

    def tag(self, name: str) -> str:
        """Return the value of an optional field, or ``-``."""
        found = next((text for text in self.tags.split("\t") if text.startswith(name)), None)
        return found.split(":", 2)[2] if found else "-"


def reference_bases(cigar: str) -> int:
    """Return how many bases of the reference an alignment covers."""
    return sum(int(count) for count, kind in RUN.findall(cigar) if kind in TAKES_REFERENCE)


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file in any of the three formats, the header's first."""
    if path.suffix == ".sam":
        with open(path, encoding="ascii", errors="replace") as file:
            yield from file
        return
    import pysam

    with pysam.AlignmentFile(str(path), check_sq=False) as alignments:
        yield from str(alignments.header).splitlines()
        for record in alignments:
            yield record.to_string()


def primary_records(lines: Iterable[str]) -> Iterator[Placement]:
    """Yield the primary record of each read.

    Parameters
    ----------
    lines : iterable of str
        Lines of SAM.

    Yields
    ------
    Placement
        In the order of the lines.

    Raises
    ------
    ValueError
        If a line has too few fields, or a record has no sequence.
    """
    for line in lines:
        if line.startswith("@"):
            continue
        words = line.rstrip("\n").split("\t", FIELDS)
        if len(words) < FIELDS:
            raise ValueError(f"not a line of SAM: {line!r}")
        flag = int(words[1])
        if flag & NOT_PRIMARY:
            continue
        if words[9] == "*":
            raise ValueError(f"the primary record of {words[0]} has no sequence")
        span = None
        if not flag & UNMAPPED:
            start = int(words[3]) - 1
            end = start + reference_bases(words[5])
            span = Span(words[2], start, end, bool(flag & REVERSE))
        name = words[0].removesuffix("/1").removesuffix("/2")
        mate = 2 if flag & SECOND_MATE else 1
        tags = words[FIELDS] if len(words) > FIELDS else ""
        yield Placement(name, mate, len(words[9]), span, int(words[4]), words[5], tags)


def program_version(path: Path) -> str:
    """Return the name and version of the program that wrote a file, as its header has them."""
    for line in read_lines(path):
        if not line.startswith("@"):
            break
        if line.startswith("@PG"):
            fields = dict(word.split(":", 1) for word in line.rstrip("\n").split("\t")[1:])
            return f"{fields.get('PN', fields['ID'])} {fields.get('VN', '')}".strip()
    return ""
