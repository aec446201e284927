"""Search profiles in proteins, as HMMER's hmmsearch and hmmscan do.

All profiles pass over a block of proteins before the next one is read. The filters find what few
proteins are worth more; these are compared to the end at once, and their hits joined when the
number of all targets is known. A scan is the same, but its hits are those of a protein.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from mummergpu.hmm.filters import ForwardFilter, ProfileFilter
from mummergpu.hmm.finishing import Finisher
from mummergpu.hmm.hit_lists import HitCounter, HitCounts, HitList, QueryWords
from mummergpu.hmm.hit_records import HitRecords
from mummergpu.hmm.interleaved import BYTE_LANES, InterleavedBlock, can_interleave, interleaved
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import ProteinBlock, sequences_of_marks
from mummergpu.input.blocks.proteins import NamedProteins
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.record_reader import printable
from mummergpu.output.profiles import ALIGNMENT, PARQUET, AlignmentSink, HitSink, TableSink
from mummergpu.output.sink import writer_of
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.profile_device import ProfileDevice, filtered
from mummergpu.pipeline.profile_options import ProfileSearchOptions
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.ordered_map import Prefetcher, ordered_results
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import Phase, Work
from mummergpu.runtime.pyhmmer_library import bytes_of
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.words import counted, say_nothing, shorter

if TYPE_CHECKING:
    from mummergpu.hmm.device_filters import DeviceFilters

PROFILES_AT_ONCE: Final = 2000
"""The profiles of a pass over the proteins of a file: memory holds the hits of all of them."""

FEW_PROFILES: Final = 48
"""The profiles of a pass over proteins in memory, or more if there are many threads."""

_FEW_OF_THREAD: Final = 16
"""The profiles of such a pass for each thread: threads wait for the last of them."""

KEPT_RESIDUES: Final = 1 << 25
"""Proteins of up to so many residues stay in memory for all passes."""

SEQUENCES_AT_ONCE: Final = 64
"""The proteins that a task compares to the end."""

_SUMMED_AT_ONCE: Final = 1024
"""The proteins that a task passes through the Forward filter."""

_TASKS_OF_THREAD: Final = 32
"""The tasks ahead for each thread, of one block: some take a hundred times as long as most, and
others must not wait until such a one is done."""

_BLOCKS_AHEAD: Final = 2

_MIN_INTERLEAVED_NODES: Final = 400
"""From so many nodes of all profiles on it is worth while to interleave the proteins of a block."""

_LARGE_SCALE: Final = 4
"""How much larger the blocks are that a device filters, or many threads with a profile for each of
them: a profile with a block, or with what survives in it, is a task of Python."""

_FEW_THREADS: Final = 4
"""Up to so many threads seldom wait for each other to enter the interpreter."""

MakeJob = Callable[
    ["ProfileSearchOptions", RunContext, ReadingThreads, ProfileDevice], "ProfileJob"
]
"""Makes what finds the hits of a run."""


def run(
    options: ProfileSearchOptions,
    context: RunContext,
    own_sink: HitSink | None = None,
    make_job: MakeJob | None = None,
) -> None:
    """Search all profiles in all proteins, and write the hits.

    Parameters
    ----------
    options : ProfileSearchOptions
        The files and options of the run.
    context : RunContext
        The threads of the run, and whom it tells.
    own_sink : HitSink, optional
        Receives the hits beside the files.
    make_job : callable, optional
        Returns what finds the hits, if not this process does.

    Raises
    ------
    MummergpuError
        If the input, the options or the machine are at fault.
    """
    with context.stats.stage("end_to_end"), ExitStack() as stack:
        outputs = [(kind, stack.enter_context(OutputFile(path))) for kind, path in options.outputs]
        sinks = [_open_sink(kind, file, options, context) for kind, file in outputs]
        sinks += [] if own_sink is None else [own_sink]
        reading = stack.enter_context(ReadingThreads(options.threads))
        residues = options.sequences.bytes_total
        device = ProfileDevice(options.device, residues, context, stack)
        make = make_job or (ProfileScan if options.scans else ProfileSearch)
        job = make(options, context, reading, device)
        counts = HitCounts()
        with closing(job.hits()) as found:
            for hits in found:
                if hits.impossible:
                    context.warn(_left_out(hits))
                counts.add(hits)
                with context.stats.stage("format"):
                    for sink in sinks:
                        sink.write(hits)
        for sink in sinks:
            sink.finish()
        context.stats.add(hits=counts.hits)
        context.stats.set_profiles(counts)
        context.executor.shutdown()


def _left_out(hits: HitList) -> str:
    """Return a line about targets that no path of a profile emits: HMMER stops at one."""
    count, names = len(hits.impossible), shorter(hits.impossible)
    text = (
        f"no path of it emits {counted(count, 'sequence')}"
        if hits.path
        else f"no path of {counted(count, 'profile')} emits it"
    )
    return f"{hits.shown_query}: {text}, left out: {names}"


def _open_sink(
    kind: str, file: OutputFile, options: ProfileSearchOptions, context: RunContext
) -> HitSink:
    emit = writer_of(file, context.stats)
    if kind == ALIGNMENT:
        return AlignmentSink(emit, options.program, options.wraps_alignments, context.warn)
    if kind == PARQUET:
        from mummergpu.output.profile_columns import ParquetSink

        return ParquetSink(file, options.orfs)
    return TableSink(kind, emit, options.program, options.command)


class NumberedProteins(NamedTuple):
    """Proteins, with the number of those before them.

    Attributes
    ----------
    shares : tuple of (float, float) or None
        The shares of the files before and after these.
    unscored : ndarray of int64
        Those that no profile is compared with (`sequences_of_marks`).
    by_lanes : concurrent.futures.Future of InterleavedBlock or None
        The same, as SSV takes them where that is worth while.
    """

    records: NamedProteins
    before: int
    shares: tuple[float, float] | None
    unscored: Int64Array
    by_lanes: Future[InterleavedBlock] | None = None

    @property
    def end(self) -> int:
        """The number of proteins up to the last of these."""
        return self.before + self.records.protein_count

    @property
    def block(self) -> ProteinBlock:
        """What filters and comparisons take."""
        return ProteinBlock(self.records.codes, self.records.offsets)

    def survivors(self, profile_filter: ProfileFilter, stats: Stats) -> Int64Array:
        """Return which proteins pass the filters of a profile before Forward's."""
        by_lanes = None if self.by_lanes is None else self.by_lanes.result()
        return self.scored(profile_filter.survivors(self.block, stats, by_lanes))

    def scored(self, survivors: Int64Array) -> Int64Array:
        """Return which of some proteins a profile is compared with."""
        if not self.unscored.size:
            return survivors
        return np.setdiff1d(survivors, self.unscored, assume_unique=True)


