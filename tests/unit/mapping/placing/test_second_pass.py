"""The reads that are mapped once more, and how their alignments replace the earlier ones."""

import random

import numpy as np
import pytest
from helpers.made_alignments import random_alignments, random_reference

from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns, replace_reads
from mummergpu.mapping.placing.second_pass import max_unseen, part_of_reads
from mummergpu.sequence.codes import with_margins
from mummergpu.viterbi.recurrence.model import Costs


def rows_of_reads(columns):
    """The rows of each read, with the mate told by its read."""
    found = [[] for _ in range(int(columns.reads[-1]) + 1)]
    for row in range(columns.row_count):
        told = {
            field: getattr(columns, field)[row]
            for field in AlignmentColumns._fields
            if field not in ("reads", "mate_rows", "cigars", "cigar_offsets")
        }
        first, end = columns.cigar_offsets[row], columns.cigar_offsets[row + 1]
        told["operations"] = columns.cigars[first:end].tolist()
        mate = columns.mate_rows[row]
        told["mate"] = None if mate == NO_ROW else int(columns.reads[mate] - columns.reads[row])
        if mate != NO_ROW:
            assert not columns.flags[mate] & 0x900
        found[columns.reads[row]].append(told)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_some_reads_are_replaced(seed):
    made = random.Random(seed)
    reference = random_reference(made)
    count = 60
    columns = random_alignments(made, reference, count).columns
    before = rows_of_reads(columns)
    templates = sorted(made.sample(range(count), made.choice((0, 1, 20, count))))
    # Both kinds of templates have as many reads as their mates say.
    starts = template_starts(before)
    chosen = [read for template in templates if template < len(starts) for read in starts[template]]
    other = columns_of_reads(columns, chosen)
    changed = AlignmentColumns(
        **{field: getattr(other, field) + (field == "scores") for field in AlignmentColumns._fields}
    )
    found = replace_reads(columns, np.array(chosen, dtype=np.int64), changed)
    assert found.reads.tolist() == sorted(found.reads.tolist())
    after = rows_of_reads(found)
    for read, (old, new) in enumerate(zip(before, after, strict=True)):
        expected = [dict(row, scores=row["scores"] + (read in chosen)) for row in old]
        assert new == expected


def template_starts(rows):
    """The reads of each template."""
    found, read = [], 0
    while read < len(rows):
        size = 1 if rows[read][0]["mate"] is None else 2
        found.append(list(range(read, read + size)))
        read += size
    return found


def columns_of_reads(columns, reads):
    """The rows of some reads, which are numbered from 0."""
    rows = [row for row in range(columns.row_count) if columns.reads[row] in reads]
    place = {row: number for number, row in enumerate(rows)}
    parts = [
        columns.cigars[columns.cigar_offsets[row] : columns.cigar_offsets[row + 1]] for row in rows
    ]
    chosen = {
        field: getattr(columns, field)[rows]
        for field in AlignmentColumns._fields
        if field not in ("cigars", "cigar_offsets")
    }
    chosen["reads"] = np.array([reads.index(columns.reads[row]) for row in rows], dtype=np.int64)
    mates = [place.get(int(mate), NO_ROW) for mate in chosen["mate_rows"]]
    chosen["mate_rows"] = np.array(mates, dtype=np.int64)
    chosen["cigars"] = np.concatenate([np.empty(0, dtype=np.uint32), *parts])
    chosen["cigar_offsets"] = np.array([0, *np.cumsum([len(p) for p in parts])], dtype=np.int64)
    return AlignmentColumns(**chosen)


def test_a_part_has_the_reads_that_are_chosen():
    random_bases = np.random.default_rng(5)
    lengths = [3, 0, 40, 7, 1]
    names = [b"a", b"second", b"", b"d", b"ee"]
    codes = random_bases.integers(0, 5, sum(lengths), dtype=np.uint8)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    block = ReadBlock(
        3,
        with_margins(codes),
        offsets,
        np.frombuffer(b"".join(names), dtype=np.uint8),
        np.concatenate(([0], np.cumsum([len(name) for name in names]))),
        base_qualities=np.arange(codes.size, dtype=np.uint8),
    )
    chosen = [0, 1, 3, 4]
    part = part_of_reads(block, np.array(chosen, dtype=np.int64))
    assert part.query_count == len(chosen) and part.index == 3
    for number, read in enumerate(chosen):
        own = slice(part.offsets[number], part.offsets[number + 1])
        old = slice(offsets[read], offsets[read + 1])
        assert part.codes[own].tolist() == codes[old].tolist()
        assert part.base_qualities[own].tolist() == block.base_qualities[old].tolist()
        name = part.names[part.name_offsets[number] : part.name_offsets[number + 1]]
        assert name.tobytes() == names[read]


@pytest.mark.parametrize("costs", [Costs(), Costs(mismatch=9), Costs(deletion_open=1)])
def test_a_placement_with_a_better_score_has_a_long_match(costs):
    for length in (30, 36, 150, 151):
        seed_length = 30
        # As many edits, evenly spread, as leave no match of the seed length.
        edits = 0
        while (length - edits) / (edits + 1) > seed_length - 1:
            edits += 1
        loss = min(
            costs.match + costs.mismatch,
            costs.deletion_open + costs.deletion_extend,
            costs.insertion_open + costs.insertion_extend + costs.match,
        )
        whole = length * costs.match + 2 * costs.end_bonus
        assert max_unseen(length, seed_length, costs) == whole - edits * loss
