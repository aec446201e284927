"""What goes wrong on a worker, so that it can be told, or done elsewhere."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable
from typing import Any, Final, TypeVar

from mummergpu.errors import BackendError, ClusterError, MummergpuError, OutputError
from mummergpu.runtime.compiled.store import digest_of_sources
from mummergpu.runtime.frozen import frozen

Result = TypeVar("Result")

DIGEST: Final = digest_of_sources(left_out=())
"""What the sources of this process were when it began."""


@frozen
class Fault:
    """Why a worker has not done a task.

    Attributes
    ----------
    error : MummergpuError
        What to tell the user.
    worker : str
        The address of the worker.
    is_of_machine : bool
        Whether another worker may do it: no disk or memory is left, say.
    """

    error: MummergpuError
    worker: str
    is_of_machine: bool


def own_address() -> str:
    """Return the address of the worker that this process is."""
    from distributed import get_worker

    return str(get_worker().address)


def own_name() -> str:
    """Return the address of the worker that this process is, and its machine."""
    return f"worker {own_address()} on {socket.gethostname()}"


def guarded(digest: str | None, function: Callable[..., Result], *arguments: Any) -> Result | Fault:
    """Call a function on a worker; what it raises is returned.

    `digest` is that of the sources of the driver. A fault among the arguments is returned, too.
    """
    for argument in arguments:
        if isinstance(argument, Fault):
            return argument
    try:
        if digest != DIGEST:
            raise ClusterError(own_name(), "has another version of mummergpu")
        return function(*arguments)
    except Exception as error:
        return _fault_of(error)


def _fault_of(error: Exception) -> Fault:
    is_of_machine = isinstance(
        error, OSError | MemoryError | OutputError | BackendError | ClusterError
    )
    told: MummergpuError
    if isinstance(error, ClusterError):
        told = error
    elif isinstance(error, MummergpuError) and not is_of_machine and _travels(error):
        told = error
    elif isinstance(error, MummergpuError):
        told = ClusterError(own_name(), str(error))
    elif isinstance(error, MemoryError):
        told = ClusterError(own_name(), "out of memory; smaller blocks or fewer threads need less")
    elif isinstance(error, OSError):
        place = "" if error.filename is None else f"{error.filename}: "
        told = ClusterError(own_name(), f"{place}{error.strerror or error}")
    else:
        told = ClusterError(own_name(), f"internal: {type(error).__name__}: {error}")
    return Fault(told, own_address(), is_of_machine)


def _travels(error: MummergpuError) -> bool:
    """Return whether another process can have an error."""
    try:
        return str(pickle.loads(pickle.dumps(error))) == str(error)
    except Exception:
        return False
