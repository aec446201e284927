"""What users decide about the rows of a run: text, read groups, styles of records, and sorting."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from typing import Final

from mummergpu.errors import OptionError
from mummergpu.input.bytes.files import STANDARD_INPUT
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import check_bool, keep_values, positive, texts


@frozen
class TextStyle:
    """The options of MUMmer that change the text but not the matches.

    Attributes
    ----------
    forward_coordinates : bool
        Query positions of reverse matches are given on the forward strand (``-c``): the
        forward position of the first base of the match on the reverse complement.
    four_columns : bool
        Rows name the record even if the reference has just one (``-F``).
    show_query_lengths : bool
        Headers end with the length of the query (``-L``).
    show_sequences : bool
        A line with the bases of the match, in lower case, follows each row (``-s``).
    three_columns_for : str
        The program that skips rows with the name of a record, so that the reference must have just
        one; empty if none does.
    """

    forward_coordinates: bool = False
    four_columns: bool = False
    show_query_lengths: bool = False
    show_sequences: bool = False
    three_columns_for: str = ""


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
    """A read group: its line of the header, without the line end, and its ID."""

    line: str
    name: str


def read_group_of(text: str) -> ReadGroup:
    r"""Return the read group that a line of the header describes, as for ``bwa mem -R``.

    The line has ``@RG``, ``ID:`` and more fields, between tabs; ``\t`` stands for a tab.
    `OptionError` if it is none of a read group.

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

    Picard and GATK refuse files without one. They also want a platform; its value is the one that
    they take for an unknown platform. The first file of queries names the group and, without the
    mark of first mates, the sample.

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
    """Return the name of a file as a header may have it, and the end that stands for its format."""
    stem, suffix = os.path.splitext(os.path.basename(path))
    if suffix in _COMPRESSED:
        stem, suffix = os.path.splitext(stem)
    return re.sub("[^!-~]", "_", stem), suffix


def check_groups(lines: Sequence[bytes], own: ReadGroup) -> None:
    """Raise OptionError if one of the lines of read groups has the name of another group."""
    if any(f"ID:{own.name}".encode() in line.split(b"\t") for line in lines):
        raise OptionError(
            _OPTION,
            f"some reads are of a read group '{own.name}', as their header says, and others of "
            "none: name one read group for all",
        )


EXTRA_TAGS: Final = ("tp", "de", "cs")
"""The tags of minimap2 that alignments of reads have if they are asked for, in their order."""


@frozen
class RecordStyle:
    """How alignments of reads are written, where other mappers leave it to their users.

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
        Whether operations distinguish equal bases from different ones (= and X), as with
        ``--eqx``; not for CRAM.
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
            **{name: check_bool(name, getattr(self, name)) for name in flags},
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


DEFAULT_MEMORY: Final = 4 << 30
"""About the memory that records may take before they are written to temporary files."""


@frozen
class SortOptions:
    """What is done with the alignments of a whole file before it is written.

    They are sorted by their places, equal ones in the order of the reads, and duplicates are
    flagged (`duplicates.DuplicateFinder`). Records may take about `memory_bytes` before they are
    written to temporary files in a folder, by default that of the system; `threads` join and
    compress them.
    """

    by_coordinate: bool = True
    mark_duplicates: bool = False
    memory_bytes: int = DEFAULT_MEMORY
    folder: str | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        sort, marks = (
            check_bool("sort", self.by_coordinate),
            check_bool("mark_duplicates", self.mark_duplicates),
        )
        keep_values(self, by_coordinate=sort, mark_duplicates=marks)
        keep_values(self, threads=positive("threads", self.threads))

    @property
    def if_any(self) -> SortOptions | None:
        """These options; None if they ask for nothing."""
        return self if self.by_coordinate or self.mark_duplicates else None
