"""What finds the matches: the ``cpu`` backend; a ``cuda`` backend stands beside it later."""

from __future__ import annotations

from mummergpu.backends.cpu import CpuBackend
from mummergpu.backends.interface import Backend
from mummergpu.errors import BackendError
from mummergpu.stats import Stats


def choose_backend(name: str, minimum_length: int, stats: Stats) -> Backend:
    """Return a backend by its name.

    Parameters
    ----------
    name : str
        ``cpu``, ``cuda``, or ``auto`` for the fastest that there is.
    minimum_length : int
        The fewest bases of a MEM.
    stats : Stats
        Takes the times of the kernels.

    Returns
    -------
    Backend
        Ready to be used by many threads.

    Raises
    ------
    BackendError
        If the backend that was asked for cannot be had.
    """
    if name == "cuda":
        raise BackendError(name, "this version has none yet; use --backend cpu")
    return CpuBackend(minimum_length, stats)
