"""Lists the places that the tag XA tells of, as bwa mem does: a few that are nearly as good.

Each belongs to the alignment of its read, primary or supplementary, with which it shares more
bases of the read. Those of an alignment are listed if they are not too many.
"""

from __future__ import annotations

from typing import Final

from mummergpu.mapping.candidates.candidates import Reads, Table, Target, read_length
from mummergpu.mapping.placing.choice import reported_score
from mummergpu.mapping.placing.read_parts import read_interval, shared_bases
from mummergpu.mapping.placing.secondary import Secondary, collect_others
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, inline_without_refcounts, jit_without_refcounts
from mummergpu.viterbi.recurrence.model import CostTuple
from mummergpu.viterbi.tiles.scratch import Scratch

LEAST_PERCENT: Final = 80
"""A place is listed if its score is at least so many hundredths of that of its alignment."""


@inline_without_refcounts
def least_score_beside(table: Table, row: int, length: int, costs: CostTuple) -> int:
    """Return the least score of an alternative to a candidate."""
    score = reported_score(table, row, length, costs)
    return as_int64((score * LEAST_PERCENT + 99) // 100)


@inline_without_refcounts
def owner_of(
    table: Table,
    row: int,
    length: int,
    costs: CostTuple,
    chosen: tuple[int, int],
    least: tuple[int, int],
) -> int:
    """Return to which alignment of its read a candidate is an alternative."""
    owner = as_int64(0)
    if chosen[1] >= 0:
        part = read_interval(table, row, length)
        own = read_interval(table, chosen[0], length)
        other = read_interval(table, chosen[1], length)
        if shared_bases(part, other) > shared_bases(part, own):
            owner = as_int64(1)
    least_score = least[0] if owner == 0 else least[1]
    return owner if reported_score(table, row, length, costs) >= least_score else as_int64(2)


@jit_without_refcounts
def list_alternatives(
    reads: Reads,
    target: Target,
    costs: CostTuple,
    limits: tuple[int, int],
    scratch: Scratch,
    sorting: tuple[Int64Array, Int64Array],
    table: Table,
    chosen: tuple[Int64Array, Int64Array],
    secondary: Secondary,
) -> None:
    """List the placements of each read that are nearly as good as those that are chosen."""
    least_score, most = limits
    owners, rows = sorting
    filled = 0
    for read in range(table[1].size):
        secondary[0][read] = filled
        secondary[1][read] = 0
        primary, extra = chosen[0][read], chosen[1][read]
        if primary < 0:
            continue
        length = read_length(reads, read)
        least = as_int64(least_score_beside(table, primary, length, costs))
        least_extra = least
        if extra >= 0:
            least_extra = least_score_beside(table, extra, length, costs)
        # A place that is worse is never listed, nor is it the better one at the place of another.
        bounds = least_score, max(least_score, min(least, least_extra)), table[2].size
        both = primary, extra
        count = collect_others(reads, read, target, costs, bounds, scratch, sorting, table, both)
        of_primary, of_extra = as_int64(0), as_int64(0)
        for place in range(count):
            owner = owner_of(table, rows[place], length, costs, both, (least, least_extra))
            owners[place] = owner
            of_primary += owner == 0
            of_extra += owner == 1
        for owner in range(2):
            if (of_primary if owner == 0 else of_extra) > most:
                continue
            for place in range(count):
                if owners[place] == owner:
                    secondary[2][filled] = rows[place]
                    filled += 1
            if owner == 0:
                secondary[1][read] = of_primary
    secondary[0][table[1].size] = filled
