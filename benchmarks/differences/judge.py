"""Compares the edits that a program tells of with the true ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from differences.calls import run
from differences.edits import Edit, Edits, apply, rows_of_vcf, write_vcf
from mummergpu.runtime.jit import jit

MOST_BASES: Final = 200
"""How far two sets of edits may lie apart that together make the same bases."""

_WINDOW: Final = 2000
"""The remaining differences are counted in pieces of about so many bases."""

_KINDS: Final = ("snps", "indels")


def _kind(is_substitution: bool) -> str:
    return _KINDS[not is_substitution]


def normalised(
    records: Mapping[str, str], edits: Edits, genome: Path, folder: Path
) -> set[tuple[str, int, str, str]]:
    """Return the rows of VCF that ``bcftools norm`` makes of edits: split, and to the left."""
    plain, made = folder / "plain.vcf", folder / "normalised.vcf"
    write_vcf(plain, records, edits)
    run(["bcftools", "norm", "-a", "-f", str(genome), str(plain), "-o", str(made)])
    return set(rows_of_vcf(made))


def compare_rows(
    true: set[tuple[str, int, str, str]], told: set[tuple[str, int, str, str]]
) -> dict[str, dict[str, float]]:
    """Return precision and recall of normalised rows, which count if they are equal."""
    found = {}
    for kind in _KINDS:
        sets = [
            {row for row in rows if _kind(len(row[2]) == len(row[3]) == 1) == kind}
            for rows in (true, told)
        ]
        right = len(sets[0] & sets[1])
        found[kind] = _rates(right, len(sets[1]), right, len(sets[0]))
    return found


def _rates(right: int, told: int, found: int, true: int) -> dict[str, float]:
    precision, recall = right / max(told, 1), found / max(true, 1)
    both = precision + recall
    return {
        "true": true,
        "told": told,
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / both if both else 0.0,
    }


def compare_bases(records: Mapping[str, str], true: Edits, told: Edits) -> dict[str, Any]:
    """Return precision and recall of edits, which count if they make the same bases.

    From a base on that both sets of edits have reached, as many of them are taken as make the same
    bases of the same range of the reference, within `MOST_BASES`; they are right. If none do, the
    first edit is wrong or missing.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    remaining = 0
    for name, bases in records.items():
        own, other = true.get(name, []), _without_overlaps(told.get(name, []))
        _match_edits(bases, own, other, counts)
        for edit in told.get(name, []):
            counts["told", "all", _kind(edit.is_substitution)] += 1
        for edit in own:
            counts["true", "all", _kind(edit.is_substitution)] += 1
        remaining += _remaining(bases, own, other)
    rates: dict[str, Any] = {
        kind: _rates(
            counts["told", "right", kind],
            counts["told", "all", kind],
            counts["true", "right", kind],
            counts["true", "all", kind],
        )
        for kind in _KINDS
    }
    return rates | {"remaining_edits": remaining}


def _without_overlaps(edits: list[Edit]) -> list[Edit]:
    """Return the edits that do not overlap an earlier one."""
    kept: list[Edit] = []
    for edit in edits:
        if not kept or (edit.begin >= kept[-1].end and edit[:2] != kept[-1][:2]):
            kept.append(edit)
    return kept


def _match_edits(
    bases: str, true: list[Edit], told: list[Edit], counts: Counter[tuple[str, str, str]]
) -> None:
    """Count the edits of both sets that make the same bases."""
    i, j = 0, 0
    while i < len(true) and j < len(told):
        i_end, j_end = _matching(bases, true, i, told, j)
        if (i_end, j_end) == (i, j):
            # The earlier one is dropped.
            if true[i] < told[j]:
                i += 1
            else:
                j += 1
            continue
        for edit in true[i:i_end]:
            counts["true", "right", _kind(edit.is_substitution)] += 1
        for edit in told[j:j_end]:
            counts["told", "right", _kind(edit.is_substitution)] += 1
        i, j = i_end, j_end


def _matching(bases: str, true: list[Edit], i: int, told: list[Edit], j: int) -> tuple[int, int]:
    """Return where the edits end that make the same bases; where they begin if none do."""
    if true[i] == told[j]:
        return i + 1, j + 1
    begin = min(true[i].begin, told[j].begin)
    last = begin + MOST_BASES
    if max(true[i].begin, told[j].begin) > last:
        return i, j
    i_end, j_end, end = i, j, begin
    while True:
        following = [edits[at] for edits, at in ((true, i_end), (told, j_end)) if at < len(edits)]
        if not following or min(following).begin > last:
            return i, j
        end = max(end, min(following).end)
        while True:
            first = i_end, j_end
            while i_end < len(true) and (true[i_end] <= min(following) or true[i_end].begin < end):
                end = max(end, true[i_end].end)
                i_end += 1
            while j_end < len(told) and (told[j_end] <= min(following) or told[j_end].begin < end):
                end = max(end, told[j_end].end)
                j_end += 1
            if (i_end, j_end) == first:
                break
        if i_end > i and j_end > j:
            made = apply(bases, true[i:i_end], begin, end)
            if made == apply(bases, told[j:j_end], begin, end):
                return i_end, j_end


def _remaining(bases: str, true: list[Edit], told: list[Edit]) -> int:
    """Return how many single bases must still be edited to make the true copy of the told one."""
    total, begin, i, j = 0, 0, 0, 0
    while begin < len(bases):
        end = min(begin + _WINDOW, len(bases))
        i_end, j_end = i, j
        while True:
            first = i_end, j_end
            # All edits before the end, and the end behind all of them.
            while i_end < len(true) and true[i_end].begin <= end:
                end = max(end, true[i_end].end)
                i_end += 1
            while j_end < len(told) and told[j_end].begin <= end:
                end = max(end, told[j_end].end)
                j_end += 1
            if (i_end, j_end) == first:
                break
        if true[i:i_end] != told[j:j_end]:
            made = [apply(bases, edits, begin, end) for edits in (true[i:i_end], told[j:j_end])]
            codes = [np.frombuffer(text.encode(), dtype=np.uint8) for text in made]
            room = np.empty(2 * (codes[0].size + codes[1].size) + 3, dtype=np.int64)
            total += int(_edit_distance(codes[0], codes[1], room))
        begin, i, j = end, i_end, j_end
    return total


@jit
def _edit_distance(
    one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8], reached: npt.NDArray[np.int64]
) -> int:
    """Return the fewest edits of single bases between two texts (Ukkonen's diagonals)."""
    middle = one.size + other.size + 1
    reached[:] = -2
    target = middle + one.size - other.size
    for distance in range(one.size + other.size + 1):
        before = -2
        for diagonal in range(middle - distance, middle + distance + 1):
            here, after = reached[diagonal], reached[diagonal + 1]
            if distance == 0:
                i = 0
            else:
                i = max(here + 1, before + 1, after)
            i = min(i, one.size, other.size + diagonal - middle)
            while i >= 0 and i < one.size and i - diagonal + middle >= 0:
                j = i - diagonal + middle
                if j >= other.size or one[i] != other[j]:
                    break
                i += 1
            before = here
            reached[diagonal] = i
        if reached[target] >= one.size:
            return distance
    return one.size + other.size
