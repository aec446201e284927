"""The common part of profile searches and scans: proteins in blocks, and their filters."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np

from mummergpu.errors import BackendError
from mummergpu.hmm.domains.finisher import DomainFinisher
from mummergpu.hmm.filters import ForwardFilter, ProfileFilter
from mummergpu.hmm.finishing import Finisher
from mummergpu.hmm.hit_lists import TABLES, HitCounter, HitList
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import ProteinBlock, sequences_of_marks
from mummergpu.hmm.stage_counts import VITERBI, Reached
from mummergpu.input.blocks.proteins import NamedProteins
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.matching.options import DeviceOptions
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.profile_options import ProfileSearchOptions
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.ordered_map import Prefetcher, ordered_results
from mummergpu.runtime.progress import Phase, Work
from mummergpu.runtime.words import say_nothing

if TYPE_CHECKING:
    from mummergpu.cuda.device import Device
    from mummergpu.cuda.kernel_cache import Programs
    from mummergpu.hmm.device_filters import DeviceFilters

Block = TypeVar("Block")

_WORTH_CELLS: Final = 4e10
"""The cells per thread from which on ``auto`` opens a device: some seconds on a processor. To open
a device takes about one second."""


class ProfileDevice:
    """The device of a profile search, opened for the first filters.

    ``auto`` takes a GPU if there is one and enough work. `residues` is the approximate number to
    search; None if it is unknown and may be large. The stack closes the device.
    """

    def __init__(
        self, options: DeviceOptions, residues: int | None, context: RunContext, stack: ExitStack
    ) -> None:
        self._options = options
        self._residues = residues
        self._context = context
        self._stack = stack
        self._opened: tuple[Device, Programs] | None = None
        self._is_refused = options.backend == "cpu"

    def filters(self, filters: Sequence[ProfileFilter], stack: ExitStack) -> DeviceFilters | None:
        """Return filters on the device, closed by the stack, or None to filter on the processor.

        Raises
        ------
        BackendError
            If the requested device cannot be used.
        """
        context = self._context
        if not self._is_refused and self._is_worth(filters):
            try:
                return self._on_device(filters, stack)
            except BackendError as error:
                if self._options.backend == "cuda":
                    raise
                context.notice(f"no cuda backend: {error.message}")
                self._is_refused = True
        if self._opened is None:
            context.stats.set(backend="cpu")
        return None

    @property
    def is_there(self) -> bool:
        """Whether a device may filter, which needs many profiles at once."""
        if self._is_refused or self._options.backend == "cuda" or self._opened is not None:
            return not self._is_refused
        from mummergpu.cuda.driver import driver_facts

        return bool(driver_facts().devices)

    def _is_worth(self, filters: Sequence[ProfileFilter]) -> bool:
        if self._options.backend == "cuda" or self._opened is not None:
            return True
        nodes = sum(one.profile.nodes for one in filters)
        if self._residues is not None:
            if nodes * self._residues < _WORTH_CELLS * self._context.threads:
                return False
        # Without a GPU, nothing more is imported.
        return self.is_there

    def open_if_asked(self) -> None:
        """Open the device that a user asks for, while profiles are read."""
        if self._options.backend == "cuda":
            self._open()

    def _open(self) -> tuple[Device, Programs]:
        if self._opened is None:
            from mummergpu.cuda.kernel_cache import Programs
            from mummergpu.matching.open_cuda import open_device

            device, cache = open_device(self._options, self._stack, self._context.notice)
            self._opened = device, Programs(device, cache)
        return self._opened

    def _on_device(self, filters: Sequence[ProfileFilter], stack: ExitStack) -> DeviceFilters:
        from mummergpu.hmm.device_filters import DeviceFilters
        from mummergpu.matching.backends.memory_plan import usable_memory

        context, (device, programs) = self._context, self._open()
        stack.enter_context(device.current())
        memory = usable_memory(device.memory()[0], self._options.memory)
        found = DeviceFilters(
            *(device, programs, filters, memory, context.stats, context.urgent_executor),
            self._options.filter_policy,
        )
        stack.callback(found.close)
        context.stats.set(backend="cuda", device=device.name, device_library=device.library)
        return found


def with_survivors(
    blocks: Iterator[Block], survivors: Callable[[Block], list[Reached]] | None
) -> Generator[tuple[Block, list[Reached] | None]]:
    """Yield blocks with the proteins that pass the filters of each profile on a device.

    Without a device, each block comes with None.
    """
    if survivors is None:
        for block in blocks:
            yield block, None
        return
    from mummergpu.hmm.device_filters import STREAMS

    def work(block: Block) -> tuple[Block, list[Reached] | None]:
        return block, survivors(block)

    with ThreadPoolExecutor(STREAMS, "filters") as executor:
        # One more block than the device has streams waits for its turn.
        with closing(ordered_results(executor, STREAMS + 1, blocks, work)) as results:
            yield from results


PROFILES_AT_ONCE: Final = 1000
"""The profiles of a pass over the proteins of a file: memory holds those of up to three passes."""

_DEVICE_RESIDUES: Final = 1 << 32
"""The residues that a device compares in a pass over proteins in memory: the number of profiles,
times that of residues. Threads finish the hits of one pass while the device filters the next."""

FEW_PROFILES: Final = 16
"""The profiles of a pass over proteins in memory, or more if there are many threads."""

_FEW_OF_THREAD: Final = 8
"""The profiles per thread of such a pass: threads idle while the last ones are searched."""

KEPT_RESIDUES: Final = 1 << 25
"""Proteins with up to this many residues stay in memory for all passes."""

SEQUENCES_AT_ONCE: Final = 64
"""The proteins that a task compares with a profile completely."""

SUMMED_AT_ONCE: Final = 1024
"""The proteins that a task passes through the Forward filter."""

_BLOCKS_AHEAD: Final = 2

LARGE_SCALE: Final = 4
"""Blocks are this many times larger if a device filters, or many threads with a profile each: each
profile with a block, or with its survivors, is one Python task."""

FEW_THREADS: Final = 4
"""Up to this number, threads seldom wait for the lock of the interpreter."""


class NumberedProteins(NamedTuple):
    """Proteins, with the number of those before them.

    Attributes
    ----------
    shares : tuple of (float, float) or None
        The shares of the files that are read before and after these.
    unscored : ndarray of int64
        The proteins that no profile is compared with (`sequences_of_marks`).
    """

    records: NamedProteins
    before: int
    shares: tuple[float, float] | None
    unscored: Int64Array

    @property
    def end(self) -> int:
        """The number of proteins up to the last of these."""
        return self.before + self.records.count

    @property
    def block(self) -> ProteinBlock:
        """The proteins as filters and comparisons take them."""
        return ProteinBlock(self.records.codes, self.records.offsets)

    def scored(self, found: Reached) -> Reached:
        """Return those that are compared with a profile."""
        if not self.unscored.size:
            return found
        keeps = ~np.isin(found.sequences, self.unscored, assume_unique=True)
        return Reached(found.sequences[keeps], found.filters[keeps])


class ProfileJob(ABC):
    """The common base of searches and scans."""

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
        self._kept: list[NumberedProteins] | None = None
        self._begun = False
        self._is_prepared = False

    @abstractmethod
    def hits(self) -> Generator[HitList]:
        """Yield the hits of each query."""

    def prepare_finishing(self, profiles: Sequence[Profile]) -> None:
        """Prepare once to finish hits: pyhmmer's pipelines are in reference cycles, freed late."""
        options, alphabet = self._options, profiles[0].hmm.alphabet
        if self._is_prepared:
            return
        self._is_prepared = True
        self._finisher = Finisher(options.finishing, alphabet, options.Z)
        self._domains = DomainFinisher(self._finisher, options.finishing, options.Z)
        kinds = {"domtblout" if kind == "tsv" else kind for kind, _ in options.outputs}
        tables = kinds & TABLES.keys()
        self._counter = HitCounter(alphabet, options.finishing, options.Z, options.scans, tables)

    def next_group(
        self, profiles: Iterator[Profile], can_repeat: bool, is_kept: bool, residues: int
    ) -> tuple[list[Profile], bool]:
        """Return the profiles of the next pass, and whether more may follow.

        All profiles are in one pass if they, or the proteins, can be read only once. They are few
        if the proteins stay in memory, because passes are free then; but a device needs more, the
        more the fewer `residues` there are.
        """
        most = self._few_profiles
        group = list(islice(profiles, min(most, FEW_PROFILES)))
        if not can_repeat:
            most = sys.maxsize
        elif len(group) == FEW_PROFILES and not is_kept:
            most = PROFILES_AT_ONCE
        elif len(group) == FEW_PROFILES and self._device.is_there:
            most = min(max(_DEVICE_RESIDUES // max(residues, 1), FEW_PROFILES), PROFILES_AT_ONCE)
        group += islice(profiles, most - len(group))
        return group, len(group) == most

    @property
    def _few_profiles(self) -> int:
        return max(FEW_PROFILES, _FEW_OF_THREAD * self._context.threads)

    @contextmanager
    def profiles_ahead(self) -> Iterator[Iterator[Profile]]:
        """Read profiles while the ones before are searched."""
        with Prefetcher(self._options.read_profiles(), self._few_profiles) as ahead:
            yield iter(ahead)

    def prepare(self, profiles: Sequence[Profile]) -> list[ProfileFilter]:
        """Prepare to finish hits of profiles; return their filters."""
        self.prepare_finishing(profiles)
        thresholds = self._options.finishing.thresholds
        return [ProfileFilter(one, thresholds) for one in profiles]

    def blocks(self, count_them: bool, scale: int) -> Generator[NumberedProteins]:
        """Yield all proteins in blocks, which are read ahead."""
        stats, source = self._context.stats, self._options.sequences
        before, share = 0, 0.0
        # An empty file has been reported in the first pass.
        warn = self._context.warn if count_them else say_nothing
        with closing(source.blocks(self._reading, warn, scale)) as blocks:
            with Prefetcher(self._drawn(blocks), _BLOCKS_AHEAD) as ahead:
                for records, share_read in ahead:
                    if count_them:
                        stats.add(sequences=records.count, residues=records.codes.size)
                    shares = None if share_read is None else (share, share_read)
                    marks = sequences_of_marks(ProteinBlock(records.codes, records.offsets))
                    yield NumberedProteins(records, before, shares, marks)
                    before += records.count
                    share = share_read or 0.0

    def _drawn(
        self, blocks: Iterator[NamedProteins]
    ) -> Iterator[tuple[NamedProteins, float | None]]:
        """Yield blocks with the share of the files that has been read."""
        source = self._options.sequences
        total = source.bytes_total
        for records in blocks:
            yield records, source.bytes_read / total if total else None

    def filtered(
        self, count_them: bool, filters: Sequence[ProfileFilter], on_device: DeviceFilters | None
    ) -> Generator[tuple[NumberedProteins, list[Reached] | None]]:
        """Yield all blocks, with the proteins that pass all filters of each profile on a device."""
        survivors = None if on_device is None else self._survivors(filters, on_device)
        has_many = len(filters) >= self._context.threads > FEW_THREADS
        scale = LARGE_SCALE if has_many or on_device is not None else 1
        every = self._kept or self._keeping(self.blocks(count_them, scale))
        with closing(with_survivors(iter(every), survivors)) as blocks:
            yield from blocks

    def _keeping(self, blocks: Iterable[NumberedProteins]) -> Generator[NumberedProteins]:
        """Yield blocks, and keep them for later passes if they fit into memory."""
        kept: list[NumberedProteins] = []
        residues = 0
        for one in blocks:
            residues += one.records.codes.size
            kept = [*kept, one] if fit_in_memory(residues) else []
            yield one
        if fit_in_memory(residues):
            self._kept = kept

    def settled(self, profile: Profile, proteins: NumberedProteins, found: Reached) -> Reached:
        """Return the same for a report with what HMMER says of those that are unknown."""
        if not self._options.counts_stages:
            return found
        return found.settled(partial(self._finisher.filters_passed, profile, proteins.records))

    def passing(self, one: ProfileFilter, proteins: NumberedProteins) -> Reached:
        """Return the proteins that pass the filters of a profile before Forward's."""
        stats = self._context.stats
        with stats.stage("profile_filters"):
            found = one.filtered(proteins.block, stats, self._options.counts_stages)
        stats.add_cells("profile_filters", proteins.records.codes.size * one.profile.nodes)
        return self.settled(one.profile, proteins, proteins.scored(found))

    def passing_forward(
        self, one: ProfileFilter, proteins: NumberedProteins, reached: Reached
    ) -> Reached:
        """Return how many filters the survivors of those before Forward's pass."""
        found = one.pass_forward(proteins.block, reached, self._context.stats)
        return self.settled(one.profile, proteins, found)

    def _survivors(
        self, filters: Sequence[ProfileFilter], on_device: DeviceFilters
    ) -> Callable[[NumberedProteins], list[Reached]]:
        """Return a function that filters a block with each profile, including Forward's filter."""
        context, counts = self._context, self._options.counts_stages
        # Made while the device filters the first block.
        making = context.urgent_executor.submit(ForwardFilter, filters)

        def settled(found: Sequence[Reached], proteins: NumberedProteins) -> list[Reached]:
            each = zip(filters, found, strict=True)
            return [self.settled(one.profile, proteins, own) for one, own in each]

        def survivors(proteins: NumberedProteins) -> list[Reached]:
            found = map(proteins.scored, on_device.filtered(proteins.block, counts))
            reached = settled([*found], proteins)
            passed = [one.passing(VITERBI) for one in reached]
            ends = np.cumsum([one.size for one in passed])
            profiles = np.repeat(np.arange(len(passed)), np.diff(ends, prepend=0))
            sequences = np.concatenate(passed)
            keeps = np.empty((2, sequences.size), dtype=np.bool_)
            forward = making.result()

            def work(first: int) -> None:
                some = slice(first, first + SUMMED_AT_ONCE)
                own = proteins.block, profiles[some], sequences[some]
                keeps[:, some] = forward.passing(*own, context.stats)

            list(context.urgent_executor.map(work, range(0, sequences.size, SUMMED_AT_ONCE)))
            parts = zip(reached, np.split(keeps, ends[:-1], axis=1), strict=True)
            return settled([one.after_forward(*own) for one, own in parts], proteins)

        return survivors

    def tell(
        self, phase: Phase, numbers: tuple[int, ...], block: NumberedProteins, done: float
    ) -> None:
        """Report the progress of the search; `share` of a block is done."""
        share = None
        if self._has_share and block.shares is not None:
            share = block.shares[0] + (block.shares[1] - block.shares[0]) * done
        self._context.progress.tell(Work(phase, numbers, 0, share))


def fit_in_memory(residues: int) -> bool:
    """Return whether this number of residues stays in memory for all passes."""
    return residues <= KEPT_RESIDUES
