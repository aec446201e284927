"""What finds the matches: the ``cpu`` backend and the ``cuda`` backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mummergpu.errors import BackendError
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.options import MatchOptions
from mummergpu.runtime.stats import Stats


def choose_backend(
    options: MatchOptions, stats: Stats, notice: Callable[[str], None]
) -> Backend[Any]:
    """Return the backend that the options name, or the best that there is.

    Parameters
    ----------
    options : MatchOptions
        Which backend: ``cpu``, ``cuda``, or ``auto`` for ``cuda`` wherever it can be had; and
        what it is to search.
    stats : Stats
        Takes the times of the kernels.
    notice : callable
        Takes lines for people who want to know more.

    Returns
    -------
    Backend
        Ready to hold pages, and to be used by many threads.

    Raises
    ------
    BackendError
        If the backend that was asked for cannot be had.
    """
    if options.backend == "cpu":
        return cpu_backend(options, stats)
    from mummergpu.matching.open_cuda import open_cuda_backend

    try:
        return open_cuda_backend(options, stats, notice)
    except BackendError as error:
        if options.backend == "cuda":
            raise
        notice(f"no cuda backend: {error.message}")
        return cpu_backend(options, stats)


def likely_block_bases(options: MatchOptions) -> int:
    """Return how many bases a block will have that the backend likes, before there is one.

    Parameters
    ----------
    options : MatchOptions
        Which backend, and what it is to search.

    Returns
    -------
    int
        What the backend tells when it is open, unless there is no device after all, or one
        with little memory.
    """
    if options.backend != "cpu":
        from mummergpu.cuda.driver import ask_driver
        from mummergpu.matching.backends.memory_plan import LARGEST_BLOCK

        if ask_driver(False).devices:
            return LARGEST_BLOCK
    return cpu_backend(options, Stats()).sizes.block_bases


def cpu_backend(options: MatchOptions, stats: Stats) -> Backend[Any]:
    """Return the backend that searches trees or tables on the processor."""
    if options.search == "sampled":
        from mummergpu.matching.kmer.cpu import SampledCpuBackend

        return SampledCpuBackend(stats)
    from mummergpu.matching.tree.cpu import CpuBackend

    return CpuBackend(stats)
