"""Measures single runs: the costs of a search under one combination of policies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.index.format import checksum_of
from mummergpu.index.tree.flatten import TreePage
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.search import BlockSearch
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import BlockMems, match_count
from mummergpu.sequence.strand import Strand
from mummergpu.studies.combinations import PlannedRun
from mummergpu.studies.data_set import DataSet
from mummergpu.studies.records import KernelRecord, SweepRun
from mummergpu.studies.searcher import StudySearcher

WARM_UP_QUERIES: Final = 1 << 12
"""The queries that are searched between loading trees and timing a run: the first search loads
kernels and fills caches."""

_STAGES: Final = {
    "trees_to_device": "upload",
    "match_kernel": "match",
    "print_kernel": "print",
    "matches_from_device": "download",
    "coords_to_buffers": "ordering",
}
"""The stages of the report of a run that are stages of a study (`records.STAGES`)."""

ORDERING_KERNELS: Final = ("sort_candidates", "sort_long_candidates", "merge_pages")
"""The kernels that sort and merge matches; a run's report counts them as part of printing."""


class Measurer:
    """Searches a data set again and again, and measures each search."""

    def __init__(
        self,
        searcher: StudySearcher,
        data: DataSet,
        search_length: int,
        executor: ThreadPoolExecutor,
    ) -> None:
        self._searcher = searcher
        self._backend = searcher.backend
        self._stats = searcher.stats
        self._data = data
        self._search_length = search_length
        self._executor = executor
        self._search = BlockSearch(
            searcher.backend, data.reference.codes, data.strands, data.minimum_length, search_length
        )
        self._head = first_queries(data.blocks[0], WARM_UP_QUERIES)
        self._loaded = Snapshot({}, {}, {}, {})
        self._pages: Sequence[TreePage] = ()

    @property
    def backend_name(self) -> str:
        """The name of the backend, as in ``--backend``."""
        return self._backend.name

    def load(self, policy: str, pages: Sequence[TreePage], profile: bool) -> None:
        """Load trees in the layout of the policies, and search a few queries to warm up."""
        self._searcher.set_policy(policy, profile)
        before = Snapshot.of(self._stats)
        self._backend.load_pages(pages, self._search_length)
        self._loaded = Snapshot.of(self._stats).since(before)
        self._pages = pages
        self._search.find_mems(self._head)

    def run(self, planned: PlannedRun, position: int, tree_seconds: dict[str, float]) -> SweepRun:
        """Search all queries on the loaded trees, and return the record of the run."""
        before = Snapshot.of(self._stats)
        mems, digest, seconds = self._find_all()
        cost = Snapshot.of(self._stats).since(before)
        kernels = cost.kernels
        stages = tree_seconds | _stage_seconds(self._loaded) | _stage_seconds(cost)
        if kernels:
            ordering = sum(
                kernels[name].milliseconds / 1000 for name in ORDERING_KERNELS if name in kernels
            )
            stages["print"] -= ordering
            stages["ordering"] = ordering + stages.get("ordering", 0.0)
        to_device = self._loaded.bytes.get("to_device", 0) + cost.bytes.get("to_device", 0)
        return SweepRun(
            position=position,
            policy=planned.policy,
            kind=planned.kind,
            repeat=planned.repeat,
            seconds=stages | {"search": seconds},
            kernels=kernels,
            bytes={
                "trees": sum(page.tree.byte_count for page in self._pages),
                "to_device": to_device,
                "from_device": cost.bytes.get("from_device", 0),
            },
            digest=digest,
            mems=mems,
            candidate_matches=cost.counts.get("candidate_matches", 0),
        )

    def _find_all(self) -> tuple[int, str, float]:
        """Search all blocks; return the number of matches, their hash, and the seconds."""
        # On the processor, the pool is busy with the searches of the next blocks.
        digest = MemDigest(self._executor.map if self._searcher.is_device else map)
        mems = 0
        hashing = 0.0
        began = time.perf_counter()
        for found in self._found():
            began_hashing = time.perf_counter()
            mems += match_count(found)
            digest.update(found)
            hashing += time.perf_counter() - began_hashing
        return mems, digest.text(), time.perf_counter() - began - hashing

    def _found(self) -> Iterator[BlockMems]:
        """Yield the matches of all blocks."""
        map_function: Callable[..., Iterable[Any]] = self._executor.map
        blocks = self._data.blocks
        if not self._searcher.is_device and not any(map(self._search.needs_all_threads, blocks)):
            yield from map_function(self._found_in, blocks)
            return
        # A task of the pool must not wait for another task.
        for block in blocks:
            yield self._found_in(block, map_function)

    def _found_in(
        self, block: QueryBlock, map_function: Callable[..., Iterable[Any]] = map
    ) -> BlockMems:
        found = self._search.find_mems(block, map_function=map_function)
        assert found is not None
        return found


