"""Choice of the backend that finds the matches: ``cpu`` or ``cuda``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mummergpu.errors import BackendError
from mummergpu.index.options import KmerOptions, TreeOptions
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.backends.memory_plan import LARGEST_BLOCK
from mummergpu.matching.options import DeviceOptions
from mummergpu.runtime.stats import Stats


def open_backend(
    kind: KmerOptions | TreeOptions,
    device: DeviceOptions,
    stats: Stats,
    notice: Callable[[str], None],
    max_block_bases: int = LARGEST_BLOCK,
) -> Backend[Any]:
    """Return the backend that the options name, or the best available one.

    Parameters
    ----------
    device : DeviceOptions
        The backend: ``cpu``, ``cuda``, or ``auto`` for ``cuda`` wherever it is available.
    notice : callable
        Receives progress messages, shown with -v.
    max_block_bases : int
        The most bases of a block of queries that a device searches at once.

    Raises
    ------
    BackendError
        If the requested backend is not available.
    """
    if device.backend == "cpu":
        return open_cpu_backend(kind, stats)
    from mummergpu.matching.open_cuda import open_cuda_backend

    try:
        return open_cuda_backend(kind, device, stats, notice, max_block_bases)
    except BackendError as error:
        if device.backend == "cuda":
            raise
        notice(f"no cuda backend: {error.message}")
        return open_cpu_backend(kind, stats)


def likely_block_bases(kind: KmerOptions | TreeOptions, device: DeviceOptions) -> int:
    """Return the block size in bases that the backend will probably prefer, before it is open.

    The open backend has the same size, unless it finds no device, or one with little memory.
    """
    if device.backend != "cpu":
        from mummergpu.cuda.driver import driver_facts

        if driver_facts().devices:
            return LARGEST_BLOCK
    return open_cpu_backend(kind, Stats()).sizes.block_bases


def open_cpu_backend(kind: KmerOptions | TreeOptions, stats: Stats) -> Backend[Any]:
    """Return the backend that searches k-mer tables or trees on the processor."""
    if isinstance(kind, KmerOptions):
        from mummergpu.matching.kmer.cpu import KmerCpuBackend

        return KmerCpuBackend(stats)
    from mummergpu.matching.tree.cpu import TreeCpuBackend

    return TreeCpuBackend(stats)
