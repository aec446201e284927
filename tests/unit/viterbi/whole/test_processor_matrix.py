"""Whole matrices on the processor, in rounds: the paths of the matrix row by row, always."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers.whole_alignments import COSTS, made_pair, whole_alignment

from mummergpu.viterbi.whole import processor_matrix

SHAPES = [
    (1, 1),
    (1, 2 * processor_matrix.BLOCK_COLUMNS + 3),
    (2 * processor_matrix.BLOCK_ROWS + 3, 1),
    (processor_matrix.BLOCK_ROWS, processor_matrix.BLOCK_COLUMNS),
    (processor_matrix.BLOCK_ROWS + 1, processor_matrix.BLOCK_COLUMNS + 1),
    (3 * processor_matrix.BLOCK_ROWS - 1, 2 * processor_matrix.BLOCK_COLUMNS - 1),
    (90, 1700),
    (900, 50),
]


@pytest.mark.parametrize("costs", COSTS, ids=lambda costs: str(costs))
@pytest.mark.parametrize("streamed", [False, True], ids=["wavefront", "streaming"])
@pytest.mark.parametrize("threads", [1, 3])
def test_rounds_compute_the_whole_matrix(costs, streamed, threads):
    random = np.random.default_rng(threads)
    pairs = [made_pair(random, length, 2 + length % 3) for length in (2, 40, 257, 530, 1700)]
    for rows, columns in SHAPES:
        sides = [random.integers(0, 5, side, dtype=np.uint8) for side in (rows, columns)]
        pairs.append((sides[0], sides[1]))
    with ThreadPoolExecutor(threads) as executor:
        matrix = processor_matrix.ProcessorMatrix(costs, executor.map)
        for query, reference in pairs:
            align = matrix.align_streamed if streamed else matrix.align
            score, operations = align(query, reference)
            assert (score, operations.tolist()) == whole_alignment(query, reference, costs)


@pytest.mark.parametrize(("length", "reference_length"), [(1, 1), (70, 9), (9, 70), (31, 29)])
def test_each_block_is_in_one_round(length, reference_length):
    plan = processor_matrix.RoundPlan(length, reference_length, 10, 7)
    blocks = []
    for number in range(plan.rounds):
        first, count = plan.first_strip(number), plan.block_count(number)
        assert 1 <= count <= plan.max_blocks and plan.first_blocks[number] == len(blocks)
        blocks += [(strip, number - strip) for strip in range(first, first + count)]
    assert plan.first_blocks[-1] == len(blocks)
    every = [(s, c) for s in range(plan.strips) for c in range(plan.column_blocks)]
    assert sorted(blocks) == every
