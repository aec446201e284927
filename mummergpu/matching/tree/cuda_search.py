"""The work of one stream: a block of queries in, its MEMs on all resident pages out.

The kernels follow each other as in the paper: match, then print. Both write into exact
buffers: what is to be written is counted first, the counts become offsets, and the offsets
say where each thread writes. Between the kernels nothing comes back to the host but two
totals, by which the next buffers are measured.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.cuda.device import Argument
from mummergpu.input.queries import QueryBlock
from mummergpu.matching.backends.device_codes import WORD_BYTES
from mummergpu.matching.backends.stream_searcher import COUNTER_BYTES, StreamSearcher
from mummergpu.matching.columns import MemColumns
from mummergpu.matching.tree.cuda_arrays import DeviceCandidates, DeviceMems, DeviceQueries, Job
from mummergpu.matching.tree.cuda_pages import ResidentPage
from mummergpu.sequence.codes import CodeArray

CANDIDATE_BYTES: Final = 16
"""Of a candidate match, as in ``match.cu``."""

KEPT_BYTES: Final = 32
"""Of the few MEMs of a candidate that are kept by the counting kernel, as in ``print.cu``."""

FEW_ROWS: Final = 32
"""As in ``order.cu``: candidates with more rows than this are listed."""

FIRST_PLACE: Final = 0
LATER_PLACE: Final = 1
OTHER_PLACE: Final = 2
"""Rooms for MEMs: those on a later page are merged into the place that is not in use."""

LONG_COUNT: Final = 0
NODE_VISITS: Final = {"match_kernel": 8, "count_mems": 16, "write_mems": 24}
"""Where in the room of counters each of them is."""


class Searcher(StreamSearcher[Job]):
    """Searches trees: match, then print (`stream_searcher.StreamSearcher`)."""

    stage = "print_kernel"

    def find_mems(
        self, job: Job, block: QueryBlock, codes: CodeArray, most: int
    ) -> MemColumns | None:
        """Return the MEMs of a block on all pages, or None if there are too many."""
        queries = self._upload(job, block, codes)
        try:
            found = self._search_page(job, job.pages[0], queries, most, FIRST_PLACE)
            for page in job.pages[1:]:
                if found is None:
                    return None
                later = self._search_page(job, page, queries, most - found.count, LATER_PLACE)
                found = None if later is None else self._merge(job, queries, found, later)
            if found is None:
                return None
            return self._download(queries.count, found.offsets, found.columns, found.count)
        finally:
            self._stream.synchronize()
            if queries.texture is not None:
                queries.texture.free()

    def _upload(self, job: Job, block: QueryBlock, codes: CodeArray) -> DeviceQueries:
        """Copy a block to the device, and bind a texture if the policy says so."""
        uploaded = self._upload_block(block, codes)
        texture = None
        if job.query_texture:
            texels = uploaded.size // WORD_BYTES
            texture = self._device.linear_texture(uploaded.codes, texels, WORD_BYTES)
        return DeviceQueries(
            block.query_count, codes.size, uploaded.offsets, uploaded.codes, texture
        )

    def _search_page(
        self, job: Job, page: ResidentPage, queries: DeviceQueries, most: int, place: int
    ) -> DeviceMems | None:
        candidates = self._match(job, page, queries)
        return self._print(job, page, queries, candidates, most, place)

    def _match(self, job: Job, page: ResidentPage, queries: DeviceQueries) -> DeviceCandidates:
        """Find the candidate matches of all queries on a page."""
        room = self._workspace.room
        records = room("candidates", CANDIDATE_BYTES * queries.base_count)
        counts = room("candidate counts", 4 * queries.count)
        counters = room("counters", COUNTER_BYTES)
        self._stream.fill_zero(counters, COUNTER_BYTES)
        self._launcher.launch_on(
            job.program,
            "match_kernel",
            queries.count,
            (
                *page.tree_arguments,
                *page.reference_arguments,
                *queries.arguments,
                queries.offsets,
                np.uint32(queries.count),
                np.uint32(job.minimum_length),
                records,
                counts,
                counters + NODE_VISITS["match_kernel"],
            ),
        )
        offsets = room("candidate offsets", 8 * (queries.count + 1))
        self._launcher.scan(job.program, counts, queries.count, offsets)
        count = self._read_total(offsets, queries.count)
        self._stats.add(candidate_matches=count)
        names = room("candidate queries", 4 * count)
        if count > 0:
            self._launcher.launch_on(
                job.program, "name_queries", queries.count, (offsets, queries.count, names)
            )
        return DeviceCandidates(records, offsets, names, count)

    def _print(
        self,
        job: Job,
        page: ResidentPage,
        queries: DeviceQueries,
        candidates: DeviceCandidates,
        most: int,
        place: int,
    ) -> DeviceMems | None:
        """Turn candidate matches into MEMs, or return None if they are too many."""
        room = self._workspace.room
        kept = room("kept mems", KEPT_BYTES * candidates.count)
        counts = room("mem counts", 4 * candidates.count)
        counters = room("counters", COUNTER_BYTES)
        length = np.uint32(job.minimum_length)
        what: tuple[Argument, ...] = (
            *page.tree_arguments,
            *queries.arguments,
            queries.offsets,
            length,
        )
        which = (candidates.records, candidates.offsets, candidates.queries, candidates.count)
        where: tuple[Argument, ...] = (
            page.page.begin,
            np.uint32(page.base_count),
            np.uint32(page.page.owned_end - page.page.begin),
            job.joined_count,
            job.joined_reference,
        )
        if candidates.count > 0:
            arguments: tuple[Argument, ...] = (
                *what,
                *which,
                *where,
                kept,
                counts,
                counters + NODE_VISITS["count_mems"],
            )
            self._launcher.launch_on(job.program, "count_mems", candidates.count, arguments)
        offsets = room("mem offsets", 8 * (candidates.count + 1))
        self._launcher.scan(job.program, counts, candidates.count, offsets)
        query_offsets = room(f"offsets of mems {place}", 8 * (queries.count + 1))
        self._launcher.launch_on(
            job.program,
            "offsets_of_queries",
            queries.count + 1,
            (candidates.offsets, offsets, queries.count, query_offsets),
        )
        count = self._read_total(offsets, candidates.count)
        if count > most:
            return None
        columns = self._columns(place, count)
        if count > 0:
            arguments = (*what, *which, *where, kept, offsets, *columns)
            self._launcher.launch_on(
                job.program,
                "write_mems",
                candidates.count,
                (*arguments, counters + NODE_VISITS["write_mems"]),
            )
            self._order(job, candidates, offsets, columns, count)
        if job.profile:
            self._read_visits(counters)
        return DeviceMems(place, query_offsets, columns, count)

    def _order(
        self,
        job: Job,
        candidates: DeviceCandidates,
        offsets: int,
        columns: tuple[int, int, int],
        count: int,
    ) -> None:
        """Order the MEMs of each candidate match by their starts in the reference."""
        long_candidates = self._workspace.room("long candidates", 8 * (count // FEW_ROWS + 1))
        long_count = self._workspace.room("counters", COUNTER_BYTES) + LONG_COUNT
        self._launcher.launch_on(
            job.program,
            "order_rows",
            candidates.count,
            (offsets, candidates.count, *columns, long_candidates, long_count),
        )
        if count > FEW_ROWS:
            self._launcher.launch(
                job.program,
                "order_long_rows",
                min(count // FEW_ROWS, self._device.resident_blocks),
                (offsets, long_candidates, long_count, *columns),
            )

    def _merge(
        self, job: Job, queries: DeviceQueries, found: DeviceMems, later: DeviceMems
    ) -> DeviceMems:
        """Merge the MEMs on earlier pages with those on a later one."""
        place = OTHER_PLACE if found.place == FIRST_PLACE else FIRST_PLACE
        offsets = self._workspace.room(f"offsets of mems {place}", 8 * (queries.count + 1))
        count = found.count + later.count
        merged = DeviceMems(place, offsets, self._columns(place, count), count)
        self._launcher.launch_on(
            job.program,
            "merge_pages",
            queries.count + 1,
            (*found.arguments, *later.arguments, queries.count, *merged.arguments),
        )
        return merged

    def _read_visits(self, counters: int) -> None:
        """Add the nodes that the kernels have visited to the stats."""
        self._stream.copy_out(self._counters, counters)
        self._stream.synchronize()
        for kernel, place in NODE_VISITS.items():
            self._stats.add_node_visits(kernel, int(self._counters[place // 8]))
