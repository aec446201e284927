"""Gives the modules that write LLVM's code by hand what they need, without an import of numba.

`ir` and `types` stand for `llvmlite.ir` and `numba.core.types`. They are imported when the first
function is compiled, so their names must be used inside functions only.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

from mummergpu.runtime.pending import Pending, wait_for_numba


class _LateModule:
    """Imports a module when one of its names is used.

    Parameters
    ----------
    name : str
        The full name of the module.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self._name), name)
        setattr(self, name, found)
        return found


ir: Final[Any] = _LateModule("llvmlite.ir")
types: Final[Any] = _LateModule("numba.core.types")


def intrinsic(generator: Callable[..., Any]) -> Any:
    """Return a function for compiled code whose code is written by hand.

    Parameters
    ----------
    generator : callable
        As for ``numba.extending.intrinsic``.

    Returns
    -------
    object
        What compiled functions call.
    """
    return wait_for_numba(Pending(generator, _intrinsic_of))


def _intrinsic_of(generator: Callable[..., Any]) -> Any:
    from numba.extending import intrinsic

    make: Callable[[Any], Any] = intrinsic
    return make(generator)
