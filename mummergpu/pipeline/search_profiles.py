"""Searches profiles in proteins, as HMMER's hmmsearch and hmmscan do.

All profiles of a pass are applied to a block of proteins before the next block is read. The few
proteins that pass the filters are compared completely at once, and their hits are joined when the
number of all targets is known. `ProfileScan` does the same for the hits of each protein.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.hit_lists import HitCounts, HitList, HitRecords
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.stage_counts import FILTERS, VITERBI, Reached, Statistics
from mummergpu.hmm.text_report import TextReport
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.record_reader import printable
from mummergpu.output.profiles import (
    ALIGNMENT,
    PARQUET,
    TEXT,
    TSV,
    AlignmentSink,
    HitSink,
    TableSink,
    TextSink,
    TsvSink,
)
from mummergpu.output.sink import writer_of
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.profile_job import (
    SEQUENCES_AT_ONCE,
    SUMMED_AT_ONCE,
    NumberedProteins,
    ProfileDevice,
    ProfileJob,
    fit_in_memory,
)
from mummergpu.pipeline.profile_options import ProfileSearchOptions
from mummergpu.pipeline.profile_scan import ProfileScan
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.ordered_map import ordered_results
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import Phase
from mummergpu.runtime.pyhmmer_library import bytes_of
from mummergpu.runtime.words import pluralize, shorter

if TYPE_CHECKING:
    from mummergpu.hmm.device_filters import DeviceFilters

_TASKS_OF_THREAD: Final = 32
"""The tasks ahead per thread within one block: some take a hundred times as long as most, and the
others must not wait for them."""

MakeJob = Callable[
    ["ProfileSearchOptions", RunContext, ReadingThreads, ProfileDevice], "ProfileJob"
]
"""Makes the job that finds the hits of a run."""


def run(
    options: ProfileSearchOptions,
    context: RunContext,
    own_sink: HitSink | None = None,
    make_job: MakeJob | None = None,
) -> None:
    """Search all profiles in all proteins, and write the hits.

    `own_sink` receives the hits in addition to the files. `make_job` makes the job that finds the
    hits, if other processes do.

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
        context.stats.profiles = counts
        context.executor.shutdown()


def _left_out(hits: HitList) -> str:
    """Return a line about targets that no path of a profile emits; HMMER stops at such a target."""
    count, names = len(hits.impossible), shorter(hits.impossible)
    text = (
        f"no path of it emits {pluralize(count, 'sequence')}"
        if hits.path
        else f"no path of {pluralize(count, 'profile')} emits it"
    )
    return f"{hits.shown_query}: {text}, left out: {names}"


def _open_sink(
    kind: str, file: OutputFile, options: ProfileSearchOptions, context: RunContext
) -> HitSink:
    emit = writer_of(file, context.stats)
    if kind == ALIGNMENT:
        return AlignmentSink(emit, options.program, options.report.width > 0, context.warn)
    if kind == TEXT:
        report = TextReport(options.program, options.report, options.finishing, options.Z)
        return TextSink(emit, report, options.report.head)
    if kind == TSV:
        return TsvSink(emit)
    if kind == PARQUET:
        from mummergpu.output.profiles import ParquetSink

        return ParquetSink(file, options.orfs)
    return TableSink(kind, emit, options.program, options.command)


class _Task:
    """A profile and proteins, with those that passed the filters, if they are known.

    `is_summed` means that they have passed the Forward filter, too; `passed` counts those that
    passed each filter, for a report.
    """

    def __init__(
        self,
        proteins: NumberedProteins,
        number: int,
        survivors: Reached | None = None,
        is_summed: bool = False,
        passed: Int64Array | None = None,
    ) -> None:
        self.proteins = proteins
        self.number = number
        self.survivors = survivors
        self.is_summed = is_summed
        self.passed = np.zeros(FILTERS, dtype=np.int64) if passed is None else passed

    @property
    def at_once(self) -> int:
        """The most survivors of one task."""
        return SEQUENCES_AT_ONCE if self.is_summed else SUMMED_AT_ONCE

    def parts(self) -> Iterator[_Task]:
        """Yield tasks with up to `at_once` survivors each; the first has the counts."""
        survivors, size = self.survivors, self.at_once
        assert survivors is not None
        for begin in range(0, survivors.sequences.size, size):
            own, passed = survivors.part(begin, begin + size), self.passed if begin == 0 else None
            yield _Task(self.proteins, self.number, own, self.is_summed, passed)


