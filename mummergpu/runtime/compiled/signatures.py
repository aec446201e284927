"""The types of arguments and results that code without numba's help can be called with.

A signature is described by text, such as ``[|u1,1]`` for an array of bytes with one dimension,
``i`` for an integer, ``(i?)`` for a tuple and ``rooms.Tile(ii)`` for a named one. Numba's types and
the values of a call give the same text, so the text finds the code for a call.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

INTEGER: Final = "i"
BOOLEAN: Final = "?"
NOTHING: Final = "-"

_OF_SCALARS: Final = {int: INTEGER, np.int64: INTEGER, bool: BOOLEAN, np.bool_: BOOLEAN}

_OF_ARRAYS: Final[dict[int, dict[np.dtype[Any], str]]] = {}
"""The texts for arrays of a number of dimensions and a type, as far as they have been used."""

_OF_CLASSES: Final[dict[type, str]] = {}
"""The names of classes of named tuples, as far as they have been used."""

_SCALARS: Final = {INTEGER: "int64", BOOLEAN: "boolean"}
_NAMED: Final = re.compile(r"(mummergpu[\w.]*)\(")


class UnsuitedValueError(Exception):
    """A value or a type that only numba knows how to pass."""


class Flattened:
    """An argument whose arrays many calls pass: its type and its numbers are found only once.

    `UnsuitedValueError` if `flatten` does not know the value.
    """

    def __init__(self, value: Any) -> None:
        numbers: list[int] = []
        self.value = value
        self.types = flatten((value,), numbers)
        self.numbers = numbers


def flatten(arguments: Sequence[Any], numbers: list[int]) -> str:
    """Append the numbers that arguments are passed as; return the text of their types.

    An array is the address of its object, in which compiled code finds the rest: to ask for that
    here would hold the interpreter's lock five times as long. Arrays must live until the call has
    ended. `UnsuitedValueError` if an argument is none that is known here.
    """
    text = ""
    for value in arguments:
        kind = type(value)
        if kind is np.ndarray:
            numbers.append(id(value))
            dtype, dimensions = value.dtype, value.ndim
            try:
                text += _OF_ARRAYS[dimensions][dtype]
            except KeyError:
                text += _OF_ARRAYS.setdefault(dimensions, {}).setdefault(
                    dtype, f"[{dtype.str},{dimensions}]"
                )
        elif (scalar := _OF_SCALARS.get(kind)) is not None:
            numbers.append(int(value))
            text += scalar
        elif kind is tuple:
            text += f"({flatten(value, numbers)})"
        elif kind is Flattened:
            numbers += value.numbers
            text += value.types
        elif issubclass(kind, tuple):
            name = _OF_CLASSES.get(kind)
            if name is None:
                # Two of other names may have fields of the same types.
                name = _OF_CLASSES[kind] = f"{kind.__module__}.{kind.__qualname__}"
            text += f"{name}({flatten(value, numbers)})"
        else:
            raise UnsuitedValueError
    return text


def text_of_result(kind: Any) -> str:
    """Return the text of numba's type of a result; raise UnsuitedValueError if it has none."""
    from numba import types

    found = {types.none: NOTHING, types.int64: INTEGER, types.boolean: BOOLEAN}.get(kind)
    if found is None:
        raise UnsuitedValueError
    return found


def types_of_text(text: str) -> tuple[Any, ...]:
    """Return numba's types for a text of `flatten`; UnsuitedValueError if a class is not found."""
    kinds, at = _read_types(text, 0)
    if at != len(text):
        raise UnsuitedValueError
    return tuple(kinds)


def _read_types(text: str, at: int) -> tuple[list[Any], int]:
    """Return the types from a place of a text on, and where they end."""
    from numba import types
    from numba.np.numpy_support import from_dtype

    join: Callable[..., Any] = types.BaseTuple.from_types
    kinds: list[Any] = []
    while at < len(text) and text[at] != ")":
        named = _NAMED.match(text, at)
        if text[at] == "[":
            end = text.index("]", at)
            dtype, dimensions = text[at + 1 : end].split(",")
            kinds.append(types.Array(from_dtype(np.dtype(dtype)), int(dimensions), "C"))
            at = end + 1
        elif text[at] == "(" or named is not None:
            inner, end = _read_types(text, at + 1 if named is None else named.end())
            kind = tuple if named is None else _class_of(named[1])
            kinds.append(join(tuple(inner), kind))
            at = end + 1
        elif text[at] in _SCALARS:
            kinds.append(getattr(types, _SCALARS[text[at]]))
            at += 1
        else:
            raise UnsuitedValueError
    return kinds, at


def _class_of(name: str) -> type:
    module, _, own = name.rpartition(".")
    try:
        found: type = getattr(importlib.import_module(module), own)
    except (ImportError, AttributeError, ValueError) as error:
        raise UnsuitedValueError from error
    return found
