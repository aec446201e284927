"""Places the reads of a block, and writes their rows: a compiled call for each.

Around each call a thread holds the lock of the interpreter, for which other threads wait.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.mapping.alignments.paths import Paths, PlacedRows, trace_paths
from mummergpu.mapping.alignments.sam_record_layout import Placements, fill_sam_records, list_rows
from mummergpu.mapping.candidates.candidates import Candidates, Scoring
from mummergpu.mapping.options import Limits
from mummergpu.mapping.placing.choice import Names, PlacingRoom, map_templates, new_choices
from mummergpu.mapping.placing.mapping_quality import Odds
from mummergpu.mapping.placing.pairing import Pairing
from mummergpu.mapping.placing.second_pass import list_badly_placed
from mummergpu.mapping.placing.secondary import Extra, Secondary, no_secondary, split_reads
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import jit
from mummergpu.viterbi.recurrence.operations import OperationArray
from mummergpu.viterbi.tiles.band import Scratch

BADLY_PLACED, ROWS, OPERATIONS = range(3)
"""The elements of `PlacedReads.counts`: badly placed reads, rows, and the most operations."""

_COUNTS: Final = 3


class PlacedReads(NamedTuple):
    """The choices for the reads of a block, and the rows that they become; with room for more."""

    placements: Placements
    rows: PlacedRows
    begins: Int64Array  # Those of `Paths`.
    ends: Int64Array
    badly_placed: Int64Array  # Reads that may have a better place, with their mates.
    counts: Int64Array


def new_placed_reads(read_count: int) -> PlacedReads:
    """Return unfilled arrays for reads without secondary alignments."""
    extra = Extra(np.empty(read_count, dtype=np.int64), np.empty(read_count, dtype=np.uint8))
    placements = Placements(new_choices(read_count), extra, no_secondary(read_count))
    return _with_rows(
        placements,
        2 * read_count,
        np.empty(read_count, dtype=np.int64),
        np.zeros(_COUNTS, dtype=np.int64),
    )


def with_secondary(
    placed: PlacedReads, secondary: Secondary, table: Candidates, offsets: Int64Array
) -> PlacedReads:
    """Return placed reads with secondary alignments of their candidates in a table.

    `offsets` says where each read begins.
    """
    rows = 2 * placed.badly_placed.size + secondary.candidates.size
    placements = placed.placements._replace(secondary=secondary)
    found = _with_rows(placements, rows, placed.badly_placed, placed.counts)
    count_rows(found, table, offsets)
    return found


def _with_rows(
    placements: Placements, rows: int, badly_placed: Int64Array, counts: Int64Array
) -> PlacedReads:
    reads, candidates, begins, ends = (np.empty(rows, dtype=np.int64) for _ in range(4))
    listed = PlacedRows(reads, candidates, np.empty(badly_placed.size, dtype=np.int64))
    return PlacedReads(placements, listed, begins, ends, badly_placed, counts)


@jit
def place_reads(
    scoring: Scoring,
    names: Names,
    limits: Limits,
    pairing: Pairing,
    odds: Odds,
    room: PlacingRoom,
    table: Candidates,
    placed: PlacedReads,
) -> None:
    """Choose places, find reads that may have better ones, and list rows but secondary ones."""
    offsets, placements, costs = scoring.reads.offsets, placed.placements, scoring.costs
    choices = placements.choices
    map_templates(scoring, names, limits, pairing, odds, room, table, choices)
    placed.counts[BADLY_PLACED] = list_badly_placed(
        offsets, choices, table, pairing.mates, limits.seed_length, costs, placed.badly_placed
    )
    split_reads(offsets, table, choices, costs, limits.min_score, odds, placements.extra)
    secondary = placements.secondary
    secondary.offsets[: offsets.size] = 0
    secondary.leading[: offsets.size - 1] = 0
    count_rows(placed, table, offsets)


@jit
def count_rows(placed: PlacedReads, table: Candidates, offsets: Int64Array) -> None:
    """List the rows of placed reads, and count them."""
    found = list_rows(offsets, placed.placements, table, placed.rows)
    placed.counts[ROWS], placed.counts[OPERATIONS] = found


@jit
def write_rows(
    scoring: Scoring,
    pairing: Pairing,
    table: Candidates,
    placed: PlacedReads,
    scratch: Scratch,
    flank: OperationArray,
    columns: AlignmentColumns,
) -> None:
    """Fill the columns of the rows of placed reads; `flank` is memory for the path of a flank."""
    count = columns.reads.size
    rows = PlacedRows(
        placed.rows.reads[:count], placed.rows.candidates[:count], placed.rows.primaries
    )
    for row in range(count):
        columns.reads[row] = rows.reads[row]
    paths = Paths(
        columns.cigar_offsets,
        columns.cigars,
        placed.begins[:count],
        placed.ends[:count],
        columns.edit_distances,
    )
    trace_paths(rows, scoring, scratch, table, flank, paths)
    fill_sam_records(scoring, pairing, placed.placements, table, rows, paths, columns)