class _Task:
    """A profile and proteins; the numbers of those that have passed the filters, if known.

    `is_summed` tells that they have passed the Forward filter too.
    """

    def __init__(
        self,
        proteins: NumberedProteins,
        number: int,
        survivors: Int64Array | None = None,
        is_summed: bool = False,
    ) -> None:
        self.proteins = proteins
        self.number = number
        self.survivors = survivors
        self.is_summed = is_summed

    @property
    def at_once(self) -> int:
        """The most survivors that one task deals with."""
        return SEQUENCES_AT_ONCE if self.is_summed else _SUMMED_AT_ONCE

    def parts(self) -> Iterator[_Task]:
        """Yield tasks with a few of the survivors each."""
        survivors, size = self.survivors, self.at_once
        assert survivors is not None
        for begin in range(0, survivors.size, size):
            own = survivors[begin : begin + size]
            yield _Task(self.proteins, self.number, own, self.is_summed)


class _Found(NamedTuple):
    """The hits of a profile in a part of the proteins, None if no protein was compared."""

    proteins: NumberedProteins
    number: int
    hits: HitRecords | None


class HitParts(NamedTuple):
    """What is found of some profiles.

    Attributes
    ----------
    hits : list of list of HitRecords
        The hits of each in parts of the proteins.
    targets : int
        The number of all proteins.
    """

    hits: list[list[HitRecords]]
    targets: int = 0

    @classmethod
    def of_profiles(cls, count: int) -> HitParts:
        """Return no hits of so many profiles."""
        return cls([[] for _ in range(count)])

    def add(self, number: int, hits: HitRecords | None) -> None:
        """Add the hits of a profile in a part, or None."""
        if hits is not None and hits.tells_something:
            self.hits[number].append(hits)


