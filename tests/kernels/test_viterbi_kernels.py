"""The kernels that align tiles, run on the host: the results of the compiled functions, always."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.host_device import HostCompiler, HostProgram

from mummergpu.sequence.codes import BREAK, MARGIN, with_margins
from mummergpu.viterbi.device.cuda_program import (
    LEFTWARD,
    NARROW_DIAGONALS,
    ON_REVERSE_STRAND,
    TILE,
    VITERBI_PROGRAM,
)
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.tile import Tile
from mummergpu.viterbi.tiles.extension import CANNOT_REACH, extend_path
from mummergpu.viterbi.tiles.scratch import new_scratch

WORD_BASES, PADDING = 32, 2
MOST_OPERATIONS = 40


def bit_planes(codes: np.ndarray) -> np.ndarray:
    """Words of bit planes, with words of breaks on both sides."""
    padding = np.full(PADDING * WORD_BASES, BREAK, dtype=np.uint8)
    rest = np.full(-codes.size % WORD_BASES, BREAK, dtype=np.uint8)
    groups = np.concatenate([padding, codes, rest, padding]).reshape(-1, WORD_BASES)
    places = np.uint32(1) << np.arange(WORD_BASES, dtype=np.uint32)
    planes = np.zeros((len(groups), 4), dtype=np.uint32)
    for plane in range(3):
        planes[:, plane] = ((groups >> plane & 1) * places).sum(axis=1, dtype=np.uint32)
    return planes


def address(array: np.ndarray) -> int:
    return array.ctypes.data


@dataclass
class Tiles:
    """Tiles in sequences, for the kernels and for the compiled functions."""

    read: np.ndarray
    reversed_read: np.ndarray
    reference: np.ndarray
    tiles: np.ndarray

    def planes(self) -> list[np.ndarray]:
        return [bit_planes(codes) for codes in (self.read, self.reversed_read, self.reference)]

    def expected(self, costs: Costs) -> list[tuple[tuple[int, int, int], list[int]]]:
        """The score and the end, and the operations, of each tile."""
        read, reversed_read, reference = (
            with_margins(codes) for codes in (self.read, self.reversed_read, self.reference)
        )
        scratch = new_scratch(1000, costs.max_gap)
        operations = np.zeros(2100, dtype=np.uint32)
        found = []
        for tile in self.tiles:
            *end, count = extend_path(
                reversed_read if tile["flags"] & ON_REVERSE_STRAND else read,
                reference,
                Tile(
                    int(tile["read_at"]) + MARGIN,
                    int(tile["length"]),
                    int(tile["reference_at"]) + MARGIN,
                    int(tile["reference_length"]),
                    -1 if tile["flags"] & LEFTWARD else 1,
                ),
                costs,
                8,
                int(tile["min_score"]),
                scratch,
                operations,
                0,
            )
            found.append(((end[0], end[1], end[2]), operations[:count].tolist()))
        return found


def edited(random: np.random.Generator, bases: Sequence[int], edits: int) -> list[int]:
    """Bases with some differences, gaps and breaks."""
    found = list(bases)
    for _ in range(edits):
        at, kind = int(random.integers(len(found))), random.random()
        length = int(random.integers(1, 5 if random.random() < 0.8 else 25))
        if kind < 0.6:
            found[at] = int(random.integers(5)) if kind < 0.1 else (found[at] + 1) % 4
        elif kind < 0.8:
            found[at:at] = random.integers(0, 4, length).tolist()
        elif len(found) > length + 1:
            del found[at : at + length]
    return found


def made_tiles(seed: int, count: int, max_bases: int = 80) -> Tiles:
    """Tiles beside each other; some lie at the ends of the sequences."""
    random = np.random.default_rng(seed)
    reads: list[list[int]] = [[], []]
    reference: list[int] = []
    tiles = np.zeros(count, dtype=TILE)
    for tile in tiles:
        length = int(random.integers(1, max_bases))
        room = int(random.integers(0, 40)) if random.random() < 0.9 else 0
        letters = int(random.integers(2, 5))
        bases = random.integers(0, letters, length + room).tolist()
        read = edited(random, bases[:length], int(random.integers(7)))
        flags = int(random.integers(4))
        side = reads[flags & ON_REVERSE_STRAND != 0]
        leftward = flags & LEFTWARD != 0
        tile["flags"] = flags
        tile["length"], tile["reference_length"] = len(read), len(bases)
        tile["read_at"] = len(side) + (len(read) - 1 if leftward else 0)
        tile["reference_at"] = len(reference) + (len(bases) - 1 if leftward else 0)
        tile["min_score"] = int(random.integers(length)) if random.random() < 0.3 else 0
        side += read[::-1] if leftward else read
        reference += bases[::-1] if leftward else bases
    tiles["length"][random.random(count) < 0.02] = 0
    arrays = [np.array(codes, dtype=np.uint8) for codes in (*reads, reference)]
    return Tiles(*arrays, tiles)


@pytest.fixture(scope="module")
def kernels(cxx: str, library_folder: Path) -> HostProgram:
    library = HostCompiler(library_folder).cubin({}, VITERBI_PROGRAM, "host")
    return HostProgram(Path(library.decode()))


@dataclass
class Launched:
    kernels: HostProgram
    made: Tiles
    costs: Costs
    threads: int = 3

    def __post_init__(self) -> None:
        self.all_planes = self.made.planes()
        self.numbers = np.array(self.costs, dtype=np.int32)
        self.sequences = [address(planes[PADDING:]) for planes in self.all_planes]
        # The kernels load a tile as words of 16 bytes.
        self.memory = np.zeros(self.made.tiles.nbytes + 16, dtype=np.uint8)
        first = -address(self.memory) % 16
        self.tiles = self.memory[first : first + self.made.tiles.nbytes]
        self.tiles[:] = self.made.tiles.view(np.uint8)

    def run(self, kernel: str, *arguments: Any) -> None:
        given = (*self.sequences, address(self.tiles), *arguments)
        self.kernels.run(kernel, 1, self.threads, given)

    def scores(self) -> tuple[np.ndarray, np.ndarray]:
        count = len(self.made.tiles)
        scores, is_open = np.zeros(count, dtype=np.int32), np.full(count, 9, dtype=np.uint8)
        self.run("score_tiles", count, address(self.numbers), address(scores), address(is_open))
        return scores, is_open

    def aligned(
        self, chosen: np.ndarray, first_band: int, max_operations: int, traced: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        width = 2 * self.costs.max_gap + 1
        scratch = np.zeros(2 * width * self.threads, dtype=np.int32)
        rows = int(self.made.tiles["length"].max()) + 1
        directions = np.zeros(rows * -(-width // 8) * self.threads, dtype=np.uint32)
        ends = np.zeros((len(chosen), 4), dtype=np.int32)
        operations = np.zeros((len(chosen), max_operations), dtype=np.uint32)
        self.run(
            "align_tiles",
            *(address(chosen), len(chosen), address(self.numbers), np.uint32(first_band)),
            *(address(scratch), address(directions) if traced else 0),
            *(address(ends), address(operations), np.uint32(max_operations)),
        )
        return ends, operations


COSTS = [
    Costs(),
    Costs(2, 8, 0, 12, 1, 10, 2, 10, 30),
    Costs(1, 0, 0, 0, 1, 0, 1, 0, 16),
    Costs(max_gap=5),
    Costs(1, 2, 1, 3, 1, 1, 2, 3, 100),
]


@pytest.mark.parametrize("costs", COSTS, ids=lambda costs: str(costs))
def test_the_narrow_band_scores_as_the_processor_does(kernels: HostProgram, costs: Costs) -> None:
    made = made_tiles(1, 301)
    scores, is_open = Launched(kernels, made, costs).scores()
    expected = np.array([end[0] for end, _ in made.expected(costs)])
    assert set(is_open.tolist()) <= {0, 1}
    closed = is_open == 0
    assert np.array_equal(scores[closed], expected[closed])
    assert (scores[~closed] <= expected[~closed]).all()
    if costs.max_gap < NARROW_DIAGONALS // 2:
        assert not closed.any()
    else:
        assert closed.sum() > 60
        assert (scores[closed] == CANNOT_REACH).any()


@pytest.mark.parametrize("costs", COSTS, ids=lambda costs: str(costs))
@pytest.mark.parametrize("first_band", [0, 8, 40])
def test_tiles_are_aligned_as_the_processor_does(
    kernels: HostProgram, costs: Costs, first_band: int
) -> None:
    made = made_tiles(2 + first_band, 120)
    chosen = np.random.default_rng(3).permutation(len(made.tiles)).astype(np.uint32)
    expected = made.expected(costs)
    launched = Launched(kernels, made, costs)
    ends, operations = launched.aligned(chosen, first_band, MOST_OPERATIONS)
    for tile, end, written in zip(chosen, ends.tolist(), operations, strict=True):
        assert (tuple(end[:3]), written[: end[3]].tolist()) == expected[tile]
    untraced, _ = launched.aligned(chosen, first_band, 0, traced=False)
    assert np.array_equal(untraced[:, :3], ends[:, :3])
    assert not untraced[:, 3].any()


def test_operations_that_have_no_room_are_left_out(kernels: HostProgram) -> None:
    made, costs = made_tiles(5, 60), Costs(2, 8, 0, 2, 1, 2, 1, 10, 30)
    chosen = np.arange(len(made.tiles), dtype=np.uint32)
    ends, operations = Launched(kernels, made, costs).aligned(chosen, 8, 2)
    for tile, ((_, path), end) in enumerate(zip(made.expected(costs), ends, strict=True)):
        assert end[3] == len(path)
        assert operations[tile].tolist() == [*path, 0, 0][:2]
    assert (ends[:, 3] > 2).any()


def test_one_thread_and_many_find_the_same(kernels: HostProgram) -> None:
    made = made_tiles(6, 41)
    chosen = np.arange(len(made.tiles), dtype=np.uint32)
    one = Launched(kernels, made, Costs(), threads=1)
    many = Launched(kernels, made, Costs(), threads=64)
    for found, other in (
        (one.scores(), many.scores()),
        (one.aligned(chosen, 8, 9), many.aligned(chosen, 8, 9)),
    ):
        assert all(np.array_equal(*each) for each in zip(found, other, strict=True))
