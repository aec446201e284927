"""Opens the device that filters proteins for profiles, where it is wanted and worth it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from mummergpu.errors import BackendError
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.matching.options import DeviceOptions
from mummergpu.pipeline.context import RunContext
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.ordered_map import ordered_results

if TYPE_CHECKING:
    from mummergpu.cuda.device import Device
    from mummergpu.cuda.kernel_cache import KernelCache
    from mummergpu.hmm.device_filters import DeviceFilters

Block = TypeVar("Block")

_WORTH_CELLS: Final = 4e10
"""The cells for each thread from which on ``auto`` opens a device: some seconds of a processor. A
device takes about one to open."""


class ProfileDevice:
    """The device of a search with profiles, opened when the first filters are asked of it.

    Parameters
    ----------
    options : DeviceOptions
        The backend: ``cpu``, ``cuda``, or ``auto`` for ``cuda`` where it is available and there is
        work enough.
    residues : int or None
        About how many residues are searched; None if it is not known, and may be many.
    context : RunContext
        Whom to tell, and the threads.
    stack : contextlib.ExitStack
        Closes the device.
    """

    def __init__(
        self, options: DeviceOptions, residues: int | None, context: RunContext, stack: ExitStack
    ) -> None:
        # PyCUDA does not grant kernels the shared memory that they need.
        self._options = replace(options, library="cuda-bindings")
        self._residues = residues
        self._context = context
        self._stack = stack
        self._opened: tuple[Device, KernelCache] | None = None
        self._is_refused = options.backend == "cpu"

    def filters(self, filters: Sequence[ProfileFilter], stack: ExitStack) -> DeviceFilters | None:
        """Return filters that the stack closes, or None for those of the processor.

        Raises
        ------
        BackendError
            If a device is asked for and cannot be used.
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
        """Whether a device may filter: it wants many profiles at once."""
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
        # Where there is none, nothing more is imported.
        return self.is_there

    def _on_device(self, filters: Sequence[ProfileFilter], stack: ExitStack) -> DeviceFilters:
        context = self._context
        if self._opened is None:
            from mummergpu.matching.open_cuda import open_device

            self._opened = open_device(self._options, self._stack, context.notice)
        from mummergpu.hmm.device_filters import DeviceFilters
        from mummergpu.matching.backends.memory_plan import usable_memory

        device, cache = self._opened
        memory = usable_memory(device.memory()[0], self._options.memory)
        found = DeviceFilters(
            *(device, cache, filters, memory, context.stats, context.executor),
            self._options.filter_policy,
        )
        stack.callback(found.close)
        context.stats.set(backend="cuda", device=device.name, device_library=device.library)
        return found


def filtered(
    blocks: Iterator[Block],
    survivors: Callable[[Block], list[Int64Array]] | None,
) -> Generator[tuple[Block, list[Int64Array] | None]]:
    """Yield blocks with the sequences that pass the filters of each profile on a device.

    Without one nobody has looked yet, and None is yielded beside each block.
    """
    if survivors is None:
        for block in blocks:
            yield block, None
        return
    from mummergpu.hmm.device_filters import STREAMS

    def work(block: Block) -> tuple[Block, list[Int64Array] | None]:
        return block, survivors(block)

    with ThreadPoolExecutor(STREAMS, "filters") as executor:
        # One more than the device has: it waits until the others have been taken.
        with closing(ordered_results(executor, STREAMS + 1, blocks, work)) as results:
            yield from results
