"""The ``cuda`` backend, opened if this machine has all that it needs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mummergpu.cuda.device_library import AUTO, device_opener
from mummergpu.cuda.driver import driver_facts
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.requirements import cuda_facts, library_to_use, obstacles
from mummergpu.errors import BackendError
from mummergpu.index.options import KmerOptions, TreeOptions
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.backends.memory_plan import LARGEST_BLOCK
from mummergpu.matching.options import DeviceOptions
from mummergpu.runtime.stats import Stats

if TYPE_CHECKING:
    from mummergpu.cuda.device import Device

Notice = Callable[[str], None]


def open_cuda_backend(
    kind: KmerOptions | TreeOptions,
    options: DeviceOptions,
    stats: Stats,
    notice: Notice,
    max_block_bases: int = LARGEST_BLOCK,
) -> Backend[Any]:
    """Return the backend on the device that the options name, ready to load pages.

    `notice` receives messages that -v shows. If something is missing, a `BackendError` says what,
    and how to install it.
    """
    # Without a driver, importing the rest would be wasted time.
    driver = driver_facts()
    if driver.cuda_version is None and options.backend == "auto":
        raise BackendError("cuda", driver.problem or "no driver")
    with ExitStack() as failure:
        device, cache = open_device(options, failure, notice)
        backend: Backend[Any]
        if isinstance(kind, KmerOptions):
            from mummergpu.matching.kmer.cuda import KmerCudaBackend

            backend = KmerCudaBackend(
                *(device, cache, stats, notice),
                *(options.memory, max_block_bases, options.threads),
                closes_device=True,
            )
        else:
            from mummergpu.matching.tree.cuda import TreeCudaBackend

            backend = TreeCudaBackend(
                *(device, cache, kind.policy, stats, notice),
                *(options.memory, options.profile, max_block_bases, options.threads),
                closes_device=True,
            )
        failure.pop_all()
    return backend


def open_device(
    options: DeviceOptions, stack: ExitStack, notice: Notice
) -> tuple[Device, KernelCache]:
    """Open the device that the options name, for programs besides the search.

    The stack closes the device; callers make it current. The cache compiles programs for it. If
    something is missing, a `BackendError` says what, and how to install it.
    """
    facts = cuda_facts(False, options.library)
    missing = obstacles(facts, options.library)
    library = library_to_use(facts, options.library)
    if missing or library is None:
        raise BackendError("cuda", "; ".join(map(str, missing)))
    if options.library == AUTO and facts.pycuda.version is not None and facts.pycuda.problem:
        notice(f"PyCUDA {facts.pycuda.problem}; the devices are used through {library}")
    device = device_opener(library)(options.number)
    stack.callback(device.close)
    folder = None if options.kernel_folder is None else Path(options.kernel_folder)
    return device, KernelCache(folder, notice)