class MemDigest:
    """A hash of matches that does not depend on how their queries are divided into blocks."""

    def __init__(self, map_function: Callable[..., Iterable[int]]) -> None:
        self._map = map_function
        self._checksums: dict[Strand, list[int]] = {}

    def update(self, found: BlockMems) -> None:
        """Add the matches of the next block."""
        for strand, mems in found.items():
            columns = (
                np.diff(mems.offsets),
                mems.query_starts,
                mems.reference_starts,
                mems.lengths,
            )
            before = self._checksums.get(strand, [0] * len(columns))
            self._checksums[strand] = list(self._map(checksum_of, columns, before))

    def text(self) -> str:
        """Return the hash: the CRC-32 of each column of each strand, in hexadecimal."""
        return "".join(f"{checksum:08x}" for each in self._checksums.values() for checksum in each)


class Snapshot(NamedTuple):
    """The costs that a run's statistics hold at one time, by name."""

    seconds: dict[str, float]
    kernels: dict[str, KernelRecord]
    bytes: dict[str, int]
    counts: dict[str, int]

    @classmethod
    def of(cls, stats: Stats) -> Snapshot:
        """Return the present costs."""
        report = stats.as_dict()
        kernels = {}
        for name, kernel in report["kernels"].items():
            resources = kernel["resources"]
            kernels[name] = KernelRecord(
                kernel["milliseconds"], kernel["launches"], kernel["node_visits"], **resources
            )
        seconds = {name: stage["seconds"] for name, stage in report["stages"].items()}
        return cls(seconds, kernels, report["bytes"], report["counts"])

    def since(self, before: Snapshot) -> Snapshot:
        """Return the costs since an earlier snapshot, without kernels that did not run."""
        kernels = {}
        for name, kernel in self.kernels.items():
            earlier = before.kernels.get(name, KernelRecord(0.0, 0))
            if kernel.launches == earlier.launches:
                continue
            visits = kernel.node_visits
            kernels[name] = replace(
                kernel,
                milliseconds=kernel.milliseconds - earlier.milliseconds,
                launches=kernel.launches - earlier.launches,
                node_visits=None if visits is None else visits - (earlier.node_visits or 0),
            )
        if not any(kernel.node_visits for kernel in kernels.values()):
            # Nodes were counted before, but not since: every search visits nodes.
            kernels = {name: replace(kernel, node_visits=None) for name, kernel in kernels.items()}
        return Snapshot(
            _differences(self.seconds, before.seconds),
            kernels,
            _differences(self.bytes, before.bytes),
            _differences(self.counts, before.counts),
        )


def first_queries(block: QueryBlock, count: int) -> QueryBlock:
    """Return the first queries of a block, about `count` of them or all."""
    while block.query_count > count:
        block = block.halves()[0]
    return block


def _stage_seconds(cost: Snapshot) -> dict[str, float]:
    """Return the seconds of the stages that took place, by their names in a study."""
    return {
        ours: cost.seconds[name]
        for name, ours in _STAGES.items()
        if cost.seconds.get(name, 0.0) > 0
    }


def _differences(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    return {name: value - before.get(name, type(value)()) for name, value in after.items()}
