"""Lists of single reads to study: those that a mapper has wrong, those that two differ in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mapping.judge import Verdict
from mapping.sam import Placement
from mapping.truth import Span

WRONG_HEAD = "read\tmate\ttruth\tplaced\tmapq\tcigar\tAS\tXS"
PLACED = "placed\tmapq\tcigar\tAS\tXS"


def span_text(span: Span | None) -> str:
    """Return ``contig:start-end:strand``, counting from 1, or ``-``."""
    if span is None:
        return "-"
    return f"{span.contig}:{span.start + 1}-{span.end}:{'-' if span.reverse else '+'}"


def placed_text(placement: Placement | None) -> str:
    """Return the five columns of a placement: where, quality, alignment, and two scores."""
    if placement is None:
        return "-\t-\t-\t-\t-"
    where = span_text(placement.span)
    scores = f"{placement.tag('AS')}\t{placement.tag('XS')}"
    return f"{where}\t{placement.quality}\t{placement.cigar}\t{scores}"


def wrong_lines(found: Iterable[Verdict], least: int = 0) -> Iterator[str]:
    """Yield a line for each read that is mapped wrongly or not at all, under a head.

    Parameters
    ----------
    found : iterable of Verdict
        The verdicts of one mapper.
    least : int
        The lowest mapping quality of the reads that are listed.
    """
    yield WRONG_HEAD
    for placement, truth, right in found:
        if not right and placement.quality >= least:
            read = f"{placement.name}\t{placement.mate}\t{span_text(truth)}"
            yield f"{read}\t{placed_text(placement)}"


def differing_lines(
    first: Iterable[Verdict], second: Iterable[Verdict], least: int = 0
) -> Iterator[str]:
    """Yield a line for each read that one mapper has right and the other not, under a head.

    Parameters
    ----------
    first, second : iterable of Verdict
        The verdicts of two mappers on the same reads, in any order. A read that one of them
        left out is one that it does not have right.
    least : int
        The lowest mapping quality, in either file, of the reads that are listed.

    Yields
    ------
    str
        Columns apart by tabs: the read, its mate, which of the two has it right (1 or 2), its
        truth, and the placement of the first and of the second.
    """
    columns = [f"{number}_{name}" for number in (1, 2) for name in PLACED.split("\t")]
    yield "\t".join(["read", "mate", "right", "truth", *columns])
    others = {(verdict.placement.name, verdict.placement.mate): verdict for verdict in second}
    for mine in first:
        other = others.pop((mine.placement.name, mine.placement.mate), None)
        if mine.right != (other is not None and other.right) and _quality(mine, other) >= least:
            yield _both(mine, other, "1" if mine.right else "2")
    for other in others.values():
        if other.right and _quality(None, other) >= least:
            yield _both(None, other, "2")


def _quality(mine: Verdict | None, other: Verdict | None) -> int:
    return max(each.placement.quality for each in (mine, other) if each)


def _both(mine: Verdict | None, other: Verdict | None, right: str) -> str:
    known = mine or other
    assert known is not None
    places = "\t".join(placed_text(each.placement if each else None) for each in (mine, other))
    name, mate = known.placement.name, known.placement.mate
    return f"{name}\t{mate}\t{right}\t{span_text(known.truth)}\t{places}"
