"""Searches profiles in proteins, as HMMER's hmmsearch and hmmscan do.

All profiles of a pass are applied to a block of proteins before the next block is read. The few
proteins that pass the filters are compared completely at once, and their hits are joined when the
number of all targets is known. `ProfileScan` does the same for the hits of each protein.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import chain
from typing import Final, NamedTuple

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
from mummergpu.runtime.ordered_map import Prefetcher, ordered_results
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import Phase
from mummergpu.runtime.pyhmmer_library import bytes_of
from mummergpu.runtime.words import pluralize, shorter

_TASKS_OF_THREAD: Final = 32
"""The tasks ahead per thread within one block: some take a hundred times as long as most, and the
others must not wait for them."""

_BLOCKS_OF_TASKS: Final = 2
"""The most blocks whose tasks are ahead, if there are few profiles."""

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
        counts = HitCounts(context.stats.is_reported)
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
        context.shut_down()


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


class ProfilePass:
    """Profiles that are compared with all proteins, and what was found.

    `before` counts the profiles of earlier passes. There are no `filters` if other processes make
    them.
    """

    def __init__(
        self, profiles: Sequence[Profile], before: int, filters: Sequence[ProfileFilter] = ()
    ) -> None:
        self.profiles = profiles
        self.before = before
        self.filters = filters
        self.targets = self.residues = 0
        self._hits: list[list[HitRecords]] = [[] for _ in profiles]
        # How many proteins passed each filter.
        self._passed = np.zeros((len(profiles), FILTERS), dtype=np.int64)

    def add(self, number: int, hits: HitRecords | None, passed: Int64Array) -> None:
        """Add the hits of a profile in a part of the proteins, or None."""
        self._passed[number] += passed
        if hits is not None and hits.tells_something:
            self._hits[number].append(hits)

    def taken(self, number: int) -> tuple[list[HitRecords], Statistics]:
        """Return the hits of a profile, which leave this, and how many proteins passed."""
        own, self._hits[number] = self._hits[number], []
        return own, Statistics(self.targets, self.residues, tuple(self._passed[number].tolist()))


class _Block(NamedTuple):
    """Proteins of a pass, with those that pass the filters of each profile on a device.

    There are no proteins at the end of a pass.
    """

    of: ProfilePass
    proteins: NumberedProteins | None = None
    passed: list[Reached] | None = None


class _Task:
    """A profile and proteins, with those that passed the filters, if they are known.

    `is_summed` means that they have passed the Forward filter, too; `passed` counts those that
    passed each filter, for a report. `place` is that of the profile within the pass.
    """

    def __init__(
        self,
        of: ProfilePass,
        proteins: NumberedProteins,
        number: int,
        place: int,
        survivors: Reached | None = None,
        is_summed: bool = False,
        passed: Int64Array | None = None,
    ) -> None:
        self.of = of
        self.proteins = proteins
        self.number = number
        self.place = place
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
        same = self.of, self.proteins, self.number, self.place
        for begin in range(0, survivors.sequences.size, size):
            own, passed = survivors.part(begin, begin + size), self.passed if begin == 0 else None
            yield _Task(*same, own, self.is_summed, passed)


class _Found(NamedTuple):
    """What a task found; no hits if no protein was compared."""

    task: _Task
    hits: HitRecords | None


def _parts_of(item: _Task | ProfilePass) -> Iterator[_Task | ProfilePass]:
    assert isinstance(item, _Task)
    return item.parts()


class ProfileSearch(ProfileJob):
    """A search of profiles against proteins."""

    def hits(self) -> Generator[HitList]:
        """Yield the hits of each profile."""
        with self.profiles_ahead() as profiles:
            self._device.open_if_asked()
            with closing(self.passes(profiles)) as passes:
                for one in passes:
                    yield from self._joined(one)
                    # Free these profiles before the next ones are taken.
                    del one

    def next_pass(self, profiles: Iterator[Profile]) -> list[Profile]:
        """Return the profiles of the next pass."""
        source = self._options.sequences
        residues = source.bytes_total or 0
        is_kept = self._kept is not None or (not self._begun and fit_in_memory(residues))
        group, may_go_on = self.next_group(profiles, source.can_repeat, is_kept, residues)
        if group:
            # If there are several passes, their number is unknown.
            self._has_share = not self._begun and not may_go_on
            self._begun = True
            self._context.stats.add(profiles=len(group), nodes=sum(one.nodes for one in group))
        return group

    def _joined(self, found: ProfilePass) -> Iterator[HitList]:
        """Yield the hits of each profile of a pass that has ended."""
        counter, context = self._counter, self._context

        def join(number: int) -> HitList:
            profile = found.profiles[number]
            return counter.join(profile.hmm, *found.taken(number), profile.path)

        numbers = range(len(found.profiles))
        yield from ordered_results(context.executor, context.window, numbers, join)

    def passes(self, profiles: Iterator[Profile]) -> Generator[ProfilePass]:
        """Compare profiles with all proteins; yield each pass when it has ended.

        Threads compare the profiles of the next pass before this one is joined.
        """
        first = self.next_pass(profiles)
        window = self._window(len(first))
        blocks = self._filtered_blocks([first], profiles)
        del first
        with Prefetcher(blocks, 1) as ahead:
            tasks = chain.from_iterable(map(self._tasks_of, ahead))
            with closing(self._found(tasks, window)) as results:
                for one in results:
                    if isinstance(one, ProfilePass):
                        yield one
                        continue
                    task, of = one.task, one.task.of
                    count = len(of.filters)
                    done = of.before + task.place, of.before + count, task.proteins.end
                    self.tell(Phase.PROFILES, done, task.proteins, task.place / count)
                    of.add(task.number, one.hits, task.passed)

    def _window(self, profiles: int) -> int:
        """Return how many tasks of passes of some profiles are in work at once."""
        context = self._context
        # Memory holds the blocks of all of them.
        most = min(_BLOCKS_OF_TASKS * profiles, _TASKS_OF_THREAD * context.threads)
        return max(context.window, most)

    def _filtered_blocks(
        self, groups: list[list[Profile]], profiles: Iterator[Profile]
    ) -> Generator[_Block]:
        """Yield the blocks of all passes, and the end of each pass.

        The profiles of the first pass leave `groups`.
        """
        before = 0
        group = groups.pop()
        while group:
            one = ProfilePass(group, before, self.prepare(group))
            before += len(group)
            with ExitStack() as stack:
                on_device = self._device.filters(one.filters, stack)
                # Even after an error, the device must end its work before its memory is freed.
                blocks = closing(self.filtered(one.before == 0, one.filters, on_device))
                for proteins, passed in stack.enter_context(blocks):
                    one.targets += proteins.records.count
                    one.residues += proteins.records.codes.size
                    yield _Block(one, proteins, passed)
            yield _Block(one)
            # Free these profiles before the next ones are read.
            del one, group
            group = self.next_pass(profiles)

    def _tasks_of(self, block: _Block) -> Iterator[_Task | ProfilePass]:
        """Yield the tasks of a block, or the pass that ends."""
        one, proteins, passed = block
        if proteins is None:
            yield one
            return
        counts_stages = self._options.counts_stages
        # Threads would wait for a long profile that comes last.
        longest_first = sorted(range(len(one.profiles)), key=lambda n: -one.profiles[n].nodes)
        for place, number in enumerate(longest_first, 1):
            if passed is None:
                yield _Task(one, proteins, number, place)
                continue
            survivors = passed[number].those_passing(FILTERS)
            counts = passed[number].counts() if counts_stages else None
            if survivors.sequences.size or counts_stages:
                yield _Task(one, proteins, number, place, survivors, True, counts)

    def _found(
        self, tasks: Iterator[_Task | ProfilePass], window: int
    ) -> Generator[_Found | ProfilePass]:
        """Return what tasks find, and the passes that end, in their order."""

        def work(one: _Task | ProfilePass) -> _Found | ProfilePass | None:
            if isinstance(one, ProfilePass):
                return one
            return self._search(one)

        found: Generator[_Found | ProfilePass]
        found = ordered_results(self._context.executor, window, tasks, work, _parts_of, window // 8)
        return found

    def found_among(
        self, filters: Sequence[ProfileFilter], proteins: NumberedProteins, numbers: range
    ) -> Iterator[tuple[int, HitRecords | None, Int64Array]]:
        """Yield the hits of some profiles in a block, as `ProfilePass.add` takes them."""
        one = ProfilePass([own.profile for own in filters], 0, filters)
        tasks = (_Task(one, proteins, number, number) for number in numbers)
        with closing(self._found(tasks, self._window(len(numbers)))) as results:
            for found in results:
                assert isinstance(found, _Found)
                passed = found.task.passed
                if found.hits is not None or passed.any():
                    yield found.task.number, found.hits, passed

    def _search(self, task: _Task) -> _Found | None:
        """Compare a profile with proteins; return None to split the task if too many pass."""
        profile_filter = task.of.filters[task.number]
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
            return _Found(task, None)
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
        return _Found(task, hits)
