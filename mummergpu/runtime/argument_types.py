"""What numba finds out about the arrays of a call, without numpy's masked arrays.

Before numba tells the type of an array it asks whether the array is a masked one. Numpy imports
its masked arrays at that moment, which takes a twentieth of a small run. What is an array and of
no derived class is not masked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numba
import numpy as np
from numba import types

_SEEN: Final[set[Any]] = set()
"""The types that were told: numba itself holds them but weakly."""


def tell_types_of_plain_arrays(dispatcher: Any) -> None:
    """Let a dispatcher tell the types of plain arrays by itself, and ask numba for others.

    Parameters
    ----------
    dispatcher : Dispatcher
        Of ``numba.njit``. If it has no method for that any more, it is left as it is.
    """
    ask_numba = getattr(dispatcher, "typeof_pyval", None)
    if ask_numba is None:
        return

    def typeof_pyval(value: Any) -> Any:
        found = type_of_plain_arrays(value)
        return ask_numba(value) if found is None else found

    dispatcher.typeof_pyval = typeof_pyval


def type_of_plain_arrays(value: Any) -> Any:
    """Return numba's type of a value, if it is an array of no derived class, or holds some.

    Parameters
    ----------
    value : any
        An argument of a compiled function; a tuple may hold anything.

    Returns
    -------
    numba type or None
        What ``numba.typeof`` returns; None for other values, and where numba has changed.
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
        # Numba decides, and says what is wrong with the value if that is the reason.
        return None
    _SEEN.add(found)
    return found


def _type_of_array(array: Any) -> Any:
    from numba.np.numpy_support import from_dtype, map_layout

    layout, readonly = map_layout(array), not array.flags.writeable
    return types.Array(from_dtype(array.dtype), array.ndim, layout, readonly=readonly)
