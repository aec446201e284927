"""The second pass: templates whose reads are placed badly, or not at all, are mapped once more.

The first pass begins with long matches, so it finds all placements with few edits. A read that it
places with more edits than that may have a better place. The second pass begins with shorter ones.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import numpy.typing as npt

from mummergpu.input.read_block import ReadBlock
from mummergpu.mapping.columns import NO_ROW, AlignmentColumns
from mummergpu.sequence.codes import MARGIN, empty_with_margins
from mummergpu.viterbi.model import Costs

Int64Array = npt.NDArray[np.int64]


def most_unseen(lengths: Int64Array, seed_length: int, costs: Costs) -> Int64Array:
    """Return the best score that a placement without a long match can have.

    A read of n bases with e edits has a match of at least ``(n - e) / (e + 1)`` bases.

    Parameters
    ----------
    lengths : ndarray, dtype=int64, shape=(n_reads,)
        The bases of each read.
    seed_length : int
        A placement without a match of so many bases is not found.
    costs : Costs
        The scores.

    Returns
    -------
    ndarray, dtype=int64, shape=(n_reads,)
        The scores, with the bonus of both ends.
    """
    edits = np.maximum(0, -(-(lengths - seed_length + 1) // seed_length))
    loss = min(
        costs.match + costs.mismatch,
        costs.deletion_open + costs.deletion_extend,
        costs.insertion_open + costs.insertion_extend + costs.match,
    )
    return np.asarray(lengths * costs.match + 2 * costs.end_bonus - edits * loss)


def part_of_reads(block: ReadBlock, reads: Int64Array) -> ReadBlock:
    """Return some reads of a block as a block of its own.

    Parameters
    ----------
    block : ReadBlock
        The block.
    reads : ndarray, dtype=int64, shape=(n_reads,)
        The reads, ascending; of pairs, both mates.

    Returns
    -------
    ReadBlock
        The reads, in new arrays.
    """
    bases, offsets = _gather(block.offsets, reads)
    letters, name_offsets = _gather(block.name_offsets, reads)
    padded = empty_with_margins(bases.size)
    padded[MARGIN : MARGIN + bases.size] = block.codes[bases]
    return ReadBlock(
        block.index,
        padded,
        offsets,
        block.names[letters],
        name_offsets,
        block.file_number,
        base_qualities=block.base_qualities[bases],
        paired=block.paired,
    )


def replace_reads(
    columns: AlignmentColumns, reads: Int64Array, other: AlignmentColumns
) -> AlignmentColumns:
    """Return alignments with those of some reads replaced.

    Parameters
    ----------
    columns : AlignmentColumns
        The alignments of a block.
    reads : ndarray, dtype=int64, shape=(n_reads,)
        The reads whose alignments are replaced, ascending; of pairs, both mates.
    other : AlignmentColumns
        The alignments of these reads, which are numbered from 0.

    Returns
    -------
    AlignmentColumns
        The alignments of all reads, in their order.
    """
    kept = np.flatnonzero(~np.isin(columns.reads, reads))
    both = np.concatenate((columns.reads[kept], reads[other.reads]))
    order = np.argsort(both, kind="stable")
    rows = np.concatenate((kept, columns.row_count + np.arange(other.row_count)))[order]
    place = np.full(columns.row_count + other.row_count, NO_ROW, dtype=np.int64)
    place[rows] = np.arange(rows.size)
    mates = np.concatenate(
        (
            columns.mate_rows,
            np.where(other.mate_rows == NO_ROW, NO_ROW, other.mate_rows + columns.row_count),
        )
    )[rows]
    joined = {}
    for field in fields(AlignmentColumns):
        name = field.name
        if name not in ("reads", "mate_rows", "cigars", "cigar_offsets"):
            pair = getattr(columns, name), getattr(other, name)
            joined[name] = np.concatenate(pair)[rows]
    operations = np.concatenate((columns.cigars, other.cigars))
    bounds = np.concatenate(
        (columns.cigar_offsets, other.cigar_offsets[1:] + columns.cigar_offsets[-1])
    )
    chosen, cigar_offsets = _gather(bounds, rows)
    return AlignmentColumns(
        reads=both[order],
        mate_rows=np.where(mates == NO_ROW, NO_ROW, place[mates]),
        cigars=operations[chosen],
        cigar_offsets=cigar_offsets,
        **joined,
    )


def _gather(offsets: Int64Array, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the indices of what belongs to some rows, and where each begins among them."""
    sizes = offsets[rows + 1] - offsets[rows]
    bounds = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
    indices = np.arange(bounds[-1]) + np.repeat(offsets[rows] - bounds[:-1], sizes)
    return indices, bounds
