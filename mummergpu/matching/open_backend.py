"""What finds the matches: the ``cpu`` backend and the ``cuda`` backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mummergpu.errors import BackendError
from mummergpu.index.options import KmerOptions, TreeOptions
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.options import DeviceOptions
from mummergpu.runtime.stats import Stats


def open_backend(
    kind: KmerOptions | TreeOptions,
    device: DeviceOptions,
    stats: Stats,
    notice: Callable[[str], None],
) -> Backend[Any]:
    """Return the backend that the options name, or the best that there is.

    Parameters
    ----------
    kind : KmerOptions or TreeOptions
        What is searched.
    device : DeviceOptions
        Which backend: ``cpu``, ``cuda``, or ``auto`` for ``cuda`` wherever it can be had.
    stats : Stats
        Takes the times of the kernels.
    notice : callable
        Takes lines for people who want to know more.

    Returns
    -------
    Backend
        Ready to load pages, and to be used by many threads.

    Raises
    ------
    BackendError
        If the backend that was asked for cannot be had.
    """
    if device.backend == "cpu":
        return open_cpu_backend(kind, stats)
    from mummergpu.matching.open_cuda import open_cuda_backend

    try:
        return open_cuda_backend(kind, device, stats, notice)
    except BackendError as error:
        if device.backend == "cuda":
            raise
        notice(f"no cuda backend: {error.message}")
        return open_cpu_backend(kind, stats)


def likely_block_bases(kind: KmerOptions | TreeOptions, device: DeviceOptions) -> int:
    """Return how many bases a block will have that the backend likes, before there is one.

    Parameters
    ----------
    kind : KmerOptions or TreeOptions
        What is searched.
    device : DeviceOptions
        Which backend.

    Returns
    -------
    int
        What the backend tells when it is open, unless there is no device after all, or one
        with little memory.
    """
    if device.backend != "cpu":
        from mummergpu.cuda.driver import driver_facts
        from mummergpu.matching.backends.memory_plan import LARGEST_BLOCK

        if driver_facts().devices:
            return LARGEST_BLOCK
    return open_cpu_backend(kind, Stats()).sizes.block_bases


def open_cpu_backend(kind: KmerOptions | TreeOptions, stats: Stats) -> Backend[Any]:
    """Return the backend that searches tables or trees on the processor."""
    if isinstance(kind, KmerOptions):
        from mummergpu.matching.kmer.cpu import KmerCpuBackend

        return KmerCpuBackend(stats)
    from mummergpu.matching.tree.cpu import TreeCpuBackend

    return TreeCpuBackend(stats)
