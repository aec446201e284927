"""The rule of `sequence.seed_rule` in plain Python, for short references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mummergpu.sequence.seed_rule import MAX_SEEDS, SPREAD_BITS, SPREAD_FACTOR

Match = tuple[int, int, int]
"""Where it begins in the query and in the joined reference, and its bases."""


class Chosen(NamedTuple):
    """The matches that are kept, how many seeds are taken, and whether places are spread."""

    matches: list[Match]
    seeds: int
    is_spread: bool


def occurrences(records: Sequence[str], seed: str) -> int:
    """How often a seed occurs, also where occurrences overlap."""
    found = 0
    for record in records:
        at = record.find(seed)
        while at >= 0:
            found += 1
            at = record.find(seed, at + 1)
    return 0 if "N" in seed else found


def covers(match: Match, begin: int, bases: int) -> bool:
    """Whether a match has all bases of a part of its query."""
    return match[0] <= begin and begin + bases <= match[0] + match[2]


def spread_key(diagonal: int) -> int:
    return diagonal * SPREAD_FACTOR % (1 << SPREAD_BITS)


def chosen(
    records: Sequence[str], query: str, matches: Sequence[Match], window: int, most: int
) -> Chosen:
    """What is kept of all matches of a query on a strand that have at least a window's bases."""

    def kept(begins: Sequence[int], bases: int) -> list[Match]:
        return [row for row in matches if any(covers(row, begin, bases) for begin in begins)]

    windows = range(0, len(query) - window + 1, window)
    if len(kept(windows, window)) <= most:
        return Chosen(kept(windows, window), len(windows), False)
    windows = windows[:MAX_SEEDS]
    counts = {at: occurrences(records, query[at : at + window]) for at in windows}
    rarest, total = [], 0
    for at in sorted(windows, key=lambda at: (counts[at], at)):
        total += counts[at]
        if total > most:
            break
        rarest.append(at)
    for number in range(len(windows) - 1, len(rarest), -1):
        bases = len(query) // number
        begins = range(0, number * bases, bases)
        if sum(occurrences(records, query[at : at + bases]) for at in begins) <= most:
            return Chosen(kept(begins, bases), number, False)
    if rarest:
        return Chosen(kept(rarest, window), len(rarest), False)
    whole = kept([0], len(query))
    bits = SPREAD_BITS
    while bits > 0 and sum(spread_key(row[1] - row[0]) >> bits == 0 for row in whole) > most:
        bits -= 1
    return Chosen([row for row in whole if spread_key(row[1] - row[0]) >> bits == 0], 0, True)