class _Found(NamedTuple):
    """The hits of a profile in a part of the proteins; None if no protein was compared."""

    proteins: NumberedProteins
    number: int
    hits: HitRecords | None
    passed: Int64Array  # How many proteins passed each filter


class HitParts(NamedTuple):
    """The hits of some profiles, each in parts of the proteins, and the size of all proteins."""

    hits: list[list[HitRecords]]
    passed: Int64Array  # (profiles, FILTERS): how many proteins passed each filter
    targets: int = 0
    residues: int = 0

    @classmethod
    def of_profiles(cls, count: int) -> HitParts:
        """Return parts without hits for `count` profiles."""
        return cls([[] for _ in range(count)], np.zeros((count, FILTERS), dtype=np.int64))

    def add(self, number: int, hits: HitRecords | None, passed: Int64Array) -> None:
        """Add the hits of a profile in a part, or None."""
        self.passed[number] += passed
        if hits is not None and hits.tells_something:
            self.hits[number].append(hits)

    def statistics(self, number: int) -> Statistics:
        """Return how many proteins passed the filters of a profile."""
        return Statistics(self.targets, self.residues, tuple(self.passed[number].tolist()))


class ProfileSearch(ProfileJob):
    """A search of profiles against proteins."""

    def hits(self) -> Generator[HitList]:
        """Yield the hits of each profile."""
        before = 0
        with self.profiles_ahead() as profiles:
            self._device.open_if_asked()
            while group := self._next_group(profiles):
                self._context.stats.add(profiles=len(group), nodes=sum(one.nodes for one in group))
                yield from self._hits_of(group, before)
                before += len(group)
                # Free these profiles before the next ones are read.
                del group

    def _next_group(self, profiles: Iterator[Profile]) -> list[Profile]:
        """Return the profiles of the next pass."""
        source = self._options.sequences
        may_be_kept = not self._begun and fit_in_memory(source.bytes_total or 0)
        is_kept = self._kept is not None or may_be_kept
        group, may_go_on = self.next_group(profiles, source.can_repeat, is_kept)
        # If there are several passes, their number is unknown.
        self._has_share = not self._begun and not may_go_on
        self._begun = True
        return group

    def _hits_of(self, profiles: Sequence[Profile], before: int) -> Iterator[HitList]:
        parts = self._parts_of(profiles, before)
        counter, context = self._counter, self._context

        def join(number: int) -> HitList:
            own = parts.hits[number]
            parts.hits[number] = []
            profile = profiles[number]
            return counter.join(profile.hmm, own, parts.statistics(number), profile.path)

        yield from ordered_results(context.executor, context.window, range(len(profiles)), join)

    def _parts_of(self, profiles: Sequence[Profile], before: int) -> HitParts:
        """Compare profiles with all proteins; `before` counts the profiles of earlier passes."""
        filters = self.prepare(profiles)
        with ExitStack() as stack:
            return self._parts_of_filters(filters, self._device.filters(filters, stack), before)

    def _parts_of_filters(
        self, filters: Sequence[ProfileFilter], on_device: DeviceFilters | None, before: int
    ) -> HitParts:
        found = HitParts.of_profiles(len(filters))
        targets = residues = 0
        counts_stages = self._options.counts_stages
        # Threads would wait for a long profile that comes last.
        longest_first = sorted(range(len(filters)), key=lambda one: -filters[one].profile.nodes)
        places = {number: place for place, number in enumerate(longest_first, 1)}

        def tasks() -> Generator[_Task]:
            nonlocal targets, residues
            with closing(self.filtered(before == 0, filters, on_device)) as blocks:
                for proteins, passed in blocks:
                    targets += proteins.records.count
                    residues += proteins.records.codes.size
                    for number in longest_first:
                        if passed is None:
                            yield _Task(proteins, number)
                        else:
                            survivors = passed[number].those_passing(FILTERS)
                            counts = passed[number].counts() if counts_stages else None
                            if survivors.sequences.size or counts_stages:
                                yield _Task(proteins, number, survivors, True, counts)

        # Even after an error, the device must end its work before its memory is freed.
        ahead = tasks()
        with closing(ahead), closing(self._found(filters, ahead)) as results:
            for proteins, number, hits, passed in results:
                done = before + places[number], before + len(filters), proteins.end
                self.tell(Phase.PROFILES, done, proteins, places[number] / len(filters))
                found.add(number, hits, passed)
        return found._replace(targets=targets, residues=residues)

    def _found(self, filters: Sequence[ProfileFilter], tasks: Iterator[_Task]) -> Generator[_Found]:
        """Yield what tasks find, in their order."""

        def work(task: _Task) -> _Found | None:
            return self._search(filters[task.number], task)

        context = self._context
        # At most the tasks of a block: memory holds the blocks of all tasks in work.
        window = max(context.window, min(len(filters), _TASKS_OF_THREAD * context.threads))
        yield from ordered_results(context.executor, window, tasks, work, _Task.parts)

    def found_among(
        self, filters: Sequence[ProfileFilter], proteins: NumberedProteins, numbers: range
    ) -> Iterator[tuple[int, HitRecords | None, Int64Array]]:
        """Yield the hits of some profiles in a block, as `HitParts.add` takes them."""
        own = (_Task(proteins, one) for one in numbers)
        with closing(self._found(filters, own)) as results:
            for _, number, hits, passed in results:
                if hits is not None or passed.any():
                    yield number, hits, passed

    def _search(self, profile_filter: ProfileFilter, task: _Task) -> _Found | None:
        """Compare a profile with proteins; return None to split the task if too many pass."""
        stats = self._context.stats
        records, before = task.proteins.records, task.proteins.before
        if task.survivors is None:
            found = self.passing(profile_filter, task.proteins)
            task.survivors = found.those_passing(VITERBI)
            if self._options.counts_stages:
                task.passed[:VITERBI] = found.counts()[:VITERBI]
        if not task.is_summed and task.survivors.sequences.size <= task.at_once:
            found = self.passing_forward(profile_filter, task.proteins, task.survivors)
            task.survivors, task.is_summed = found.those_passing(FILTERS), True
            if self._options.counts_stages:
                task.passed[VITERBI:] += task.survivors.sequences.size
        survivors = task.survivors.sequences
        if survivors.size > task.at_once:
            return None
        if survivors.size == 0:
            return _Found(task.proteins, task.number, None, task.passed)
        residues = int((records.offsets[survivors + 1] - records.offsets[survivors]).sum())
        stats.add_cells("profile_finishing", residues * profile_filter.profile.nodes)
        with stats.stage("profile_finishing"):
            profile = profile_filter.profile
            if self._options.needs_alignments:
                top_hits, impossible = self._finisher.search(profile, records, survivors)
                hits = HitRecords.of_hits(top_hits, True)
            else:
                hits, impossible = self._domains.search(profile_filter, records, task.survivors)

            def place_of(name: bytes) -> int:
                text = name.decode("utf-8", "surrogateescape")
                return next(before + int(n) + 1 for n in survivors if records.name(n) == text)

            until = before + int(survivors[-1]) + 1
            hits = self._counter.part(hits, until, place_of)
            names_left_out = tuple(printable(bytes_of(records.name(n))) for n in impossible)
            hits = hits._replace(impossible=names_left_out)
        return _Found(task.proteins, task.number, hits, task.passed)
