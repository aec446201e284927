"""The rule of `sequence.seed_rule` in plain Python, for short references."""

from typing import NamedTuple

from mummergpu.sequence import seed_rule

Match = tuple[int, int, int]
"""Where it begins in the query and in the joined reference, and its bases."""


class Chosen(NamedTuple):
    """The matches that are kept, those of how many seeds, and whether places are spread."""

    matches: list[Match]
    seeds: int
    survives_thinning: bool


def occurrences(records, seed):
    """How often a seed occurs, also where occurrences overlap."""
    found = 0
    for record in records:
        at = record.find(seed)
        while at >= 0:
            found += 1
            at = record.find(seed, at + 1)
    return 0 if "N" in seed else found


def covers(match, begin, bases):
    """Whether a match has all bases of a part of its query."""
    return match[0] <= begin and begin + bases <= match[0] + match[2]


def is_near(records, query, match):
    """Whether a query differs in few bases from the reference on the diagonal of a match."""
    first = match[1] - match[0]
    joined = "#" * len(query) + "#".join(records) + "#" * len(query)
    there = joined[len(query) + first : 2 * len(query) + first]
    equal = sum(one == other != "N" for one, other in zip(query, there, strict=True))
    return len(query) - equal <= seed_rule.NEAR_EDITS


def thinning_hash(position):
    return position * seed_rule.THINNING_FACTOR % (1 << seed_rule.THINNING_BITS)


def chosen(records, query, matches, window, most, any_match=False):
    """What is kept of all matches of a query on a strand that have at least a window's bases.

    With `any_match` those count too that contain no window.
    """

    def kept(begins, bases):
        return [row for row in matches if any(covers(row, begin, bases) for begin in begins)]

    def counts_of(begins, bases):
        return [occurrences(records, query[at : at + bases]) for at in begins]

    windows = range(0, len(query) - window + 1, window)
    all_windows = len(windows)
    with_window = list(matches) if any_match else kept(windows, window)
    windows = windows[: seed_rule.MAX_SEEDS]
    too_many = len(with_window) > most * (seed_rule.ANYWHERE if any_match else 1)
    if any_match and len(windows) > 0:
        parts = range(0, len(query) - window + 1, window // 2)
        near = sum(is_near(records, query, row) for row in kept(parts, window))
        too_many = too_many or near > seed_rule.NEAR * most
        count = len(windows)
        window = len(query) // count
        windows = range(0, count * window, window)
    if not too_many:
        return Chosen(with_window, all_windows, False)
    counts = dict(zip(windows, counts_of(windows, window), strict=True))
    rarest, total = [], 0
    for at in sorted(windows, key=lambda at: (counts[at], at)):
        if total + counts[at] > most:
            break
        total += counts[at]
        rarest.append(at)
    sure = len(rarest)
    rarest = rarest if total > 0 else []
    for number in range(len(windows) - 1, len(rarest), -1):
        bases = len(query) // number
        begins = range(0, number * bases, bases)
        if 0 < sum(counts_of(begins, bases)) <= most:
            return Chosen(kept(begins, bases), number, False)
    if rarest:
        return Chosen(kept(rarest, window), len(rarest), False)
    cuts = [
        (begin, window if number == len(windows) else len(query) // number)
        for number in range(1, len(windows) + 1)
        for begin in range(number)
    ]
    for part, bases in cuts:
        if counts_of([part * bases], bases) != [0]:
            return spread(kept([part * bases], bases), part * bases, most, sure)
    return Chosen([], sure, False)


def spread(matches, begin, most, sure):
    """At most so many matches, at places of a seed that are spread evenly."""
    keys = [thinning_hash(row[1] - row[0] + begin) for row in matches]
    bits = seed_rule.THINNING_BITS
    while bits > 0 and sum(key >> bits == 0 for key in keys) > most:
        bits -= 1
    kept = [row for row, key in zip(matches, keys, strict=True) if key >> bits == 0]
    return Chosen(kept, sure, True)