class ProfileJob(ABC):
    """What searches and scans have in common."""

    def __init__(
        self,
        options: ProfileSearchOptions,
        context: RunContext,
        reading: ReadingThreads,
        device: ProfileDevice,
    ) -> None:
        self._options = options
        self._context = context
        self._reading = reading
        self._device = device
        self._has_share = True
        self._early: list[Future[ProfileFilter]] = []
        self._kept: list[NumberedProteins] | None = None
        self._begun = False

    @abstractmethod
    def hits(self) -> Generator[HitList]:
        """Yield the hits of each query."""

    def prepare_finishing(self, profiles: Sequence[Profile]) -> None:
        """Prepare to finish hits of some profiles."""
        options, alphabet = self._options, profiles[0].hmm.alphabet
        self._finisher = Finisher(options.finishing, alphabet, options.Z)
        self._counter = HitCounter(alphabet, options.finishing, options.Z, options.scans)

    def read(self, profiles: Iterable[Profile]) -> Iterator[Profile]:
        """Yield profiles, whose filters are made while the next ones are read."""
        for one in profiles:
            self._early.append(self._filter_of(one))
            yield one

    def prepare(self, profiles: Sequence[Profile]) -> list[ProfileFilter]:
        """Prepare to finish hits of profiles, all from `read` or none; return their filters."""
        self.prepare_finishing(profiles)
        early, self._early = self._early or [*map(self._filter_of, profiles)], []
        return [one.result() for one in early]

    def _filter_of(self, profile: Profile) -> Future[ProfileFilter]:
        thresholds = self._options.finishing.thresholds
        return self._context.executor.submit(ProfileFilter, profile, thresholds)

    def blocks(
        self, count_them: bool, scale: int, interleaves: bool = False
    ) -> Iterator[NumberedProteins]:
        """Yield all proteins in blocks, which are read ahead."""
        stats, source = self._context.stats, self._options.sequences
        before, share = 0, 0.0
        # A file that is read again has told already that it is empty.
        warn = self._context.warn if count_them else say_nothing
        with closing(source.blocks(self._reading, warn, scale)) as blocks:
            drawn = self._drawn(blocks, interleaves)
            with Prefetcher(drawn, _BLOCKS_AHEAD) as ahead:
                for records, share_read, by_lanes in ahead:
                    if count_them:
                        stats.add(sequences=records.protein_count, residues=records.codes.size)
                    shares = None if share_read is None else (share, share_read)
                    marks = sequences_of_marks(ProteinBlock(records.codes, records.offsets))
                    yield NumberedProteins(records, before, shares, marks, by_lanes)
                    before += records.protein_count
                    share = share_read or 0.0

    def _interleaved(self, block: ProteinBlock) -> Future[InterleavedBlock]:
        return self._context.executor.submit(interleaved, block, BYTE_LANES)

    def in_lanes(
        self, proteins: NumberedProteins, filters: Sequence[ProfileFilter]
    ) -> NumberedProteins:
        """Return proteins that come from elsewhere as `blocks` yields them."""
        if not _are_worth_lanes(filters):
            return proteins
        return proteins._replace(by_lanes=self._interleaved(proteins.block))

    def _drawn(
        self, blocks: Iterator[NamedProteins], interleaves: bool
    ) -> Iterator[tuple[NamedProteins, float | None, Future[InterleavedBlock] | None]]:
        """Yield blocks with the share of the files that has been read, and interleave them."""
        source, by_lanes = self._options.sequences, None
        total = source.bytes_total
        for records in blocks:
            if interleaves:
                by_lanes = self._interleaved(ProteinBlock(records.codes, records.offsets))
            yield records, source.bytes_read / total if total else None, by_lanes

    def filtered(
        self, count_them: bool, filters: Sequence[ProfileFilter], on_device: DeviceFilters | None
    ) -> Generator[tuple[NumberedProteins, list[Int64Array] | None]]:
        """Yield all blocks, and what passes all filters of each profile if a device tells it."""
        survivors = None if on_device is None else self._survivors(filters, on_device)
        interleaves = on_device is None and _are_worth_lanes(filters)
        are_many = len(filters) >= self._context.threads > _FEW_THREADS
        scale = _LARGE_SCALE if are_many or on_device is not None else 1
        every = self._kept or self._keeping(self.blocks(count_them, scale, interleaves))
        with closing(filtered(iter(every), survivors)) as blocks:
            yield from blocks

    def _keeping(self, blocks: Iterable[NumberedProteins]) -> Iterator[NumberedProteins]:
        """Yield blocks, and keep them for later passes where they are few."""
        kept: list[NumberedProteins] = []
        residues = 0
        for one in blocks:
            residues += one.records.codes.size
            kept = [*kept, one] if residues <= KEPT_RESIDUES else []
            yield one
        if residues <= KEPT_RESIDUES:
            self._kept = kept

    def _survivors(
        self, filters: Sequence[ProfileFilter], on_device: DeviceFilters
    ) -> Callable[[NumberedProteins], list[Int64Array]]:
        """Return what tells for a block what passes the filters of each profile, Forward's too."""
        context = self._context
        # It is made while the device has the first block.
        making = context.executor.submit(ForwardFilter, filters)

        def survivors(proteins: NumberedProteins) -> list[Int64Array]:
            passed = [*map(proteins.scored, on_device.survivors(proteins.block))]
            ends = np.cumsum([one.size for one in passed])
            profiles = np.repeat(np.arange(len(passed)), np.diff(ends, prepend=0))
            sequences = np.concatenate(passed)
            keeps = np.empty(sequences.size, dtype=np.bool_)
            forward = making.result()

            def work(first: int) -> None:
                some = slice(first, first + _SUMMED_AT_ONCE)
                own = proteins.block, profiles[some], sequences[some]
                keeps[some] = forward.passing(*own, context.stats)

            list(context.executor.map(work, range(0, sequences.size, _SUMMED_AT_ONCE)))
            parts = zip(passed, np.split(keeps, ends[:-1]), strict=True)
            return [one[kept] for one, kept in parts]

        return survivors

    def tell(
        self, phase: Phase, numbers: tuple[int, ...], block: NumberedProteins, done: float
    ) -> None:
        """Tell how far the search is, of which a share of a block is done."""
        share = None
        if self._has_share and block.shares is not None:
            share = block.shares[0] + (block.shares[1] - block.shares[0]) * done
        self._context.progress.tell(Work(phase, numbers, 0, share))


