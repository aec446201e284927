"""How records of mapped reads are told: what mappers leave to their users."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from mummergpu.errors import OptionError
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import keep_values, texts, truth

EXTRA_TAGS: Final = ("tp", "de", "cs")
"""The tags of minimap2 that alignments of reads have if they are asked for, in their order."""


@frozen
class RecordStyle:
    """How alignments of reads are told, where other mappers leave it to their users.

    Attributes
    ----------
    splits_as_secondary : bool
        Whether the further parts of split reads have the flag of secondary alignments in SAM, as
        with ``-M``.
    soft_clips : bool
        Whether supplementary alignments have all bases of their reads, as with ``-Y``.
    secondary_bases : bool
        Whether secondary alignments have the bases and qualities of their reads, as with
        ``--secondary-seq``.
    equal_bases : bool
        Whether operations tell equal bases from different ones (= and X), as with ``--eqx``; not
        for CRAM.
    mapped_only : bool
        Whether reads are left out that are placed nowhere, and whose mates are not either, as with
        ``--no-unal``.
    tags : sequence of str
        Tags of minimap2 that are written, too: ``tp``, ``de``, ``cs``.
    header_lines : sequence of str
        More lines of the header, such as ``@CO``, a tab and a text.

    Raises
    ------
    OptionError
        If there is no such tag, or a line is none of a header.

    Examples
    --------
    >>> import mummergpu
    >>> mummergpu.RecordStyle(tags=["cs", "tp"]).tags
    ('tp', 'cs')
    """

    splits_as_secondary: bool = False
    soft_clips: bool = False
    equal_bases: bool = False
    mapped_only: bool = False
    tags: Sequence[str] = ()
    header_lines: Sequence[str] = ()
    secondary_bases: bool = False

    def __post_init__(self) -> None:
        flags = (
            *("splits_as_secondary", "soft_clips", "equal_bases", "mapped_only"),
            "secondary_bases",
        )
        keep_values(
            self,
            **{name: truth(name, getattr(self, name)) for name in flags},
            tags=_extra_tags(texts("tags", self.tags)),
            header_lines=_checked_lines(texts("header_lines", self.header_lines)),
        )

    @property
    def header_bytes(self) -> list[bytes]:
        """The lines of the header as files have them, without line ends."""
        return [line.encode() for line in self.header_lines]

    def check_formats(self, formats: Collection[str]) -> None:
        """Raise OptionError if a format cannot have this style."""
        if self.equal_bases and "cram" in formats:
            text = "CRAM has no operations = and X: write SAM, BAM or PAF"
            raise OptionError("equal_bases", text)


def _extra_tags(asked: Sequence[str]) -> tuple[str, ...]:
    """Return those of `EXTRA_TAGS` that are asked for."""
    for tag in asked:
        if tag not in EXTRA_TAGS:
            known = "', '".join(EXTRA_TAGS)
            raise OptionError("tags", f"'{tag}' is none of '{known}'")
    return tuple(tag for tag in EXTRA_TAGS if tag in asked)


_HEADER_LINE: Final = re.compile(r"@[A-Za-z]{2}(?:\t[A-Za-z][A-Za-z0-9]:[ -~]+)+|@CO\t.*")
_OWN_LINES: Final = {
    "@HD": "it is written already",
    "@SQ": "the records of the reference have theirs",
    "@RG": "-R names read groups",
}
"""What of a header is not the user's, and why."""


def _checked_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return lines for the header; refuse what makes no valid header."""
    for line in lines:
        if not _HEADER_LINE.fullmatch(line):
            raise OptionError(
                "header_lines", f"'{line}' is no line of a header, such as @CO and a text"
            )
        if why := _OWN_LINES.get(line[:3]):
            raise OptionError("header_lines", f"'{line[:3]}': {why}")
        if line.startswith("@PG") and "ID:mummergpu" in line.split("\t"):
            raise OptionError("header_lines", "the ID mummergpu of @PG is that of this run")
    return lines


USUAL_STYLE: Final = RecordStyle()
