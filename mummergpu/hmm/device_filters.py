"""Filters the sequences of blocks for many profiles at once, on a device.

All profiles of one row shape share a launch of SSV. The host gets a list of the pairs that pass,
decides as `filters` does, and has the device compare the rest by MSV, by composition and by
Viterbi.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np

from mummergpu.cuda.device import AnyArray, Buffer, Device, DeviceMemoryError, Program
from mummergpu.cuda.kernel_cache import Programs
from mummergpu.cuda.program import BLOCK_THREADS
from mummergpu.errors import BackendError
from mummergpu.hmm.bias_filter import scores_of_sums
from mummergpu.hmm.byte_filters import OVERFLOW
from mummergpu.hmm.device_work import STAGE, FilterWorker, Pairs, PlacedBlock, items_of, rounds_of
from mummergpu.hmm.filter_decisions import (
    MSV_SCORE,
    Decisions,
    ScoredPairs,
    compare_bytes,
    compare_words,
    keep_pairs,
)
from mummergpu.hmm.filter_programs import (
    LIMITS,
    LOWEST_FLOOR,
    ODDS_OF_PROFILE,
    SEQUENCE_PROGRAM,
    RowProgram,
    RowShape,
    byte_program,
    byte_shape,
    byte_table,
    word_floor,
    word_overflow,
    word_program,
    word_shape,
    word_table,
    words_fit,
)
from mummergpu.hmm.filters import ProfileFilter, plain_background
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.hmm.stage_counts import VITERBI, Reached
from mummergpu.hmm.tables import BYTE_BASE, BYTE_LEAVE, BYTE_SCALE, LN2, word_moves
from mummergpu.hmm.tile_filter import AUTO, TileFilter
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.stats import Stats

STREAMS: Final = 4
"""The blocks that are filtered at once: the host decides about some while the device computes, and
its decisions take longer than the kernels."""


class _Group(NamedTuple):
    """Profiles with rows of one shape, which follow each other by their sizes."""

    first: int
    end: int
    program: RowProgram
    loaded: Program
    lanes: int
    tables: Buffer

    @property
    def quads(self) -> int:
        """The units of 16 bytes of a profile's table."""
        return self.program.shape.shared_bytes // 16

    def table_of(self, profile: int) -> int:
        """Return the address of a profile's table."""
        return self.tables.address + 16 * self.quads * (profile - self.first)

    @property
    def at_once(self) -> int:
        """The sequences that a block of threads compares at once."""
        return self.program.shape.threads // self.lanes


class _Constants:
    """The numbers of each profile besides its tables, in arrays over all profiles.

    Attributes
    ----------
    limits : ndarray of `LIMITS`
        For SSV.
    costs : ndarray of uint32, shape (profiles, 2)
        The kernels' ``MsvCosts``.
    odds : ndarray of float64, shape (profiles, ODDS_OF_PROFILE)
        For the comparison of compositions.
    has_composition : ndarray of bool
        Whether the profile has its composition.
    floors, overflows : ndarray of int64
        The kernels' ``WordLimits``; from the floors the moves of the longest sequence are missing.
    words_fit : ndarray of bool
        Whether a device can compute Viterbi's words.
    scores : ndarray of float64, shape (profiles, 3)
        The least passing scores (`ScoredPairs.least`).
    """

    def __init__(
        self,
        filters: Sequence[ProfileFilter],
        tables: Sequence[_Tables],
    ) -> None:
        self.limits = np.zeros(len(filters), dtype=LIMITS)
        self.limits["entry"] = [one.bytes.entry for one in filters]
        self.limits["bias"] = [one.bytes.bias for one in filters]
        self.limits["score"] = [one.scores.msv for one in filters]
        pairs = self.limits["entry"], self.limits["bias"]
        self.costs = np.stack(pairs, axis=1)
        self.odds = np.ones((len(filters), ODDS_OF_PROFILE))
        self.has_composition = np.array([one.bias is not None for one in filters], dtype=np.bool_)
        for number, one in enumerate(filters):
            if one.bias is not None:
                self.odds[number, : one.bias.odds.size] = one.bias.odds
                self.odds[number, -2:] = one.bias.steps
        self.floors, self.overflows = (
            np.array([one.limits for one in tables], dtype=np.int64).reshape(-1, 2).T
        )
        self.words_fit = np.array([one.words_fit for one in tables], dtype=np.bool_)
        self.scores = np.array([one.scores for one in filters], dtype=np.float64).reshape(-1, 3)