def _are_worth_lanes(filters: Sequence[ProfileFilter]) -> bool:
    nodes = sum(one.profile.nodes for one in filters)
    return nodes >= _MIN_INTERLEAVED_NODES and can_interleave()


class ProfileSearch(ProfileJob):
    """The hits of profiles among proteins."""

    def hits(self) -> Generator[HitList]:
        """Yield the hits of each profile."""
        profiles = self.read(self._options.read_profiles())
        before = 0
        while group := self._next_group(profiles):
            self._context.stats.add(profiles=len(group), nodes=sum(one.nodes for one in group))
            yield from self._hits_of(group, before)
            before += len(group)
            # The next ones are read when these are gone.
            del group

    def _next_group(self, profiles: Iterator[Profile]) -> list[Profile]:
        """Return the profiles of the next pass.

        A few where the proteins stay in memory, as a pass over these costs nothing; a device wants
        many, and what can be read once only all.
        """
        source = self._options.sequences
        few = max(FEW_PROFILES, _FEW_OF_THREAD * self._context.threads)
        group = list(islice(profiles, few))
        most = few
        if not source.can_repeat:
            most = sys.maxsize
        elif len(group) == few:
            size = source.bytes_total
            is_kept = self._kept is not None or (not self._begun and (size or 0) <= KEPT_RESIDUES)
            if not is_kept or self._device.is_there:
                most = PROFILES_AT_ONCE
        group += islice(profiles, most - len(group))
        # With several passes, it is not known how many come.
        self._has_share = not self._begun and len(group) < most
        self._begun = True
        return group

    def _hits_of(self, profiles: Sequence[Profile], before: int) -> Iterator[HitList]:
        parts = self._parts_of(profiles, before)
        counter, context = self._counter, self._context

        def join(number: int) -> HitList:
            own = parts.hits[number]
            parts.hits[number] = []
            return counter.join(profiles[number].hmm, own, parts.targets, profiles[number].path)

        yield from ordered_results(context.executor, context.window, range(len(profiles)), join)

    def _parts_of(self, profiles: Sequence[Profile], before: int) -> HitParts:
        """Compare profiles, before which there are others, with all proteins."""
        filters = self.prepare(profiles)
        with ExitStack() as stack:
            return self._parts_of_filters(filters, self._device.filters(filters, stack), before)

    def _parts_of_filters(
        self, filters: Sequence[ProfileFilter], on_device: DeviceFilters | None, before: int
    ) -> HitParts:
        found = HitParts.of_profiles(len(filters))
        targets = 0

        def tasks() -> Generator[_Task]:
            nonlocal targets
            with closing(self.filtered(before == 0, filters, on_device)) as blocks:
                for proteins, passed in blocks:
                    targets += proteins.records.protein_count
                    for number in range(len(filters)):
                        if passed is None:
                            yield _Task(proteins, number)
                        elif passed[number].size:
                            yield _Task(proteins, number, passed[number], is_summed=True)

        # After an error, too, the device has ended its work before its memory is freed.
        ahead = tasks()
        with closing(ahead), closing(self._found(filters, ahead)) as results:
            for proteins, number, hits in results:
                done = before + number + 1, before + len(filters), proteins.end
                self.tell(Phase.PROFILES, done, proteins, (number + 1) / len(filters))
                found.add(number, hits)
        return found._replace(targets=targets)

    def _found(self, filters: Sequence[ProfileFilter], tasks: Iterator[_Task]) -> Generator[_Found]:
        """Yield what tasks find, in their order."""

        def work(task: _Task) -> _Found | None:
            return self._search(filters[task.number], task)

        context = self._context
        # Not more than a block has: memory holds the blocks of all tasks under way.
        window = max(context.window, min(len(filters), _TASKS_OF_THREAD * context.threads))
        yield from ordered_results(context.executor, window, tasks, work, _Task.parts)

    def found_among(
        self,
        filters: Sequence[ProfileFilter],
        proteins: NumberedProteins,
        numbers: range,
        on_device: DeviceFilters | None = None,
    ) -> Iterator[tuple[int, HitRecords]]:
        """Yield the hits of some of the profiles in a block, as `HitParts.add` takes them."""
        survivors = None if on_device is None else self._survivors(filters, on_device)
        with closing(filtered(iter([proteins]), survivors)) as blocks:
            ((_, passed),) = blocks
        own = (
            _Task(proteins, one, None if passed is None else passed[one], passed is not None)
            for one in numbers
        )
        with closing(self._found(filters, own)) as results:
            for _, number, hits in results:
                if hits is not None:
                    yield number, hits

    def _search(self, profile_filter: ProfileFilter, task: _Task) -> _Found | None:
        """Compare a profile with proteins; return None if so many pass that they are split."""
        stats = self._context.stats
        records, before = task.proteins.records, task.proteins.before
        if task.survivors is None:
            with stats.stage("profile_filters"):
                task.survivors = task.proteins.survivors(profile_filter, stats)
            stats.add_cells("profile_filters", records.codes.size * profile_filter.profile.nodes)
        if not task.is_summed and task.survivors.size <= task.at_once:
            block = task.proteins.block
            task.survivors = profile_filter.pass_forward(block, task.survivors, stats)
            task.is_summed = True
        if task.survivors.size > task.at_once:
            return None
        survivors = task.survivors
        if survivors.size == 0:
            return _Found(task.proteins, task.number, None)
        residues = int((records.offsets[survivors + 1] - records.offsets[survivors]).sum())
        stats.add_cells("profile_finishing", residues * profile_filter.profile.nodes)
        with stats.stage("profile_finishing"):
            profile = profile_filter.profile
            hits, impossible = self._finisher.search(profile, records, survivors)

            def place_of(name: bytes) -> int:
                text = name.decode("utf-8", "surrogateescape")
                return next(before + int(n) + 1 for n in survivors if records.name(n) == text)

            until = before + int(survivors[-1]) + 1
            found = self._counter.part(hits, self._options.needs_alignments, until, place_of)
            names_left_out = tuple(printable(bytes_of(records.name(n))) for n in impossible)
            found = found._replace(impossible=names_left_out)
        return _Found(task.proteins, task.number, found)


