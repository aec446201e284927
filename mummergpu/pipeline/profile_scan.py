"""Searches proteins against profiles, as HMMER's hmmscan does."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any

import numpy as np

from mummergpu.hmm.domains.finisher import ScannedPair
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.hit_lists import HitList, HitRecords
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.stage_counts import FILTERS, Reached, Statistics
from mummergpu.input.blocks.proteins import NamedProteins
from mummergpu.pipeline.profile_job import (
    FEW_THREADS,
    LARGE_SCALE,
    SEQUENCES_AT_ONCE,
    NumberedProteins,
    ProfileJob,
    fit_in_memory,
    with_survivors,
)
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.ordered_map import ordered_results
from mummergpu.runtime.progress import Phase
from mummergpu.runtime.pyhmmer_library import bytes_of


class ProfileScan(ProfileJob):
    """A search of proteins against profiles.

    A stretch of the proteins stays in memory while profiles pass over it, a few at a time. If there
    are several stretches, the profiles would be read again for each: then many pass at a time, and
    all stay in memory if one pass has all of them.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._filters: list[ProfileFilter] | None = None

    def hits(self) -> Generator[HitList]:
        """Yield the hits of each protein, in order."""
        with closing(self._stretches()) as stretches:
            for stretch, is_last in stretches:
                with closing(self._groups(stretch, is_last)) as groups:
                    yield from self.hits_of(stretch, groups)

    def _stretches(self) -> Generator[tuple[list[NumberedProteins], bool]]:
        """Yield stretches of blocks that fit into memory, and whether each is the last one."""
        is_large = self._context.threads > FEW_THREADS or self._options.device.backend == "cuda"
        stretch: list[NumberedProteins] = []
        with closing(self.blocks(True, LARGE_SCALE if is_large else 1)) as blocks:
            for one in blocks:
                sizes = [block.records.codes.size for block in (*stretch, one)]
                if stretch and not fit_in_memory(sum(sizes)):
                    yield stretch, False
                    stretch = []
                stretch.append(one)
        # Even without proteins, profiles are read and checked.
        yield stretch, True

    def _groups(
        self, stretch: Sequence[NumberedProteins], is_last: bool
    ) -> Generator[list[ProfileFilter]]:
        """Yield the filters of the profiles of each pass over a stretch."""
        if self._filters is not None:
            yield self._filters
            return
        can_repeat = is_last or self._options.can_repeat_profiles
        is_first = not stretch or stretch[0].before == 0
        is_alone = True
        with self.profiles_ahead() as profiles:
            while True:
                group, may_go_on = self.next_group(profiles, can_repeat, is_last, 0)
                if not group:
                    return
                if is_first:
                    self._context.stats.add(
                        profiles=len(group), nodes=sum(one.nodes for one in group)
                    )
                filters = self.prepare(group)
                is_alone = is_alone and not may_go_on
                # If there are several passes, their number is unknown.
                self._has_share = is_alone
                if is_alone:
                    self._filters = filters
                # Free these profiles before the next ones are read.
                del group
                yield filters
                del filters

    def hits_of(
        self, stretch: Sequence[NumberedProteins], groups: Iterable[list[ProfileFilter]]
    ) -> Iterator[HitList]:
        """Yield the hits of each protein of a stretch against groups of profiles."""
        parts: list[list[list[HitRecords]]] = [
            [[] for _ in range(one.records.count)] for one in stretch
        ]
        passed = [np.zeros((one.records.count, FILTERS), dtype=np.int64) for one in stretch]
        targets = nodes = 0
        for filters in groups:
            with ExitStack() as stack:
                on_device = self._device.filters(filters, stack)
                survivors = None if on_device is None else self._survivors(filters, on_device)
                blocks = stack.enter_context(closing(with_survivors(iter(stretch), survivors)))
                for own, counts, (proteins, reached) in zip(parts, passed, blocks, strict=True):
                    kept = self._compared(proteins, reached, filters, counts)
                    self._add_hits(own, proteins, kept, filters, targets)
            targets += len(filters)
            nodes += sum(one.profile.nodes for one in filters)
        if targets == 0:
            return

        def joined(some: tuple[int, range]) -> list[HitList]:
            block, numbers = some
            found = []
            for number in numbers:
                query = self._finisher.query(stretch[block].records, number)
                statistics = Statistics(targets, nodes, tuple(passed[block][number].tolist()))
                found.append(self._counter.join(query, parts[block][number], statistics))
                parts[block][number] = []
            return found

        context = self._context
        some = ((block, part) for block, own in enumerate(parts) for part in _few_of(len(own)))
        for found in ordered_results(context.executor, context.window, some, joined):
            yield from found

    def _compared(
        self,
        proteins: NumberedProteins,
        reached: list[Reached] | None,
        filters: Sequence[ProfileFilter],
        counts: Int64Array,
    ) -> list[Reached]:
        """Return the proteins that pass the filters of each profile; count each filter's.

        `reached` has those of a device, `counts` a row for each protein.
        """

        def summed(number: int) -> Reached:
            if reached is not None:
                return reached[number]
            found = self.passing(filters[number], proteins)
            forward = self.passing_forward(filters[number], proteins, found)
            return found.with_filters(forward) if self._options.counts_stages else forward

        every, context = range(len(filters)), self._context
        kept = []
        for found in ordered_results(context.executor, context.window, every, summed):
            kept.append(found.those_passing(FILTERS))
            if self._options.counts_stages:
                for filters_passed in range(1, FILTERS + 1):
                    counts[found.passing(filters_passed), filters_passed - 1] += 1
        return kept

    def _add_hits(
        self,
        parts: list[list[HitRecords]],
        proteins: NumberedProteins,
        kept: list[Reached],
        filters: Sequence[ProfileFilter],
        before: int,
    ) -> None:
        """Add the hits of each protein of a block; `before` counts the earlier profiles."""
        context, records = self._context, proteins.records
        stats = context.stats
        own = [one.sequences for one in kept]
        numbers = np.repeat(np.arange(len(filters)), [one.size for one in own])
        sequences = np.concatenate(own)
        pairs = self._pairs(records, filters, kept)
        # Stable, so that the profiles of a protein stay in the order of their files.
        order = np.argsort(sequences, kind="stable")
        bounds = np.searchsorted(sequences[order], np.arange(records.count + 1)).tolist()
        numbers = numbers[order]

        def scan(some: range) -> int:
            with stats.stage("profile_finishing"):
                for number in some:
                    own = numbers[bounds[number] : bounds[number + 1]].tolist()
                    if own:
                        profiles = [(filters[one].profile, before + one + 1) for one in own]
                        known = None if pairs is None else [pairs[one].get(number) for one in own]
                        found = self._scan(records, number, profiles, known)
                        if found.tells_something:
                            parts[number].append(found)
            return some.stop

        each = _few_of(records.count)
        for done in ordered_results(context.executor, context.window, each, scan):
            if self._has_share:
                share = done / records.count
                self.tell(Phase.SEQUENCES, (proteins.before + done,), proteins, share)
        if not self._has_share:
            count = before + len(filters)
            self.tell(Phase.PROFILES, (count, count, proteins.end), proteins, 1.0)

    def _pairs(
        self,
        records: NamedProteins,
        filters: Sequence[ProfileFilter],
        survivors: Sequence[Reached],
    ) -> list[dict[int, ScannedPair]] | None:
        """Compare profiles with the proteins that passed their filters; None for alignments."""
        if self._options.needs_alignments:
            return None
        pairs: list[dict[int, ScannedPair]] = [{} for _ in filters]
        sizes = np.diff(records.offsets)

        def compare(part: tuple[int, Reached]) -> tuple[int, dict[int, ScannedPair]]:
            number, some = part
            stats, profile = self._context.stats, filters[number].profile
            self._options.check_cutoffs(profile)
            stats.add_cells("profile_finishing", int(sizes[some.sequences].sum()) * profile.nodes)
            with stats.stage("profile_finishing"):
                return number, self._domains.scan(filters[number], records, some)

        parts = (
            (number, own.part(first, first + SEQUENCES_AT_ONCE))
            for number, own in enumerate(survivors)
            for first in range(0, own.sequences.size, SEQUENCES_AT_ONCE)
        )
        context = self._context
        for number, found in ordered_results(context.executor, context.window, parts, compare):
            pairs[number] |= found
        return pairs

    def _scan(
        self,
        records: NamedProteins,
        number: int,
        profiles: Sequence[tuple[Profile, int]],
        pairs: Sequence[ScannedPair | None] | None,
    ) -> HitRecords:
        """Compare a protein with profiles, given with their numbers among all.

        `pairs` are those of the profiles, if they have been compared.
        """
        models = [profile for profile, _ in profiles]
        if pairs is None:
            for profile in models:
                self._options.check_cutoffs(profile)
            residues = int(records.offsets[number + 1] - records.offsets[number])
            cells = residues * sum(profile.nodes for profile in models)
            self._context.stats.add_cells("profile_finishing", cells)
            hits, impossible = self._finisher.scan(records, number, models)
            found = HitRecords.of_hits(hits, True)
        else:
            found, impossible = self._domains.of_protein(records, number, models, pairs)

        def place_of(target: bytes) -> int:
            return next(place for profile, place in profiles if bytes_of(profile.name) == target)

        found = self._counter.part(found, profiles[-1][1], place_of)
        left_out = tuple(f"{one.path}: {one.shown_name}" for one in impossible)
        return found._replace(impossible=left_out)


def _few_of(count: int) -> Iterator[range]:
    """Yield the numbers of proteins, a few at a time."""
    for first in range(0, count, SEQUENCES_AT_ONCE):
        yield range(first, min(first + SEQUENCES_AT_ONCE, count))
