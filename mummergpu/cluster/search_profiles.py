"""Searches profiles in proteins on the workers of a cluster, with the tables of one machine.

Workers read the profiles. This process reads the proteins, and sends each block with the numbers of
the profiles to compare; it joins the hits when it knows the number of all targets.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from mummergpu.cluster.connection import OpenCluster, check_files, check_versions, open_cluster
from mummergpu.cluster.flow import Flow, Steps
from mummergpu.cluster.options import ClusterOptions
from mummergpu.cluster.worker import device_of_process, find, forget
from mummergpu.errors import OptionClashError, OptionError
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.hit_lists import HitList
from mummergpu.hmm.profiles import Profile
from mummergpu.input.blocks.protein_rules import ProteinRules
from mummergpu.input.blocks.proteins import BLOCK_RESIDUES, NamedProteins, ProteinsInMemory
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.record_arrays import Words
from mummergpu.output.profiles import HitSink
from mummergpu.pipeline import search_profiles
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.profile_job import NumberedProteins, ProfileDevice
from mummergpu.pipeline.profile_options import ProfileSearchOptions
from mummergpu.pipeline.profile_scan import ProfileScan
from mummergpu.pipeline.search_profiles import ProfilePass, ProfileSearch
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.progress import Phase
from mummergpu.runtime.stats import Stats, StatsTotals

PARTS_OF_THREAD: Final = 4
"""The minimum number of parts per thread into which a few proteins are divided."""


class SomeProteins(NamedTuple):
    """Consecutive proteins of a block (`NamedProteins`)."""

    block: NamedProteins
    first: int
    end: int

    @property
    def codes(self) -> ByteArray:
        """Their residues."""
        begin, end = self.block.offsets[self.first], self.block.offsets[self.end]
        return self.block.codes[begin:end]

    @property
    def offsets(self) -> Int64Array:
        """The index in `codes` at which each begins."""
        own = self.block.offsets[self.first : self.end + 1]
        counted: Int64Array = own - own[0]
        return counted

    @property
    def count(self) -> int:  # type: ignore[override]
        """The number of them."""
        return self.end - self.first

    def name(self, number: int) -> str:
        """Return the name of one."""
        return self.block.name(self.first + number)

    def description(self, number: int) -> str:
        """Return the description of one."""
        return self.block.description(self.first + number)

    def accession(self, number: int) -> str:
        """Return the accession of one."""
        return self.block.accession(self.first + number)

    def words(self, numbers: Int64Array) -> Words:
        """Return the names, accessions and descriptions of some."""
        return self.block.words(self.first + numbers)


class ProfilePart(NamedTuple):
    """Work for a worker: a block of proteins, and profiles to compare with it.

    `group` is the range of this pass among all profiles; `numbers` are the profiles to compare,
    counted within the pass.
    """

    proteins: NumberedProteins
    group: range
    numbers: range


@frozen
class ProfileWork:
    """The description of a run for workers (`worker.Work`)."""

    token: str
    options: ProfileSearchOptions

    def open(self, threads: int, number: int | None) -> ProfileFinder:
        """Prepare to read profiles."""
        return ProfileFinder(self.options, threads, number)


class ProfileFinder:
    """Compares parts on a worker, with the profiles of one pass in memory."""

    def __init__(self, options: ProfileSearchOptions, threads: int, number: int | None) -> None:
        device = device_of_process(options.device, threads, number)
        self._options = replace(options, threads=threads, device=device)
        self._stats = Stats()
        self._context = RunContext(threads, self._stats)
        self._lock = threading.Lock()
        self._stack = ExitStack()
        reading = self._stack.enter_context(ReadingThreads(1))
        device_of_run = ProfileDevice(device, None, self._context, self._stack)
        job = ProfileScan if options.scans else ProfileSearch
        self._job = job(self._options, self._context, reading, device_of_run)
        self._group = range(0)
        self._profiles: Iterator[Profile] = iter(())
        self._filters: list[ProfileFilter] = []

    def find(self, work: ProfileWork, part: ProfilePart) -> tuple[list[Any], StatsTotals]:
        """Return the hits of a part, and their counts and times."""
        with self._lock:
            if part.group != self._group:
                self._read(part.group)
            filters = self._filters
        if isinstance(self._job, ProfileScan):
            found: list[Any] = list(self._job.hits_of([part.proteins], [filters]))
        else:
            found = list(self._job.found_among(filters, part.proteins, part.numbers))
        return found, self._stats.taken()

    def _read(self, group: range) -> None:
        """Read the profiles of a pass, which usually follow those of the previous one."""
        if group.start != self._group.stop or group.start == 0:
            self._profiles = self._options.read_profiles()
            self._profiles = islice(self._profiles, group.start, None)
        self._filters = self._job.prepare(list(islice(self._profiles, len(group))))
        self._group = group

    def close(self) -> None:
        """End the threads."""
        self._context.shut_down()
        self._stack.close()


def run(
    options: ProfileSearchOptions,
    context: RunContext,
    own_sink: HitSink | None = None,
    *,
    cluster: ClusterOptions,
) -> None:
    """Search profiles, as `pipeline.search_profiles.run` does.

    Raises
    ------
    MummergpuError
        If the input, the options or the cluster are at fault.
    """
    paths = [one for one in options.profiles if isinstance(one, str)]
    if len(paths) < len(options.profiles) or "-" in paths:
        raise OptionError("profiles", "a cluster reads them from files")
    if options.device.backend == "cuda" and not options.scans:
        raise OptionClashError("backend=cuda", "cluster", "workers filter on processors")
    everywhere = tuple(map(os.path.abspath, paths))
    with open_cluster(cluster, context.notice) as opened:
        check_versions(opened)
        check_files(opened, everywhere)
        sent = replace(options, profiles=everywhere, sequences=ProteinsInMemory((), ProteinRules()))
        work = ProfileWork(os.urandom(8).hex(), sent)
        job = _ScanOnCluster if options.scans else _SearchOnCluster
        try:
            search_profiles.run(options, context, own_sink, partial(job, opened, work))
        finally:
            opened.tell_all(forget, work.token)
        context.stats.set(backend="cluster", workers=len(opened.workers))


def _sent(
    cluster: OpenCluster, work: ProfileWork, parts: Iterator[ProfilePart], context: RunContext
) -> Generator[tuple[ProfilePart, list[Any]]]:
    """Yield parts with their results from workers, in order."""
    under_way: list[ProfilePart] = []

    def kept() -> Iterator[ProfilePart]:
        for part in parts:
            under_way.append(part)
            yield part

    with closing(Flow(cluster, work, Steps(find)).results(kept())) as results:
        for (found, totals), _ in results:
            context.stats.add_totals(totals)
            yield under_way.pop(0), found


class _SearchOnCluster(ProfileSearch):
    """A search whose comparisons run on workers."""

    def __init__(self, cluster: OpenCluster, work: ProfileWork, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._cluster = cluster
        self._work = work

    def read(self, profiles: Iterable[Profile]) -> Iterator[Profile]:
        """Yield profiles without filters, which only workers make."""
        return iter(profiles)

    def passes(self, profiles: Iterator[Profile]) -> Generator[ProfilePass]:
        """Compare profiles with all proteins on workers; yield each pass when it has ended."""
        before = 0
        while group := self.next_pass(profiles):
            self.prepare_finishing(group)
            yield self._compared(ProfilePass(group, before))
            before += len(group)

    def _compared(self, found: ProfilePass) -> ProfilePass:
        """Return a pass whose profiles have been compared with all proteins."""
        before, count = found.before, len(found.profiles)
        group = range(before, before + count)
        size = max(1, count // _parts_of_block(self._options, self._cluster))

        def parts() -> Generator[ProfilePart]:
            for proteins in self.blocks(before == 0, 1):
                found.residues += proteins.records.codes.size
                for first in range(0, count, size):
                    yield ProfilePart(proteins, group, range(first, min(first + size, count)))

        ahead = parts()
        with (
            closing(ahead),
            closing(_sent(self._cluster, self._work, ahead, self._context)) as results,
        ):
            for part, hits in results:
                found.targets = part.proteins.end
                done = before + part.numbers.stop, before + count, found.targets
                self.tell(Phase.PROFILES, done, part.proteins, part.numbers.stop / count)
                for one in hits:
                    found.add(*one)
        return found


def _parts_of_block(options: ProfileSearchOptions, cluster: OpenCluster) -> int:
    """Return the number of parts of a block, enough to keep all threads busy to the end."""
    total = options.sequences.bytes_total
    blocks = 1 if total is None else max(1, total // BLOCK_RESIDUES)
    return max(1, PARTS_OF_THREAD * cluster.thread_count // blocks)


def _some_of(proteins: NumberedProteins, first: int, end: int) -> NumberedProteins:
    unscored = proteins.unscored
    own = unscored[(unscored >= first) & (unscored < end)] - first
    some = SomeProteins(proteins.records, first, end)
    return NumberedProteins(some, proteins.before + first, proteins.shares, own)


class _ScanOnCluster(ProfileScan):
    """A scan whose comparisons run on workers."""

    def __init__(self, cluster: OpenCluster, work: ProfileWork, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._cluster = cluster
        self._work = work

    def hits(self) -> Generator[HitList]:
        """Yield the hits of each protein."""
        profiles = list(self._options.read_profiles())
        count, nodes = len(profiles), sum(one.nodes for one in profiles)
        self._context.stats.add(profiles=count, nodes=nodes)
        del profiles

        every = range(count)
        wanted = _parts_of_block(self._options, self._cluster)

        def parts() -> Generator[ProfilePart]:
            for proteins in self.blocks(True, 1):
                size = max(1, proteins.records.count // wanted)
                for first in range(0, proteins.records.count, size):
                    end = min(first + size, proteins.records.count)
                    yield ProfilePart(_some_of(proteins, first, end), every, every)

        ahead = parts()
        with (
            closing(ahead),
            closing(_sent(self._cluster, self._work, ahead, self._context)) as results,
        ):
            for part, found in results:
                self.tell(Phase.SEQUENCES, (part.proteins.end,), part.proteins, 1.0)
                yield from found
