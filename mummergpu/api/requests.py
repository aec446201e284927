"""Converts arguments of the Python interface to the option classes, which check them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from mummergpu.cluster.options import ClusterOptions
from mummergpu.errors import OptionError
from mummergpu.matching.options import DeviceOptions
from mummergpu.output.formats import RowKind, names_of, target_of, targets_of
from mummergpu.output.targets import OutputTarget
from mummergpu.runtime.cache_dir import cache_folder
from mummergpu.runtime.option_values import one_of, path, paths, positive, shown
from mummergpu.runtime.processors import processor_count

PathLike = str | os.PathLike[str]

Function = TypeVar("Function", bound=Callable[..., Any])


def showing(request: type) -> Callable[[Function], Function]:
    """Show the fields of a request as a function's keywords in place of ``**keywords``."""
    fields = inspect.signature(request).parameters.values()

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        *own, _ = signature.parameters.values()
        keywords = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in fields]
        signature = signature.replace(parameters=[*own, *keywords])

        @wraps(function)
        def checked(*arguments: Any, **named: Any) -> Any:
            # The error for a misspelt keyword names the function, not the request.
            signature.bind(*arguments, **named)
            return function(*arguments, **named)

        checked.__signature__ = signature  # type: ignore[attr-defined]
        return cast(Function, checked)

    return decorate


def device_options(backend: str, threads: int | None) -> DeviceOptions:
    """Return the options of the first GPU, or of the processor, with the kernels of the command."""
    folder = cache_folder(os.environ)
    kept = None if folder is None else str(folder)
    return DeviceOptions(backend, threads=thread_count(threads), kernel_folder=kept)


def target_asked(
    name: PathLike, format_name: str | None, rows: RowKind, option: str = "path"
) -> OutputTarget:
    """Return an output file."""
    return target_of(path(option, name), _format_asked(format_name, rows), option, rows)


def targets_asked(
    names: object, format_name: str | None, rows: RowKind
) -> tuple[OutputTarget, ...]:
    """Return the output files, at least one; `format_name` overrides the name of a file."""
    return targets_of(paths("output", names), _format_asked(format_name, rows), rows)


def _format_asked(format_name: str | None, rows: RowKind) -> str | None:
    return None if format_name is None else one_of("format", format_name, names_of(rows))


def cluster_options(cluster: Any, threads: int) -> ClusterOptions:
    """Return a cluster from its address or its client; local processes share `threads`."""
    if isinstance(cluster, str):
        return ClusterOptions.shared(cluster, threads)
    if not hasattr(cluster, "scheduler"):
        raise OptionError("cluster", f"{shown(cluster)} is no client of Dask, and no address")
    return ClusterOptions(client=cluster)


def thread_count(asked: int | None) -> int:
    """Return the number of threads: that of the user, or one for each processor."""
    return processor_count() if asked is None else positive("threads", asked)
