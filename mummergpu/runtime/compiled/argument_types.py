"""Finds numba's types of plain arrays without an import of numpy's masked arrays.

Before numba returns the type of an array, it checks whether the array is masked. Numpy then
imports its masked arrays, which takes a twentieth of the time of a small run. An array that is
of no derived class is not masked, so it needs no check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numba
import numpy as np
from numba import types

_SEEN: Final[set[Any]] = set()
"""The types returned so far: numba holds only weak references to them."""


def tell_types_of_plain_arrays(dispatcher: Any) -> None:
    """Make a dispatcher find the types of plain arrays itself, and ask numba for other types.

    It stays as it is if it no longer has the method for this.
    """
    ask_numba = getattr(dispatcher, "typeof_pyval", None)
    if ask_numba is None:
        return

    def typeof_pyval(value: Any) -> Any:
        found = type_of_plain_arrays(value)
        return ask_numba(value) if found is None else found

    dispatcher.typeof_pyval = typeof_pyval


def type_of_plain_arrays(value: Any) -> Any:
    """Return numba's type of a plain array (of no derived class), or of a tuple with some.

    None stands for other values, and if numba has changed.
    """
    try:
        if type(value) is np.ndarray:
            found = _type_of_array(value)
        elif isinstance(value, tuple):
            ask_numba: Callable[[Any], Any] = numba.typeof
            parts = [type_of_plain_arrays(part) or ask_numba(part) for part in value]
            join: Callable[..., Any] = types.BaseTuple.from_types
            found = join(parts, type(value))
        else:
            return None
    except Exception:
        # Numba then finds the type itself, or raises an error that explains the fault of the value.
        return None
    _SEEN.add(found)
    return found


def _type_of_array(array: Any) -> Any:
    from numba.np.numpy_support import from_dtype, map_layout

    layout, readonly = map_layout(array), not array.flags.writeable
    return types.Array(from_dtype(array.dtype), array.ndim, layout, readonly=readonly)
