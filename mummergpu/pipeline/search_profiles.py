"""Search profiles in proteins, as HMMER's hmmsearch and hmmscan do.

All profiles pass over a block of proteins before the next one is read. The filters find what few
proteins are worth more; these are compared to the end at once, and their hits joined when the
number of all targets is known. A scan is the same, but its hits are those of a protein.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.finishing import finish, finish_scan
from mummergpu.hmm.hit_lists import HitCounter, HitList, QueryWords
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.input.blocks.proteins import NamedProteins
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.output.profiles import ALIGNMENT, PARQUET, AlignmentSink, HitSink, TableSink
from mummergpu.output.sink import writer_of
from mummergpu.pipeline.context import RunContext, say_nothing
from mummergpu.pipeline.profile_options import ProfileSearchOptions
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.ordered_map import Prefetcher, ordered_results
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import Phase, Work

PROFILES_AT_ONCE: Final = 2000
"""The profiles of a pass over the proteins: memory holds the hits of all of them."""

SEQUENCES_AT_ONCE: Final = 64
"""The proteins that a task compares to the end."""

_BLOCKS_AHEAD: Final = 2


def run(
    options: ProfileSearchOptions, context: RunContext, own_sink: HitSink | None = None
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
        job = (_Scan if options.scans else _Search)(options, context, reading)
        with closing(job.hits()) as found:
            for hits in found:
                context.stats.add(hits=sum(1 for _ in hits.reported()))
                with context.stats.stage("format"):
                    for sink in sinks:
                        sink.write(hits)
        for sink in sinks:
            sink.finish()
        context.executor.shutdown()


def _open_sink(
    kind: str, file: OutputFile, options: ProfileSearchOptions, context: RunContext
) -> HitSink:
    emit = writer_of(file, context.stats)
    if kind == ALIGNMENT:
        return AlignmentSink(emit, options.program)
    if kind == PARQUET:
        from mummergpu.output.profile_columns import ParquetSink

        return ParquetSink(file, options.orfs)
    return TableSink(kind, emit, options.program, options.command)


class _Numbered(NamedTuple):
    """Proteins, and the number of those before them."""

    records: NamedProteins
    before: int

    @property
    def block(self) -> ProteinBlock:
        return ProteinBlock(self.records.codes, self.records.offsets)


class _Lazy(Sequence[str]):
    """The names or the descriptions of proteins, each made when it is asked for."""

    def __init__(self, text_of: Callable[[int], str], length: int) -> None:
        self._text_of = text_of
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, number: Any) -> Any:
        return self._text_of(int(number))


class _Task:
    """A profile and proteins; the numbers of those that have passed the filters, if known."""

    def __init__(
        self, proteins: _Numbered, number: int, survivors: Int64Array | None = None
    ) -> None:
        self.proteins = proteins
        self.number = number
        self.survivors = survivors

    def parts(self) -> Iterator[_Task]:
        """Yield tasks with a few of the survivors each."""
        survivors = self.survivors
        assert survivors is not None
        for begin in range(0, survivors.size, SEQUENCES_AT_ONCE):
            yield _Task(self.proteins, self.number, survivors[begin : begin + SEQUENCES_AT_ONCE])


class _Found(NamedTuple):
    """The hits of a profile in a part of the proteins, and how many were compared to the end."""

    number: int
    hits: Any
    compared: int


class _Job:
    """What searches and scans have in common."""

    def __init__(
        self, options: ProfileSearchOptions, context: RunContext, reading: ReadingThreads
    ) -> None:
        self._options = options
        self._context = context
        self._reading = reading
        self._filtered_profiles = 0

    def filters_of(self, profiles: Sequence[Profile]) -> list[ProfileFilter]:
        """Return the filters of some profiles."""
        thresholds = self._options.finishing.thresholds
        make = self._context.executor.map(lambda one: ProfileFilter(one, thresholds), profiles)
        return list(make)

    def blocks(self, count_them: bool) -> Iterator[_Numbered]:
        """Yield all proteins in blocks, which are read ahead."""
        stats, source = self._context.stats, self._options.sequences
        before = 0
        # A file that is read again has told already that it is empty.
        warn = self._context.warn if count_them else say_nothing
        with closing(source.blocks(self._reading, warn)) as blocks:
            with Prefetcher(blocks, _BLOCKS_AHEAD) as ahead:
                for records in ahead:
                    if count_them:
                        stats.add(sequences=records.protein_count, residues=records.codes.size)
                    yield _Numbered(records, before)
                    before += records.protein_count
                    total = source.bytes_total
                    share = source.bytes_read / total if total else None
                    self._context.progress.tell(Work(Phase.SEQUENCES, (before,), 0, share))

    def counter(self, profiles: Sequence[Profile]) -> HitCounter:
        """Return what joins hits of these profiles."""
        options = self._options
        return HitCounter(profiles[0].hmm.alphabet, options.finishing, options.Z, options.scans)


class _Search(_Job):
    """The hits of profiles among proteins."""

    def hits(self) -> Generator[HitList]:
        """Yield the hits of each profile."""
        profiles = self._options.read_profiles()
        at_once = PROFILES_AT_ONCE if self._options.sequences.can_repeat else None
        is_first = True
        while group := list(islice(profiles, at_once)):
            self._context.stats.add(profiles=len(group), nodes=sum(one.nodes for one in group))
            yield from self._hits_of(group, is_first)
            is_first = False

    def _hits_of(self, profiles: Sequence[Profile], is_first: bool) -> Iterator[HitList]:
        context, counter = self._context, self.counter(profiles)
        filters = self.filters_of(profiles)
        parts: list[list[Any]] = [[] for _ in profiles]
        compared = [0] * len(profiles)
        targets = 0

        def tasks() -> Iterator[_Task]:
            nonlocal targets
            for proteins in self.blocks(is_first):
                targets += proteins.records.protein_count
                for number in range(len(profiles)):
                    yield _Task(proteins, number)

        def work(task: _Task) -> _Found | None:
            return self._search(filters[task.number], counter, task)

        results = ordered_results(context.executor, context.window, tasks(), work, _Task.parts)
        with closing(results):
            for number, hits, count in results:
                if hits is not None and len(hits):
                    parts[number].append(hits)
                    compared[number] += count

        def join(number: int) -> HitList:
            hmm, own = profiles[number].hmm, parts[number]
            parts[number] = []
            return counter.join(hmm, own, targets, compared[number])

        yield from ordered_results(context.executor, context.window, range(len(profiles)), join)

    def _search(
        self, profile_filter: ProfileFilter, counter: HitCounter, task: _Task
    ) -> _Found | None:
        """Compare a profile with proteins; return None if so many pass that they are split."""
        stats = self._context.stats
        records, before = task.proteins
        if task.survivors is None:
            with stats.stage("profile_filters"):
                task.survivors = profile_filter.survivors(task.proteins.block, stats)
            if task.survivors.size > SEQUENCES_AT_ONCE:
                return None
        survivors = task.survivors
        if survivors.size == 0:
            return _Found(task.number, None, 0)
        count = records.protein_count
        names, descriptions = _Lazy(records.name, count), _Lazy(records.description, count)
        with stats.stage("profile_finishing"):
            hits = finish(
                profile_filter.profile,
                task.proteins.block,
                names,
                descriptions,
                survivors,
                self._options.finishing,
                self._options.Z,
            )

            def place_of(name: str) -> int:
                return next(before + int(one) + 1 for one in survivors if names[one] == name)

            hits = counter.without_late(hits, before + int(survivors[-1]) + 1, place_of)
        return _Found(task.number, hits, survivors.size)


class _Scan(_Job):
    """The hits of proteins among profiles."""

    def hits(self) -> Generator[HitList]:
        """Yield the hits of each protein."""
        context = self._context
        profiles = list(self._options.read_profiles())
        context.stats.add(profiles=len(profiles), nodes=sum(one.nodes for one in profiles))
        counter, filters = self.counter(profiles), self.filters_of(profiles)
        for proteins in self.blocks(True):
            yield from self._hits_of(proteins.records, filters, counter)

    def _hits_of(
        self, records: NamedProteins, filters: Sequence[ProfileFilter], counter: HitCounter
    ) -> Iterator[HitList]:
        """Yield the hits of each protein of a block."""
        context, block = self._context, ProteinBlock(records.codes, records.offsets)

        def survivors(one: ProfileFilter) -> Int64Array:
            with context.stats.stage("profile_filters"):
                return one.survivors(block, context.stats)

        passed = list(ordered_results(context.executor, context.window, filters, survivors))
        numbers = np.repeat(np.arange(len(filters)), [one.size for one in passed])
        sequences = np.concatenate(passed)
        # Stable: the profiles that a protein is compared with stay in the order of their files.
        order = np.argsort(sequences, kind="stable")
        bounds = np.searchsorted(sequences[order], np.arange(records.protein_count + 1)).tolist()
        numbers = numbers[order]

        def scan(first: int) -> list[HitList]:
            found = []
            with context.stats.stage("profile_finishing"):
                for number in range(first, min(first + SEQUENCES_AT_ONCE, len(bounds) - 1)):
                    own = numbers[bounds[number] : bounds[number + 1]].tolist()
                    profiles = [(filters[one].profile, one + 1) for one in own]
                    found.append(self._scan(records, number, profiles, counter, len(filters)))
            return found

        firsts = range(0, records.protein_count, SEQUENCES_AT_ONCE)
        for found in ordered_results(context.executor, context.window, firsts, scan):
            yield from found

    def _scan(
        self,
        records: NamedProteins,
        number: int,
        profiles: Sequence[tuple[Profile, int]],
        counter: HitCounter,
        targets: int,
    ) -> HitList:
        """Compare a protein with profiles, which have their places among all."""
        name = records.name(number)
        if not profiles:
            return HitList(QueryWords(name), None)
        block = ProteinBlock(records.codes, records.offsets)
        options = self._options
        description = records.description(number)
        models = [profile for profile, _ in profiles]
        hits = finish_scan(block, number, name, description, models, options.finishing, options.Z)

        def place_of(target: str) -> int:
            return next(place for profile, place in profiles if profile.name == target)

        hits = counter.without_late(hits, profiles[-1][1], place_of)
        return counter.join(hits.query, [hits], targets, len(profiles))