class _Tables(NamedTuple):
    """The tables of a profile for a device, and what else is computed from the filter's own."""

    bytes: UInt32Array
    words: UInt32Array
    words_fit: bool
    limits: tuple[int, int]  # The kernels' ``WordLimits``


def _msv_from_ssv(cells: Int64Array, begin: Int64Array, bias: Int64Array) -> Int64Array:
    """Return `byte_filters.msv_from_ssv` for pairs."""
    left: Int64Array = cells + begin - BYTE_LEAVE
    left[left > BYTE_BASE] = -1
    left[cells + begin >= 255 - bias] = OVERFLOW
    saturated = cells >= 127 - bias
    left[saturated] = np.where(begin[saturated] >= 128, OVERFLOW, -1)
    left[BYTE_BASE - begin + BYTE_LEAVE + bias >= 127] = -1
    return left


class DeviceFilters:
    """The filters of many profiles, on a device; up to `STREAMS` threads may filter at once.

    Parameters
    ----------
    device : Device
        The device. It must be current in the thread that opens and that closes this.
    programs : Programs
        The programs of the device, which further filters share.
    filters : sequence of ProfileFilter
        The profiles, all with the same thresholds. Steps that a device cannot do run on the
        processor: all of them if a row is too long for the device's memory of a block.
    memory : int
        The bytes of device memory to use.
    stats : Stats
        Collects counts and the times of kernels.
    executor : concurrent.futures.Executor
        Compiles, and makes tables.
    filter_policy : str
        Whether Viterbi has a warp for each sequence: see `tile_filter.tile_policy`.

    Raises
    ------
    BackendError
        If a program does not compile, or the memory is too small.
    """

    def __init__(
        self,
        device: Device,
        programs: Programs,
        filters: Sequence[ProfileFilter],
        memory: int,
        stats: Stats,
        executor: Executor,
        filter_policy: str = AUTO,
    ) -> None:
        self._device = device
        self._filters = filters
        self._stats = stats
        by_size = sorted(range(len(filters)), key=lambda one: filters[one].profile.nodes)
        self._programs = programs
        # One task for all of a profile: threads would wait for the interpreter's lock.
        every = executor.map(self._tables_of, [filters[one] for one in by_size])
        tables = {one: found for one, found in zip(by_size, every, strict=True) if found}
        self._numbers = [*tables]
        self._others = sorted(set(by_size) - set(tables))
        own = [filters[one] for one in tables]
        self._own = own
        self._tiles = TileFilter(device, own, filter_policy, self._programs)
        self._constants = _Constants(own, [*tables.values()])
        self._stack = ExitStack()
        try:
            with stats.stage("kernels_compiled"):
                self._row_programs = self._needed(own)
                self._programs.load_all([one.source for one in self._row_programs], executor)
                self._sequence_program = self._programs.load(SEQUENCE_PROGRAM)
            self._stream = device.new_stream()
            self._stack.callback(self._stream.free)
            byte_tables = [one.bytes for one in tables.values()]
            word_tables = [one.words for one in tables.values()]
            self._bytes = [*self._groups(byte_shape, byte_program, byte_tables)]
            self._words = [*self._groups(word_shape, word_program, word_tables)]
            self._limits = self._upload(self._constants.limits)
            self._odds = self._upload(self._constants.odds)
            self._stream.synchronize()
            left = memory - sum(one.tables.size for one in (*self._bytes, *self._words))
            self._idle: queue.SimpleQueue[FilterWorker] = queue.SimpleQueue()
            for _ in range(STREAMS):
                worker = FilterWorker(device, left // STREAMS, stats)
                self._stack.callback(worker.free)
                self._idle.put(worker)
        except DeviceMemoryError as error:
            self.close()
            raise BackendError(
                "cuda", f"the profiles need more memory of the GPU: {error}"
            ) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free all memory of the device."""
        self._stack.close()

    def survivors(self, block: ProteinBlock) -> list[Int64Array]:
        """Return `ProfileFilter.survivors` for each profile."""
        return [one.sequences for one in self.filtered(block, False)]

    def filtered(self, block: ProteinBlock, counts: bool) -> list[Reached]:
        """Return `ProfileFilter.filtered` for each profile."""
        found = [Reached.of_all(np.zeros(0, dtype=np.int64), 0)] * len(self._filters)
        for number in self._others:
            found[number] = self._filters[number].filtered(block, self._stats, counts)
        every = sum(one.profile.nodes for one in self._filters)
        self._stats.add_cells(STAGE, int(block.codes.size) * every)
        if self._own:
            nodes = sum(one.profile.nodes for one in self._own)
            self._stats.add(cells=int(block.codes.size) * nodes)
        if self._own and self._own[0].thresholds.F1 >= 1:
            for number in self._numbers:
                found[number] = self._filters[number].unfiltered(block, self._stats)
            return found
        if not self._own or not block.codes.size:
            return found
        try:
            with self._device.current(), self._worker() as worker:
                placed = worker.place(block, self._sequence_program)
                at_once = max(1, worker.pair_limit // placed.order.size)
                for first in range(0, len(self._own), at_once):
                    end = min(first + at_once, len(self._own))
                    passed, filters = self._filter(worker, placed, block, first, end, counts)
                    bounds = np.searchsorted(passed.profiles, np.arange(first, end + 1))
                    for one in range(first, end):
                        own = slice(bounds[one - first], bounds[one - first + 1])
                        chosen = placed.order[passed.sequences[own]]
                        order = np.argsort(chosen)
                        found[self._numbers[one]] = Reached(chosen[order], filters[own][order])
        except DeviceMemoryError as error:
            message = f"a block of proteins needs more memory of the GPU: {error}"
            raise BackendError("cuda", message) from None
        return found

    def _filter(
        self,
        worker: FilterWorker,
        placed: PlacedBlock,
        block: ProteinBlock,
        first: int,
        end: int,
        counts: bool,
    ) -> tuple[Pairs, Int64Array]:
        """Return `filtered` for the pairs of the profiles from `first` to `end` - 1."""
        constants, stats = self._constants, self._stats
        pairs, cells = self._passing_cells(worker, placed, first, end)
        pairs, left = self._pass_msv(worker, placed, pairs, cells)
        stats.add(passed_msv=pairs.size)
        if not pairs.size:
            return pairs, pairs.sequences
        sizes = placed.sizes[pairs.sequences]
        background = plain_background(placed.lengths, sizes)
        is_corrected = self._own[0].thresholds.bias_filter
        if is_corrected:
            has_composition = constants.has_composition[pairs.profiles]
            # Without one HMMER's number is no score: HMMER decides about these itself.
            background.margin[~has_composition] = np.inf
            chosen = np.nonzero(has_composition)[0]
            sums = worker.composition_sums(
                self._sequence_program, placed, pairs.those(chosen), self._odds.address
            )
            background.nats[chosen], background.margin[chosen] = scores_of_sums(sums, sizes[chosen])
        byte_moves = placed.lengths.move[sizes]
        scored = ScoredPairs(pairs.profiles, left, byte_moves, background, constants.scores)
        decisions = Decisions.of_pairs(pairs.size)
        compared = decisions.compared[: compare_bytes(scored, decisions)]
        words = self._viterbi_words(worker, placed, block, pairs.those(compared))
        moves = word_moves(placed.lengths.move.size - 1)[sizes[compared]]
        compare_words(scored, words, moves, compared.size, decisions)
        kept = np.empty(pairs.size, dtype=np.int64)
        kept = kept[: keep_pairs(decisions, counts, kept)]
        passed = decisions.passed[kept]
        stats.add(passed_viterbi=Reached(kept, passed).passing(VITERBI).size)
        return pairs.those(kept), passed

    def _passing_cells(
        self, worker: FilterWorker, placed: PlacedBlock, first: int, end: int
    ) -> tuple[Pairs, Int64Array]:
        """Return the pairs that SSV does not drop, and their highest cells."""
        lengths = placed.longest + 1
        limits = self._limits.address + LIMITS.itemsize * first
        least = worker.buffer("least cells", (end - first) * lengths)
        by_length = placed.backgrounds, placed.byte_moves, lengths
        arguments = (limits, end - first, *by_length, least)
        worker.launcher.launch_on(
            self._sequence_program, "bound_cells", (end - first) * lengths, arguments
        )
        count = placed.order.size
        parts = [(group, max(group.first, first), min(group.end, end)) for group in self._bytes]
        parts = [part for part in parts if part[1] < part[2]]
        found = worker.buffer("found pairs", 8 * count * (end - first))
        found_count, *tickets = worker.counters(1 + len(parts))
        for (group, begin, stop), ticket in zip(parts, tickets, strict=True):
            size = group.at_once * self._rounds((stop - begin) * count, group)
            items = (stop - begin) * -(-count // size)
            worker.launcher.launch(
                group.loaded,
                "find_cells",
                self._blocks(items, group),
                (
                    *(*placed.addresses, count),
                    *(group.table_of(begin), group.quads),
                    *(least + (begin - first) * lengths, lengths),
                    *(stop - begin, begin, size, ticket, found, found_count),
                ),
                group.program.shape,
            )
        keys = worker.fetch(found, int(worker.fetch(found_count, 1, np.uint32)[0]), np.uint64)
        worker.launcher.report()
        # The device lists them in any order.
        keys.sort()
        pairs = Pairs(
            (keys >> np.uint64(40)).astype(np.int64),
            (keys >> np.uint64(8) & np.uint64(0xFFFFFFFF)).astype(np.int64),
        )
        return pairs, (keys & np.uint64(255)).astype(np.int64)

    def _pass_msv(
        self, worker: FilterWorker, placed: PlacedBlock, pairs: Pairs, cells: Int64Array
    ) -> tuple[Pairs, Int64Array]:
        """Return the pairs that pass MSV, and the bytes with which they leave the profile."""
        constants = self._constants
        sizes = placed.sizes[pairs.sequences]
        move = placed.lengths.move[sizes]
        limits = constants.limits[pairs.profiles]
        bias = limits["bias"].astype(np.int64)
        begin = BYTE_BASE - move - limits["entry"].astype(np.int64)
        left = _msv_from_ssv(cells, begin, bias)
        doubtful = np.nonzero(left < 0)[0]
        costs = worker.upload("costs", constants.costs)
        left[doubtful] = self._scores(
            worker, placed, self._bytes, "score_passes", pairs.those(doubtful), costs
        )
        nats = (left - move - BYTE_BASE).astype(np.float32) / BYTE_SCALE - np.float32(3)
        nats -= placed.lengths.null[sizes]
        bits = (nats.astype(np.float64) / LN2).astype(np.float32)
        passes = (left == OVERFLOW) | (bits >= constants.scores[pairs.profiles, MSV_SCORE])
        return pairs.those(passes), left[passes]

    def _viterbi_words(
        self, worker: FilterWorker, placed: PlacedBlock, block: ProteinBlock, pairs: Pairs
    ) -> Int64Array:
        """Return `ProfileFilter.viterbi_words` for pairs."""
        constants, moves = self._constants, word_moves(placed.lengths.move.size - 1)
        floors = constants.floors + int(moves[placed.longest])
        on_device = constants.words_fit & (floors >= LOWEST_FLOOR)
        # Cells after a mark might be above so low a floor.
        is_exact = floors >= constants.overflows - (1 << 15)
        suits = on_device[pairs.profiles] & (
            is_exact[pairs.profiles] | ~placed.marked[pairs.sequences]
        )
        words = np.empty(suits.size, dtype=np.int64)
        chosen = np.nonzero(suits)[0]
        limits = np.stack([floors, constants.overflows], axis=1).astype(np.int32)
        tiled = self._tiles.words_of(worker, placed, pairs.those(chosen), limits)
        words[chosen[tiled.numbers]] = tiled.words
        chosen = np.delete(chosen, tiled.numbers)
        words[chosen] = self._scores(
            worker,
            placed,
            self._words,
            "score_paths",
            pairs.those(chosen),
            worker.upload("limits", limits),
        )
        others = np.nonzero(~suits)[0]
        for profile in np.unique(pairs.profiles[others]):
            own = others[pairs.profiles[others] == profile]
            sequences = placed.order[pairs.sequences[own]]
            words[own] = self._own[profile].viterbi_words(block, sequences, placed.lengths)
        return words

    def _scores(
        self,
        worker: FilterWorker,
        placed: PlacedBlock,
        groups: Sequence[_Group],
        kernel: str,
        pairs: Pairs,
        constants: int,
    ) -> Int64Array:
        """Return a kernel's results for pairs; `constants` has two words for each profile."""
        count = pairs.size
        if not count:
            return np.zeros(0, dtype=np.int64)
        sequences = worker.upload("pairs", pairs.sequences.astype(np.uint32))
        scores = worker.buffer("scores", 4 * count)
        # Viterbi's moves are in words, MSV's in bytes.
        moves = placed.word_moves if groups is self._words else placed.byte_moves
        bounds = [np.searchsorted(pairs.profiles, (one.first, one.end)) for one in groups]
        parts = [
            (
                group,
                begin,
                items_of(pairs.profiles[begin:end] - group.first, self._size(group, count)),
            )
            for group, (begin, end) in zip(groups, bounds, strict=True)
            if begin < end
        ]
        all_items = worker.upload("items", np.concatenate([items for _, _, items in parts]))
        for (group, begin, items), ticket in zip(parts, worker.counters(len(parts)), strict=True):
            worker.launcher.launch(
                group.loaded,
                kernel,
                self._blocks(items.size, group),
                (
                    *(*placed.addresses, sequences + 4 * int(begin), all_items, items.size),
                    *(group.tables.address, group.quads, constants + 8 * group.first),
                    *(moves, ticket, scores + 4 * int(begin)),
                ),
                group.program.shape,
            )
            all_items += items.nbytes
        found = worker.fetch(scores, count, np.int32)
        worker.launcher.report()
        return found.astype(np.int64)

    def _size(self, group: _Group, count: int) -> int:
        """Return the number of pairs of an item, given `count` pairs."""
        return group.at_once * self._rounds(count, group)

    def _rounds(self, comparisons: int, group: _Group) -> int:
        return rounds_of(comparisons, self._resident(group), group.at_once)

    def _blocks(self, items: int, group: _Group) -> int:
        return min(items, self._resident(group))

    def _resident(self, group: _Group) -> int:
        """Return about the number of blocks of a group's launch that are resident at once."""
        return max(1, self._device.resident_blocks * BLOCK_THREADS // group.program.shape.threads)

    @contextmanager
    def _worker(self) -> Iterator[FilterWorker]:
        """Lend a worker that no other thread uses."""
        worker = self._idle.get()
        try:
            yield worker
        finally:
            # After an error no kernel may be running that reads memory of the worker.
            worker.stream.synchronize()
            worker.launcher.forget()
            self._idle.put(worker)

    def _tables_of(self, one: ProfileFilter) -> _Tables | None:
        """Return the tables of a profile; None if a block of threads has no room for SSV's."""
        nodes = one.profile.nodes
        rows, words = byte_shape(nodes), word_shape(nodes)
        # Besides the table, a block needs some bytes for its ticket.
        room = self._device.shared_bytes - 1024
        if byte_program(rows).shape.shared_bytes > room or one.bytes.bias >= 62:
            return None
        return _Tables(
            byte_table(one.bytes, rows),
            word_table(one.words, words),
            word_program(words).shape.shared_bytes <= room and words_fit(one.words),
            (word_floor(one.words), word_overflow(one.words)),
        )

    def _needed(self, own: Sequence[ProfileFilter]) -> set[RowProgram]:
        """Return the programs of all row shapes."""
        sizes = {one.profile.nodes for one in own}
        needed = {byte_program(byte_shape(nodes)) for nodes in sizes}
        fits = self._constants.words_fit.tolist()
        sizes = {one.profile.nodes for one, is_fitting in zip(own, fits, strict=True) if is_fitting}
        return needed | {word_program(word_shape(nodes)) for nodes in sizes}

    def _groups(
        self,
        shape_of: Callable[[int], RowShape],
        program_of: Callable[[RowShape], RowProgram],
        tables: Sequence[UInt32Array],
    ) -> Iterator[_Group]:
        """Yield groups of profiles of one row shape, with their tables on the device."""
        end = 0
        for shape, some in groupby(self._own, key=lambda one: shape_of(one.profile.nodes)):
            first, program = end, program_of(shape)
            end += len([*some])
            if program in self._row_programs:
                loaded = self._programs.load(program.source)
                own = self._upload(np.concatenate(tables[first:end]))
                yield _Group(first, end, program, loaded, shape.lanes, own)

    def _upload(self, array: AnyArray) -> Buffer:
        """Return memory with an array that stays."""
        buffer = self._device.allocate(max(array.nbytes, 1))
        self._stack.callback(buffer.free)
        self._stream.copy_in(buffer.address, array.reshape(-1).view(np.uint8))
        self._stream.synchronize()
        return buffer
