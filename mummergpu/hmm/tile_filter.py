"""The Viterbi filter of searches by threads in tiles, two sequences a thread."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from mummergpu.cuda.device import AnyArray, BlockShape, Device
from mummergpu.cuda.kernel_cache import Programs
from mummergpu.cuda.program import BLOCK_THREADS
from mummergpu.errors import OptionError
from mummergpu.hmm.device_work import FilterWorker, Pairs, PlacedBlock, items_of
from mummergpu.hmm.filter_variants import (
    SCHEDULERS,
    TILE_THREADS,
    WORD_AGAIN,
    ThreadPolicy,
    border_rows,
    thread_program,
    tile_blocks,
    tile_count,
    tile_items,
    tile_table,
)
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.runtime.arrays import BoolArray, Int64Array

KERNEL: Final = "score_in_tiles"

AUTO: Final = "auto"
WARP: Final = "warp"
_FASTEST: Final = "t8hrrrs"

_TILES_FROM: Final = ((23, 12_500), (79, 25_000), (354, 50_000), (600, 100_000))
"""The most nodes of a profile, and the sequences from which on tiles are faster than warps: an
H100's, from ``benchmarks/results/hmm-study/schemes.json``."""

_RESIDENT_THREADS: Final = 2048
"""Of a multiprocessor."""

_LONG: Final = 2
"""A sequence is long from this multiple of a scheduler's share of residues, or the mean length."""


def tile_policy(asked: str, nodes: int, sequences: int) -> ThreadPolicy | None:
    """Return the policy of tiles for a profile and some sequences; None stands for warps.

    `asked` is ``auto``, ``warp`` or the code of a policy; others raise `OptionError`.
    """
    if asked == AUTO:
        fewest = next((fewest for most, fewest in _TILES_FROM if nodes <= most), sequences + 1)
        return ThreadPolicy.from_code(_FASTEST) if sequences >= fewest else None
    if asked == WARP:
        return None
    try:
        policy = ThreadPolicy.from_code(asked)
    except OptionError as error:
        raise OptionError("filter_policy", error.message) from error
    if not policy.is_tiled or policy.sequences != "r" or policy.steps == "c":
        raise OptionError(
            "filter_policy",
            f"'{asked}' is for studies; searches take auto, warp, or tiles of sequences as they "
            f"were read without constant memory, such as {_FASTEST}",
        )
    return policy


def multiprocessors(device: Device) -> int:
    """Return about the number of multiprocessors of a device."""
    return max(device.resident_blocks * BLOCK_THREADS // _RESIDENT_THREADS, 1)


class TiledPairs(NamedTuple):
    """The pairs whose words threads have computed, and the words."""

    numbers: Int64Array
    words: Int64Array


class TileFilter:
    """Computes Viterbi's words by threads where these are faster than warps.

    The filters are numbered as on the device; `asked` is as for `tile_policy`.
    """

    def __init__(
        self, device: Device, filters: Sequence[ProfileFilter], asked: str, programs: Programs
    ) -> None:
        self._multiprocessors = multiprocessors(device)
        self._filters = filters
        self._asked = asked
        self._programs = programs

    def words_of(
        self, worker: FilterWorker, placed: PlacedBlock, pairs: Pairs, limits: AnyArray
    ) -> TiledPairs:
        """Return the words of the pairs that threads compute faster, without doubtful ones.

        `limits` are the kernels' ``WordLimits`` of all profiles.
        """
        done = np.zeros(pairs.size, dtype=np.bool_)
        words = np.zeros(pairs.size, dtype=np.int64)
        borders = np.nonzero(np.diff(pairs.profiles, prepend=-1, append=-1))[0]
        for begin, end in pairwise(borders.tolist()):
            number = int(pairs.profiles[begin])
            nodes = self._filters[number].profile.nodes
            policy = tile_policy(self._asked, nodes, end - begin)
            if policy is None:
                continue
            sequences = pairs.sequences[begin:end]
            short = begin + self._long_count(placed.sizes[sequences])
            if self._border_bytes(placed, pairs.sequences[short:end]) > worker.memory // 4:
                # Warps need no memory for each residue.
                continue
            own = self._scores(worker, placed, pairs.sequences[short:end], number, policy, limits)
            words[short:end] = own
            done[short:end] = own != WORD_AGAIN
        return TiledPairs(*_chosen(done, words))

    def _long_count(self, sizes: Int64Array) -> int:
        """Return the number of sequences, the longest first, that are better left to warps.

        A thread walks along all of a sequence, and the others would wait for it in the end.
        """
        total = int(sizes.sum())
        share = total / (2 * TILE_THREADS * SCHEDULERS * self._multiprocessors)
        return int(np.count_nonzero(sizes > _LONG * max(share, total / sizes.size)))

    def _border_bytes(self, placed: PlacedBlock, sequences: Int64Array) -> int:
        """Return the memory of the tiles' borders for sequences, of which the first is longest."""
        blocks = tile_blocks(tile_items(sequences.size), self._multiprocessors)
        return 8 * border_rows(int(placed.sizes[sequences[0]])) * blocks * TILE_THREADS

    def _scores(
        self,
        worker: FilterWorker,
        placed: PlacedBlock,
        sequences: Int64Array,
        number: int,
        policy: ThreadPolicy,
        limits: AnyArray,
    ) -> Int64Array:
        one = self._filters[number]
        tiles = tile_count(one.profile.nodes)
        program = self._programs.load(thread_program(policy, one.profile.nodes))
        items = items_of(np.zeros_like(sequences), 2 * TILE_THREADS)
        blocks = tile_blocks(items.size, self._multiprocessors)
        table = tile_table(one.words, tiles, policy.emissions == "t")
        scores = worker.buffer("tile scores", 4 * sequences.size)
        (ticket,) = worker.counters(1)
        arguments = (
            *(*placed.addresses, worker.upload("tile pairs", sequences.astype(np.uint32))),
            *(worker.upload("tile items", items.view(np.uint32)), items.size),
            *(worker.upload("tile table", table), table.size // 4, tiles),
            *(worker.upload("tile limits", limits[number]), placed.word_moves, ticket, scores),
            worker.buffer("tile borders", self._border_bytes(placed, sequences)),
        )
        shape = BlockShape(TILE_THREADS, 0)
        worker.launcher.launch(program, KERNEL, blocks, arguments, shape)
        found = worker.fetch(scores, sequences.size, np.int32)
        worker.launcher.report()
        return found.astype(np.int64)


def _chosen(done: BoolArray, words: Int64Array) -> tuple[Int64Array, Int64Array]:
    numbers = np.nonzero(done)[0]
    return numbers, words[numbers]
