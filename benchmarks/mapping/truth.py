"""Where simulated reads come from, as their names tell it."""

from __future__ import annotations

from typing import NamedTuple

FIELDS_BEHIND_CONTIG = 9
"""Two positions, two strands, two marks of randomness, two counts of errors, and a number."""


class Span(NamedTuple):
    """A half-open stretch of a reference.

    Attributes
    ----------
    contig : str
        The name of the record.
    start, end : int
        The first base, from 0, and the one after the last.
    reverse : bool
        Whether the read is the reverse complement of these bases.
    """

    contig: str
    start: int
    end: int
    reverse: bool


def true_span(name: str, mate: int, read_bases: int) -> Span | None:
    """Return where a read that ``dwgsim`` made comes from.

    Parameters
    ----------
    name : str
        The name of the pair, ``CONTIG_START1_START2_STRAND1_STRAND2_RANDOM1_RANDOM2_..._..._N``.
        Starts count from 1, are the leftmost base of each mate on the reference without the
        mutations, whatever its strand; strand 1 is the reverse one.
    mate : int
        1 or 2.
    read_bases : int
        The length of the read. Its insertions and deletions are not in the name, so the end of
        the span is the start and the length, some bases off in a few reads.

    Returns
    -------
    Span or None
        None of a read of random bases, which comes from nowhere.

    Raises
    ------
    ValueError
        If it is not such a name.
    """
    words = name.rsplit("_", FIELDS_BEHIND_CONTIG)
    if len(words) != FIELDS_BEHIND_CONTIG + 1:
        raise ValueError(f"not a read name of dwgsim: {name}")
    if words[4 + mate] == "1":
        return None
    start = int(words[mate]) - 1
    return Span(words[0], start, start + read_bases, words[2 + mate] == "1")


def overlaps(first: Span, second: Span, share: float = 0.1) -> bool:
    """Return whether two spans share more than ``share`` of what they cover together."""
    if first.contig != second.contig:
        return False
    common = min(first.end, second.end) - max(first.start, second.start)
    together = max(first.end, second.end) - min(first.start, second.start)
    return common > share * together