class ProfileScan(ProfileJob):
    """The hits of proteins among profiles."""

    def hits(self) -> Generator[HitList]:
        """Yield the hits of each protein."""
        context = self._context
        profiles = list(self.read(self._options.read_profiles()))
        context.stats.add(profiles=len(profiles), nodes=sum(one.nodes for one in profiles))
        filters = self.prepare(profiles)
        with ExitStack() as stack:
            on_device = self._device.filters(filters, stack)
            with closing(self.filtered(True, filters, on_device)) as blocks:
                for proteins, passed in blocks:
                    yield from self.hits_of(proteins, passed, filters)

    def hits_of(
        self,
        proteins: NumberedProteins,
        passed: list[Int64Array] | None,
        filters: Sequence[ProfileFilter],
    ) -> Iterator[HitList]:
        """Yield the hits of each protein of a block."""
        context, records, block = self._context, proteins.records, proteins.block
        stats = context.stats

        def survivors(one: ProfileFilter) -> Int64Array:
            stats.add_cells("profile_filters", records.codes.size * one.profile.nodes)
            with stats.stage("profile_filters"):
                return proteins.survivors(one, stats)

        def summed(number: int) -> Int64Array:
            if passed is not None:
                return passed[number]
            one = filters[number]
            return one.pass_forward(block, survivors(one), stats)

        every = range(len(filters))
        kept = list(ordered_results(context.executor, context.window, every, summed))
        numbers = np.repeat(np.arange(len(filters)), [one.size for one in kept])
        sequences = np.concatenate(kept)
        # Stable: the profiles that a protein is compared with stay in the order of their files.
        order = np.argsort(sequences, kind="stable")
        bounds = np.searchsorted(sequences[order], np.arange(records.protein_count + 1)).tolist()
        numbers = numbers[order]

        def scan(first: int) -> list[HitList]:
            found = []
            with stats.stage("profile_finishing"):
                for number in range(first, min(first + SEQUENCES_AT_ONCE, len(bounds) - 1)):
                    own = numbers[bounds[number] : bounds[number + 1]].tolist()
                    profiles = [(filters[one].profile, one + 1) for one in own]
                    found.append(self._scan(records, number, profiles, len(filters)))
            return found

        firsts = range(0, records.protein_count, SEQUENCES_AT_ONCE)
        done = 0
        for found in ordered_results(context.executor, context.window, firsts, scan):
            done += len(found)
            share = done / records.protein_count
            self.tell(Phase.SEQUENCES, (proteins.before + done,), proteins, share)
            yield from found

    def _scan(
        self,
        records: NamedProteins,
        number: int,
        profiles: Sequence[tuple[Profile, int]],
        targets: int,
    ) -> HitList:
        """Compare a protein with profiles, which have their places among all."""
        if not profiles:
            return HitList(QueryWords(records.name(number), records.accession(number)), None)
        models = [profile for profile, _ in profiles]
        for profile in models:
            self._options.check_cutoffs(profile)
        residues = int(records.offsets[number + 1] - records.offsets[number])
        cells = residues * sum(profile.nodes for profile in models)
        self._context.stats.add_cells("profile_finishing", cells)
        hits, impossible = self._finisher.scan(records, number, models)

        def place_of(target: bytes) -> int:
            return next(place for profile, place in profiles if bytes_of(profile.name) == target)

        found = self._counter.part(hits, self._options.needs_alignments, profiles[-1][1], place_of)
        left_out = tuple(f"{one.path}: {one.shown_name}" for one in impossible)
        return self._counter.join(hits.query, [found._replace(impossible=left_out)], targets)
