"""The kernels of whole matrices, run on the host: the paths of the processor's matrix, always."""

import numpy as np
import pytest
from helpers.host_device import HostCompiler, HostDevice, everything_given_back
from helpers.whole_alignments import COSTS, made_pair, whole_alignment

from mummergpu.runtime.stats import Stats
from mummergpu.viterbi.device.cuda_program import VITERBI_PROGRAM
from mummergpu.viterbi.device.device_matrix import BLOCK_COLUMNS, STRIP_ROWS, DeviceMatrix
from mummergpu.viterbi.device.device_tiles import DeviceTiles
from mummergpu.viterbi.device.tile_set import TileSet, fit_two


@pytest.fixture(scope="module")
def compiled(cxx, library_folder):
    return HostCompiler(library_folder).cubin({}, VITERBI_PROGRAM, "host")


SHAPES = [
    (1, 1),
    (1, 300),
    (300, 1),
    (STRIP_ROWS, BLOCK_COLUMNS),
    (STRIP_ROWS + 1, BLOCK_COLUMNS + 1),
    (2 * STRIP_ROWS - 1, 3 * BLOCK_COLUMNS - 1),
    (90, 700),
    (600, 50),
]


@pytest.mark.parametrize("costs", COSTS, ids=lambda costs: str(costs))
@pytest.mark.parametrize("streamed", [False, True], ids=["wavefront", "streaming"])
def test_matrices_in_rounds_are_those_of_the_processor(compiled, costs, streamed):
    random = np.random.default_rng(7)
    device = HostDevice()
    matrix = DeviceMatrix(device, device.load(compiled), costs, 1 << 28, Stats())
    pairs = [made_pair(random, length, 2 + length % 3) for length in (2, 40, 257, 530, 700)]
    for rows, columns in SHAPES:
        sides = (random.integers(0, 5, side, dtype=np.uint8) for side in (rows, columns))
        pairs.append((next(sides), next(sides)))
    for query, reference in pairs:
        align = matrix.align_streamed if streamed else matrix.align
        score, operations = align(query, reference)
        assert (score, operations.tolist()) == whole_alignment(query, reference, costs)
    matrix.free()
    device.close()
    assert everything_given_back(device)


def made_tiles(random, count, most):
    """Tiles of all shapes, and the sequences that they lie in."""
    pairs = []
    for number in range(count):
        if number % 4 == 3:
            sides = random.integers(1, most, 2)
            pairs.append(tuple(random.integers(0, 5, side, dtype=np.uint8) for side in sides))
        else:
            pairs.append(made_pair(random, int(random.integers(1, most)), 2 + number % 3))
    lengths, reference_lengths = (
        np.array([pair[side].size for pair in pairs], dtype=np.int64) for side in (0, 1)
    )
    starts, reference_starts = np.cumsum(lengths) - lengths, np.cumsum(reference_lengths)
    tiles = TileSet(starts, lengths, reference_starts - reference_lengths, reference_lengths)
    queries, reference = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    return queries, reference, tiles


@pytest.mark.parametrize("costs", COSTS, ids=lambda costs: str(costs))
@pytest.mark.parametrize(
    ("count", "most", "memory"), [(1, 9, 28), (150, 64, 18), (61, 140, 28), (41, 600, 28)]
)
def test_tiles_are_aligned_as_by_the_processor(compiled, costs, count, most, memory):
    queries, reference, tiles = made_tiles(np.random.default_rng(count), count, most)
    assert fit_two(costs, tiles.lengths, tiles.reference_lengths).all()
    device = HostDevice()
    aligner = DeviceTiles(device, device.load(compiled), costs, 1 << memory, Stats())
    found = aligner.align(queries, reference, tiles)
    for number in range(count):
        query = queries[tiles.query_starts[number] :][: tiles.lengths[number]]
        other = reference[tiles.reference_starts[number] :][: tiles.reference_lengths[number]]
        operations = found.operations[found.offsets[number] : found.offsets[number + 1]]
        assert (found.scores[number], operations.tolist()) == whole_alignment(query, other, costs)
    aligner.free()
    device.close()
    assert everything_given_back(device)


@pytest.mark.parametrize("costs", COSTS[:2], ids=lambda costs: str(costs))
def test_the_largest_tiles_of_half_words_are_right(compiled, costs):
    """Sequences with nothing in common reach the lowest scores, equal ones the highest."""
    side = 1
    while fit_two(costs, np.array([side + 1]), np.array([side + 1]))[0]:
        side += 1
    assert side > 1000
    ones, others = np.zeros(2 * side, dtype=np.uint8), np.zeros(2 * side, dtype=np.uint8)
    others[:side] = 1
    starts, lengths = np.array([0, side]), np.array([side, side])
    device = HostDevice()
    aligner = DeviceTiles(device, device.load(compiled), costs, 1 << 28, Stats())
    found = aligner.align(ones, others, TileSet(starts, lengths, starts, lengths))
    for number in range(2):
        part = slice(number * side, (number + 1) * side)
        operations = found.operations[found.offsets[number] : found.offsets[number + 1]]
        assert (found.scores[number], operations.tolist()) == whole_alignment(
            ones[part], others[part], costs
        )
    assert not fit_two(costs, np.array([side + 1, 0]), np.array([side + 1, 5])).any()
