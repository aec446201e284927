"""The matches of the first reads are kept, in less memory, until these reads are mapped."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.in_memory import columns_of
from helpers.mapped_reads import block_of, random_bases

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.pipeline import kept_matches
from mummergpu.pipeline.kept_matches import SHORT_REFERENCE, KeptMatches, PackedMems
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import BlockMems, MemColumns

LONGEST = 1500


def mems_of(random: np.random.Generator, reads: int, end: int) -> dict[Strand, MemColumns]:
    """Any rows, not more than three a read, on a reference of so many bases."""
    found = {}
    for strand in Strand:
        counts = random.integers(0, 4, reads).tolist()
        highest = [LONGEST, end, LONGEST]
        rows = [[tuple(random.integers(0, highest).tolist()) for _ in range(n)] for n in counts]
        seeds = random.integers(0, 256, reads).astype(np.uint8)
        found[strand] = columns_of(rows)._replace(seeds=seeds)
    return found


def is_equal(one: BlockMems, other: BlockMems) -> bool:
    pairs = ((one[s], other[s]) for s in Strand)
    return all(
        np.array_equal(a, b) and a.dtype == b.dtype
        for columns, others in pairs
        for a, b in zip(columns, others, strict=True)
    )


@pytest.mark.parametrize("end", [1000, SHORT_REFERENCE, 1 << 34])
def test_packed_matches_are_the_same(end: int) -> None:
    columns = mems_of(np.random.default_rng(end), 50, end)[Strand.FORWARD]
    packed = PackedMems.of(columns)
    assert packed.reference_starts.itemsize == (8 if end > SHORT_REFERENCE else 4)
    assert is_equal(dict.fromkeys(Strand, packed.columns()), dict.fromkeys(Strand, columns))


@pytest.mark.parametrize("most", [10_000, 60, 0])
def test_blocks_are_cut_to_the_first_reads_whose_matches_are_kept(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_matches, "MOST_KEPT", most)
    random = np.random.default_rng(7)
    blocks = []
    for pairs in (10, 8, 6):
        reads = [random_bases(random, int(random.integers(0, 30))) for _ in range(2 * pairs)]
        blocks.append(block_of(reads, paired=True))
    # The first block as a whole, half of the second one, and nothing of the third.
    measured = [(blocks[0], 0, 12), (blocks[0], 12, 20), (blocks[1], 0, 8)]
    kept: KeptMatches[tuple[QueryBlock, BlockMems]] = KeptMatches()
    wanted, total = [], 0
    for _, first, behind in measured:
        mems = mems_of(random, behind - first, 1000)
        kept.add(behind - first, mems)
        total += sum(columns.count for columns in mems.values())
        wanted.append(mems if total <= most else None)
    found = list(kept.cut(iter(blocks), lambda block, mems: (block, mems)))
    assert np.concatenate([part.codes for part in found]).tolist() == [
        code for block in blocks for code in block.codes.tolist()
    ]
    assert all(isinstance(part, ReadBlock) and part.paired for part in found)
    known = [part for part in found if kept.suits(part)]
    assert len(known) == sum(mems is not None for mems in wanted)
    assert len(known) == {10_000: 3, 60: 1, 0: 0}[most]
    for part, mems, (block, first, behind) in zip(known, wanted, measured, strict=False):
        ((prepared, given),) = kept.prepared(part)
        assert mems is not None
        assert prepared is part
        assert part.codes.tolist() == block.part(first, behind).codes.tolist()
        assert is_equal(given, mems)
        # They are let go.
        assert not kept.suits(part)
