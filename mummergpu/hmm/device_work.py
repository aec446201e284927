"""The stream and the memory with which a thread filters a block of proteins on a device."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.cuda.device import AnyArray, Device, Program
from mummergpu.cuda.program import WARP_LANES
from mummergpu.cuda.stream_worker import StreamWorker
from mummergpu.hmm.filter_programs import ITEM, WORD_RESIDUES
from mummergpu.hmm.filters import lengths_up_to
from mummergpu.hmm.proteins import ProteinBlock, are_marks
from mummergpu.hmm.tables import LengthTables, word_moves
from mummergpu.runtime.arrays import BoolArray, Float64Array, Int64Array
from mummergpu.runtime.stats import Stats

MAX_PAIRS: Final = 1 << 26
"""The most pairs of a profile and a sequence that a launch of SSV may list."""

_BYTES_OF_PAIR: Final = 64
"""The memory of a pair that passes all filters, on the device, and more."""

_MAX_ROUNDS: Final = 8
"""The sequences that each group of lanes compares for an item, if there are many items."""

STAGE: Final = "profile_filters"
"""The stage of the statistics that has the times of the kernels."""


class Pairs(NamedTuple):
    """Sequences that are compared with profiles, ordered by profile and then by sequence."""

    profiles: Int64Array  # The numbers of the profiles, of those that the device has
    sequences: Int64Array  # The numbers of the sequences, of those that are `PlacedBlock.order`

    def those(self, chosen: Any) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.profiles[chosen], self.sequences[chosen])

    @property
    def size(self) -> int:
        """The number of pairs."""
        return self.profiles.size


def items_of(profiles: Int64Array, size: int) -> AnyArray:
    """Return items of up to `size` pairs with one profile each."""
    begins = np.nonzero(np.diff(profiles, prepend=-1))[0]
    counts = np.diff(begins, append=profiles.size)
    parts = -(-counts // size)
    runs = np.repeat(np.arange(begins.size), parts)
    within = np.arange(runs.size) - np.repeat(np.cumsum(parts) - parts, parts)
    items = np.zeros(runs.size, dtype=ITEM)
    items["profile"] = profiles[begins[runs]]
    items["first"] = begins[runs] + within * size
    items["last"] = np.minimum(items["first"] + size, begins[runs] + counts[runs])
    return items


def rounds_of(comparisons: int, resident: int, at_once: int) -> int:
    """Return the comparisons of each group of lanes for an item, so that all blocks work.

    `resident` blocks are on the device, each of which compares `at_once` sequences.
    """
    return min(max(comparisons // (4 * resident * at_once), 1), _MAX_ROUNDS)


class PlacedBlock(NamedTuple):
    """A block on the device."""

    addresses: tuple[int, int, int]  # The members of the kernels' ``Sequences``
    # The numbers of the sequences in the block, the longest first, without empty ones.
    order: Int64Array
    sizes: Int64Array
    marked: BoolArray  # Which of them have a mark before the last residue
    lengths: LengthTables  # For all lengths and more
    # The addresses of the tables by length: `LengthTables` as float32 and uint32, and
    # `tables.word_moves` as int32.
    backgrounds: int
    byte_moves: int
    word_moves: int

    @property
    def longest(self) -> int:
        """The length of the longest sequence."""
        return int(self.sizes[0])


class FilterWorker(StreamWorker):
    """A stream that filters."""

    def __init__(self, device: Device, memory: int, stats: Stats) -> None:
        super().__init__(device, memory, stats, STAGE)
        self.pair_limit = min(MAX_PAIRS, memory // _BYTES_OF_PAIR)

    def counters(self, count: int) -> list[int]:
        """Return the addresses of counters of 32 bits, which are 0."""
        address = self.buffer("counters", 4 * count)
        self.stream.fill_zero(address, 4 * count)
        return [address + 4 * number for number in range(count)]

    def place(self, block: ProteinBlock, program: Program) -> PlacedBlock:
        """Copy a block with residues to the device, and pack its sequences there."""
        every = np.diff(block.offsets)
        order = np.argsort(-every, kind="stable")[: np.count_nonzero(every)]
        sizes = every[order]
        words = -(-sizes // WORD_RESIDUES)
        ends = np.cumsum(words)
        addresses = (
            self.buffer("residues", WORD_RESIDUES * int(ends[-1])),
            self.upload("first words", (ends - words).astype(np.uint32)),
            self.upload("lengths", sizes.astype(np.uint32)),
        )
        codes = self.upload("codes", block.codes)
        begins = self.upload("begins", block.offsets[order])
        self.launcher.launch_on(
            program,
            "pack_sequences",
            WARP_LANES * order.size,
            (codes, begins, *addresses, order.size),
        )
        longest = int(sizes[0])
        lengths = lengths_up_to(longest)
        moves = word_moves(lengths.move.size - 1)
        return PlacedBlock(
            addresses,
            order,
            sizes,
            _marked(block)[order],
            lengths,
            self.upload("backgrounds", lengths.null[: longest + 1]),
            self.upload("byte moves", lengths.move[: longest + 1].astype(np.uint32)),
            self.upload("word moves", moves[: longest + 1].astype(np.int32)),
        )

    def composition_sums(
        self, program: Program, placed: PlacedBlock, pairs: Pairs, odds: int
    ) -> Float64Array:
        """Return the chances of `bias_filter.scores_of_sums` for pairs."""
        keys = (pairs.profiles << 32 | pairs.sequences).astype(np.uint64)
        sums = self.buffer("sums", 16 * keys.size)
        at = self.upload("keys", keys)
        arguments = (*placed.addresses, at, keys.size, odds, sums)
        self.launcher.launch_on(program, "sum_compositions", keys.size, arguments)
        found = self.fetch(sums, 2 * keys.size, np.float64)
        self.launcher.report()
        return np.ascontiguousarray(found.reshape(-1, 2).T)


def _marked(block: ProteinBlock) -> BoolArray:
    """Return which sequences have a mark that another residue follows."""
    found = np.zeros(block.offsets.size - 1, dtype=np.bool_)
    places = np.flatnonzero(are_marks(block.codes))
    sequences = np.searchsorted(block.offsets, places, side="right") - 1
    found[sequences[places < block.offsets[sequences + 1] - 1]] = True
    return found
