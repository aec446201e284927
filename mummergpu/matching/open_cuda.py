"""The ``cuda`` backend, opened if this machine has all that it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mummergpu.cuda.driver import driver_facts
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.pool import DevicePool
from mummergpu.cuda.requirements import cuda_facts, obstacles
from mummergpu.errors import BackendError
from mummergpu.index.options import KmerOptions, TreeOptions
from mummergpu.matching.backends.memory_plan import LARGEST_BLOCK
from mummergpu.matching.options import DeviceOptions
from mummergpu.runtime.stats import Stats

if TYPE_CHECKING:
    from mummergpu.matching.backends.streaming import StreamingBackend


def open_cuda_backend(
    kind: KmerOptions | TreeOptions,
    device: DeviceOptions,
    stats: Stats,
    notice: Callable[[str], None],
    most_block_bases: int = LARGEST_BLOCK,
) -> StreamingBackend[Any, Any]:
    """Return the backend on the device that the options name.

    Parameters
    ----------
    kind : KmerOptions or TreeOptions
        The kind of index to search; for trees, also the policy.
    device : DeviceOptions
        The device, how much of its memory to use, and the folder of compiled kernels.
    stats : Stats
        Collects counts, bytes and times.
    notice : callable
        Receives progress messages, shown with -v.
    most_block_bases : int
        The most bases of a block of queries; fewer if memory is short.

    Returns
    -------
    StreamingBackend
        Ready to load pages with trees or with k-mer tables, as the options say.

    Raises
    ------
    BackendError
        If something is missing; the message says what, and how to install it.
    """
    # Without a driver, importing the rest would be wasted time.
    driver = driver_facts()
    if driver.cuda_version is None and device.backend == "auto":
        raise BackendError("cuda", driver.problem or "no driver")
    missing = obstacles(cuda_facts(False))
    if missing:
        raise BackendError("cuda", "; ".join(map(str, missing)))
    from mummergpu.cuda.pycuda_device import PycudaDevice
    from mummergpu.matching.kmer.cuda import KmerCudaBackend
    from mummergpu.matching.tree.cuda import TreeCudaBackend

    folder = None if device.kernel_folder is None else Path(device.kernel_folder)
    pool = DevicePool(PycudaDevice)
    opened = pool.device(device.number)
    cache = KernelCache(folder, notice)
    try:
        if isinstance(kind, KmerOptions):
            return KmerCudaBackend(
                opened, cache, stats, notice, device.memory, most_block_bases, pool
            )
        return TreeCudaBackend(
            opened,
            cache,
            kind.policy,
            stats,
            notice,
            device.memory,
            device.profile,
            most_block_bases,
            pool,
        )
    except BaseException:
        # The backend would close the pool, but there is no backend.
        pool.close()
        raise
