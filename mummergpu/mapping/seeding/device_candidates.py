"""Finds the candidates of reads on a device, where their matches are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from mummergpu.cuda.device import AnyArray, Argument
from mummergpu.cuda.program import WARP_LANES, ProgramSource
from mummergpu.cuda.resident_matches import ResidentMatches
from mummergpu.cuda.stream_worker import Launcher
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.candidates.candidates import (
    ALL_FOUND,
    CANDIDATE,
    FARTHEST,
    NOTHING_KNOWN,
    UNIT,
    FoundCandidates,
    credits_of_qualities,
)
from mummergpu.mapping.options import MappingOptions
from mummergpu.mapping.placing.insert_size import PairSizes
from mummergpu.mapping.placing.pairing import Pairing
from mummergpu.mapping.placing.secondary import MIN_CLIPPED
from mummergpu.mapping.seeding.candidate_search import known_of_flanks
from mummergpu.mapping.seeding.pruning import BEST_KEPT
from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.scratch import ThreadArray
from mummergpu.sequence.bit_planes import BIT_PLANES_CONSTANTS
from mummergpu.sequence.codes import BREAK
from mummergpu.viterbi.recurrence.model import Costs

STAGE: Final = "mapping"
"""The stage to which the times of the kernels are added."""

COUNT_BYTES: Final = 4
"""The bytes of the number of candidates of a read."""

MAPPING_PROGRAM: Final = ProgramSource(
    "mapping",
    "mapping/program.cu",
    constants=(
        ("BREAK", BREAK),
        *BIT_PLANES_CONSTANTS,
        ("SCAN_COUNT_BYTES", COUNT_BYTES),
        ("CANDIDATE_BYTES", CANDIDATE.itemsize),
        ("NO_MATCH_KNOWN", NOTHING_KNOWN[0]),
        ("UNIT", UNIT),
        ("FARTHEST", FARTHEST),
        ("MIN_CLIPPED", MIN_CLIPPED),
        ("BEST_KEPT", BEST_KEPT),
        *((name.upper(), place) for place, name in enumerate(Costs._fields)),
    ),
)
"""The same program for every run; scores and options are arguments of the kernels."""


class DeviceCandidates:
    """Finds candidates as `candidate_search.CandidateFinder` does; several threads share one."""

    def __init__(self, reference: Reference, options: MappingOptions) -> None:
        self._starts = np.ascontiguousarray(reference.record_starts, dtype=np.int64)
        self._ends = self._starts + reference.record_lengths
        self._options = options
        self._costs = np.array(options.costs, dtype=np.int32)
        self._credits = credits_of_qualities(options.costs)
        self._rows = ThreadArray(CANDIDATE)

    def find(self, matches: ResidentMatches, block: ReadBlock, sizes: PairSizes) -> FoundCandidates:
        """Return the candidates of a block that may matter, of matches of at least the seed length.

        They are valid until the same thread finds those of another block. `DeviceMemoryError` is
        raised if they do not fit the device's memory.
        """
        work = _CandidateWork(matches, self._options)
        reads = work.place_reads(block)
        scoring = (work.place("costs", self._costs), work.place("credits", self._credits))
        target = (
            matches.reference,
            work.place("record starts", self._starts),
            work.place("record ends", self._ends),
            np.uint32(self._starts.size),
        )
        keys, match_counts = work.list_diagonals()
        candidates, counts = work.score(reads, target, scoring, keys, match_counts)
        pairing = sizes.pairing(block.paired, sizes.libraries_of(block))
        marks, kept_counts = work.mark(reads, scoring, pairing, candidates, counts)
        return work.download(candidates, counts, marks, kept_counts, self._rows)


class _CandidateWork:
    """The kernels for the matches of one block, and their memory."""

    def __init__(self, matches: ResidentMatches, options: MappingOptions) -> None:
        self._matches = matches
        self._worker = worker = matches.worker
        self._options = options
        self._count = matches.query_count
        self._rows = matches.forward.count + matches.reverse.count
        self._program = matches.load_program(MAPPING_PROGRAM)
        self._launcher = Launcher(
            worker.device, worker.stream, worker.workspace, worker.stats, STAGE
        )
        self._strands: tuple[Argument, ...] = (
            *matches.forward.arguments,
            *matches.reverse.arguments,
        )

    def place(self, name: str, array: AnyArray) -> int:
        """Copy an array to a buffer of the device; return its address."""
        self._worker.stats.add_bytes(to_device=array.nbytes)
        return self._worker.upload(name, array)

    def place_reads(self, block: ReadBlock) -> tuple[Argument, ...]:
        """Return the arguments that describe the reads; their qualities are copied."""
        matches = self._matches
        return (
            *(matches.offsets, self._count, matches.forward_planes, matches.reverse_planes),
            # Without qualities, no base says less than its cost.
            self.place("qualities", block.base_qualities) if block.has_qualities else 0,
        )

    def list_diagonals(self) -> tuple[tuple[int, int], int]:
        """List the matches of each read by diagonal; return the addresses of keys and counts."""
        buffer = self._worker.buffer
        # Where seeds are chosen, the search finds only the matches that count.
        filters = self._options.by_windows and self._options.max_occurrences is None
        window = self._options.seed_length if filters else 0
        keys, values = buffer("keys", 8 * self._rows), buffer("values", 8 * self._rows)
        counts = buffer("counts of matches", COUNT_BYTES * self._count)
        long_reads = buffer("long reads", 4 * self._count)
        long_count = buffer("number of long reads", 4)
        self._worker.stream.fill_zero(long_count, 4)
        self._launch_on_warps(
            "list_diagonals",
            self._count,
            (
                *self._strands,
                self._count,
                np.uint32(window),
                *(keys, values, counts, long_reads, long_count),
            ),
        )
        self._launcher.launch(
            self._program,
            "sort_long_reads",
            self._worker.device.resident_blocks,
            (*self._strands, counts, long_reads, long_count, keys, values),
        )
        return (keys, values), counts

    def score(
        self,
        reads: tuple[Argument, ...],
        target: tuple[Argument, ...],
        scoring: tuple[Argument, ...],
        keys: tuple[int, int],
        match_counts: int,
    ) -> tuple[int, int]:
        """Score all diagonals; return the addresses of the candidates and of their counts."""
        buffer = self._worker.buffer
        candidates = buffer("candidates", CANDIDATE.itemsize * self._rows)
        counts = buffer("counts of candidates", COUNT_BYTES * self._count)
        self._launch_on_warps(
            "score_diagonals",
            self._count,
            (
                *(*reads, *target, *scoring, *self._strands, match_counts, *keys),
                *(np.uint32(known) for known in known_of_flanks(self._options)),
                *(candidates, counts),
            ),
        )
        return candidates, counts

    def mark(
        self,
        reads: tuple[Argument, ...],
        scoring: tuple[Argument, ...],
        pairing: Pairing,
        candidates: int,
        counts: int,
    ) -> tuple[int, int]:
        """Mark the candidates to keep; return the addresses of the marks and of the counts."""
        buffer = self._worker.buffer
        marks = buffer("marks", self._rows)
        kept_counts = buffer("counts of kept candidates", COUNT_BYTES * self._count)
        mates = pairing.mates
        limits, prunes = self._options.limits, self._options.prunes
        begin = pairing.penalty_begin
        listed = pairing.penalties[begin : begin + pairing.last_size + 1 - pairing.first_size]
        penalties = self.place("penalties", listed)
        self._launch_on_warps(
            "mark_candidates",
            self._count // mates,
            (
                *(*reads, *scoring),
                *(penalties, pairing.first_size, pairing.last_size, self._options.unpaired),
                *(limits.seed_length, limits.margin, mates, int(prunes)),
                *(*self._strands, candidates, counts, marks, kept_counts),
            ),
        )
        return marks, kept_counts

    def download(
        self, candidates: int, counts: int, marks: int, kept_counts: int, room: ThreadArray
    ) -> FoundCandidates:
        """Copy the kept candidates to memory of the host."""
        worker = self._worker
        place = worker.buffer("candidate offsets", 8 * (self._count + 1))
        self._launcher.scan(self._program, kept_counts, self._count, place)
        # Other threads need this one's processor meanwhile.
        worker.stream.sleep_until_done()
        offsets = worker.fetch(place, self._count + 1, np.int64)
        seeds_kept = self._seeds_kept()
        rows = room.of_size(int(offsets[-1]))
        kept = worker.buffer("kept candidates", rows.nbytes)
        self._launch_on_warps(
            "write_candidates",
            self._count,
            (*self._strands, self._count, candidates, counts, marks, place, kept),
        )
        # The stage must not count the kernels that are still running.
        worker.stream.synchronize()
        with worker.stats.stage("matches_from_device"):
            worker.staging.copy_out(rows, kept)
        worker.stats.add_bytes(from_device=offsets.nbytes + rows.nbytes)
        self._launcher.report()
        return FoundCandidates(offsets, rows, seeds_kept)

    def _seeds_kept(self) -> ByteArray:
        """Copy to the host how many seeds of each read have all their matches."""
        seeds_kept = np.full(self._count, ALL_FOUND, dtype=np.uint8)
        for matches in (self._matches.forward, self._matches.reverse):
            if matches.seeds:
                seeds = self._worker.fetch(matches.seeds, self._count, np.uint8)
                np.minimum(seeds_kept, seeds, out=seeds_kept)
                self._worker.stats.add_bytes(from_device=seeds.nbytes)
        return seeds_kept

    def _launch_on_warps(self, kernel: str, items: int, arguments: Sequence[Argument]) -> None:
        self._launcher.launch_on(self._program, kernel, WARP_LANES * items, arguments)
