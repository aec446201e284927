"""Whether the ``cuda`` backend can be had here, and the backend if it can."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mummergpu.cuda.driver import ask_driver
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.requirements import cuda_facts, obstacles
from mummergpu.errors import BackendError
from mummergpu.matching.options import MatchOptions
from mummergpu.runtime.stats import Stats

if TYPE_CHECKING:
    from mummergpu.matching.backends.streaming import StreamingBackend


def open_cuda_backend(
    options: MatchOptions, stats: Stats, notice: Callable[[str], None]
) -> StreamingBackend[Any, Any]:
    """Return the backend on the device that the options name.

    Parameters
    ----------
    options : MatchOptions
        Device, memory, policy, and where compiled kernels are kept.
    stats : Stats
        Takes what the backend tells of its work.
    notice : callable
        Takes lines for people who want to know more.

    Returns
    -------
    StreamingBackend
        Ready to hold pages, with trees or with tables as the options say.

    Raises
    ------
    BackendError
        If something is missing; says what, and what installs it.
    """
    # Without a driver nothing else is worth importing.
    driver = ask_driver(False)
    if driver.cuda_version is None and options.backend == "auto":
        raise BackendError("cuda", driver.problem or "no driver")
    missing = obstacles(cuda_facts(False))
    if missing:
        raise BackendError("cuda", "; ".join(map(str, missing)))
    from mummergpu.cuda.pycuda_device import PycudaDevice
    from mummergpu.matching.kmer.cuda import SampledCudaBackend
    from mummergpu.matching.tree.cuda import CudaBackend

    folder = None if options.kernel_folder is None else Path(options.kernel_folder)
    device = PycudaDevice(options.device)
    cache = KernelCache(folder, notice)
    try:
        if options.search == "sampled":
            return SampledCudaBackend(device, cache, stats, notice, options.gpu_memory)
        return CudaBackend(
            device,
            cache,
            options.policy,
            stats,
            notice,
            options.gpu_memory,
            options.profile,
        )
    except BaseException:
        # Without a backend nobody else would.
        device.close()
        raise
