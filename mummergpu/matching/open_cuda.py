"""The ``cuda`` backend, opened if this machine has all that it needs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mummergpu.cuda.device_library import AUTO, device_opener
from mummergpu.cuda.driver import driver_facts
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.pool import DevicePool
from mummergpu.cuda.requirements import cuda_facts, library_to_use, obstacles
from mummergpu.errors import BackendError
from mummergpu.index.options import KmerOptions, TreeOptions
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.backends.memory_plan import LARGEST_BLOCK, usable_memory
from mummergpu.matching.options import DeviceOptions
from mummergpu.runtime.stats import Stats

if TYPE_CHECKING:
    from mummergpu.cuda.device import Device
    from mummergpu.matching.backends.streaming import StreamingBackend

Notice = Callable[[str], None]


def open_cuda_backend(
    kind: KmerOptions | TreeOptions,
    device: DeviceOptions,
    stats: Stats,
    notice: Notice,
    max_block_bases: int = LARGEST_BLOCK,
) -> Backend[Any]:
    """Return the backend on the devices that the options name, ready to load pages.

    `notice` receives messages that -v shows. If something is missing, a `BackendError` says what,
    and how to install it.
    """
    # Without a driver, importing the rest would be wasted time.
    driver = driver_facts()
    if driver.cuda_version is None and device.backend == "auto":
        raise BackendError("cuda", driver.problem or "no driver")
    open_device = _device_opener(device.library, notice)
    numbers = device.numbers
    if numbers is None:
        numbers = tuple(each.number for each in driver.devices)
    folder = None if device.kernel_folder is None else Path(device.kernel_folder)
    opening = _Opening(kind, device, stats, KernelCache(folder, notice), max_block_bases)
    pool = DevicePool(open_device)
    try:
        if len(numbers) == 1:
            return opening.open_one(
                pool.device(numbers[0]), notice, device.memory, device.threads, pool
            )
        return opening.open_several(
            {number: pool.device(number) for number in numbers}, notice, pool
        )
    except BaseException:
        # The backend would close the pool, but there is no backend.
        pool.close()
        raise


def open_first_device(
    options: DeviceOptions, stack: ExitStack, notice: Notice
) -> tuple[Device, KernelCache]:
    """Open the first of the devices that the options name, for programs besides the search.

    The stack closes the device, which is current in the calling thread until then. The cache
    compiles programs for it. If something is missing, a `BackendError` says what, and how to
    install it.
    """
    open_device = _device_opener(options.library, notice)
    device = stack.enter_context(DevicePool(open_device)).device(
        options.numbers[0] if options.numbers else 0
    )
    stack.enter_context(device.current())
    folder = None if options.kernel_folder is None else Path(options.kernel_folder)
    return device, KernelCache(folder, notice)


def _device_opener(wanted: str, notice: Notice) -> Callable[[int], Device]:
    """Return what opens a device; raise `BackendError` if something is missing."""
    facts = cuda_facts(False, wanted)
    missing = obstacles(facts, wanted)
    library = library_to_use(facts, wanted)
    if missing or library is None:
        raise BackendError("cuda", "; ".join(map(str, missing)))
    if wanted == AUTO and facts.pycuda.version is not None and facts.pycuda.problem:
        notice(f"PyCUDA {facts.pycuda.problem}; the devices are used through {library}")
    return device_opener(library)


class _Opening:
    """Opens the backend of one device or of several, for the same kind of index."""

    def __init__(
        self,
        kind: KmerOptions | TreeOptions,
        options: DeviceOptions,
        stats: Stats,
        cache: KernelCache,
        max_block_bases: int,
    ) -> None:
        self._kind = kind
        self._options = options
        self._stats = stats
        self._cache = cache
        self._max_block_bases = max_block_bases

    def open_one(
        self,
        device: Device,
        notice: Notice,
        memory: int | None,
        threads: int,
        pool: DevicePool | None,
    ) -> StreamingBackend[Any, Any]:
        """Return the backend of one device, which closes the pool if it gets one."""
        from mummergpu.matching.kmer.cuda_resident import KmerResidentBackend
        from mummergpu.matching.tree.cuda import TreeCudaBackend

        if isinstance(self._kind, KmerOptions):
            return KmerResidentBackend(
                device,
                self._cache,
                self._stats,
                notice,
                memory,
                self._max_block_bases,
                pool,
                threads,
            )
        return TreeCudaBackend(
            device,
            self._cache,
            self._kind.policy,
            self._stats,
            notice,
            memory,
            self._options.profile,
            self._max_block_bases,
            pool,
            threads,
        )

    def open_several(
        self, devices: dict[int, Device], notice: Notice, pool: DevicePool
    ) -> Backend[Any]:
        """Return the backend of several devices, which closes the pool.

        All devices use as much memory as the smallest one can. Which blocks fit, and whether the
        matches of a query do, thus does not depend on the device that is free. The devices share
        the threads that copy the index to them.
        """
        from mummergpu.matching.backends.several_devices import SeveralDevices, naming_device

        memory = min(_usable_memory(device, self._options.memory) for device in devices.values())
        threads = max(1, self._options.threads // len(devices))
        backends: dict[int, StreamingBackend[Any, Any]] = {}
        with ExitStack() as opened:
            for number, device in devices.items():
                with naming_device(number, device.name):
                    prefixed = _prefixed(notice, f"GPU {number}: ")
                    backends[number] = self.open_one(device, prefixed, memory, threads, None)
                opened.callback(backends[number].close)
            backend = SeveralDevices(backends, pool, self._stats, notice)
            opened.pop_all()
        return backend


def _usable_memory(device: Device, limit: int | None) -> int:
    with device.current():
        return usable_memory(device.memory()[0], limit)


def _prefixed(notice: Notice, prefix: str) -> Notice:
    """Return a function that passes messages on with a prefix."""
    return lambda text: notice(prefix + text)
