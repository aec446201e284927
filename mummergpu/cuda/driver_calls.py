"""Calls of the driver through NVIDIA's ``cuda-bindings``, and what their errors become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuda.bindings import driver

from mummergpu.cuda.device import DeviceMemoryError
from mummergpu.errors import BackendError
from mummergpu.runtime.optional_imports import in_one_line


class CallError(BackendError):
    """A call of the driver failed."""

    def __init__(self, reason: str, is_out_of_memory: bool = False) -> None:
        super().__init__("cuda", f"the device failed: {reason}")
        self.reason = reason
        self.is_out_of_memory = is_out_of_memory

    def __reduce__(self) -> tuple[type[CallError], tuple[str, bool]]:
        return type(self), (self.reason, self.is_out_of_memory)


def call(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
    """Call a function of ``cuda.bindings.driver``; return None, its value or its values.

    Raises
    ------
    CallError
        If the function returns an error, or the driver does not have it.
    """
    try:
        error, *values = function(*arguments)
    except RuntimeError as problem:
        # There is no driver, or it is too old for this function.
        raise CallError(f"{function.__name__} failed: {in_one_line(problem)}") from problem
    if error != driver.CUresult.CUDA_SUCCESS:
        reason = f"{function.__name__} failed: {_meaning(error)}"
        raise CallError(reason, error == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY)
    if len(values) > 1:
        return tuple(values)
    return values[0] if values else None


def call_for_memory(wanted: str, function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
    """Call a function of the driver that takes memory of the device.

    Raises
    ------
    DeviceMemoryError
        If too little memory is free.
    CallError
        If anything else goes wrong.
    """
    try:
        return call(function, *arguments)
    except CallError as error:
        if error.is_out_of_memory:
            raise DeviceMemoryError(wanted) from error
        raise


def _meaning(error: Any) -> str:
    """Return what an error code means, in the words of the driver where it knows the code."""
    try:
        answer, text = driver.cuGetErrorString(error)
        if answer == driver.CUresult.CUDA_SUCCESS and text:
            return str(text.decode(errors="replace"))
    except (RuntimeError, TypeError, ValueError):
        # A driver that is newer than the bindings may return a code that they do not know.
        pass
    return str(getattr(error, "name", error))
