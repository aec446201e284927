"""Checks that the values of a record are of the types that its class declares.

The records come from JSON files, which anything may have written or damaged.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints


def type_fault(value: object, path: str = "") -> str | None:
    """Return which key of a record is not of the declared type, and that type; None if all are.

    `path` has the keys that lead to the record, each with a dot after it.
    """
    kind: Any = type(value)
    hints = _hints(kind)
    for field in fields(value):  # type: ignore[arg-type]
        name, hint = f"{path}{field.name}", hints[field.name]
        fault = _fault(getattr(value, field.name), hint, name)
        if fault:
            return fault
    return None


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fault(value: object, hint: Any, name: str) -> str | None:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        faults = [_fault(value, argument, name) for argument in arguments]
        return None if None in faults else faults[0]
    if origin is dict:
        if not isinstance(value, dict):
            return f"'{name}' is not an object"
        inner = (_fault(one, arguments[1], f"{name}.{key}") for key, one in value.items())
        return next((fault for fault in inner if fault), None)
    if origin is tuple:
        inner = (_fault(one, arguments[0], name) for one in value)  # type: ignore[attr-defined]
        return next((fault for fault in inner if fault), None)
    if is_dataclass(hint):
        if not isinstance(value, hint):  # type: ignore[arg-type]
            return f"'{name}' is not an object"
        return type_fault(value, f"{name}.")
    return None if _is_a(value, hint) else f"'{name}' is not of type {_word(hint)}"


def _is_a(value: object, kind: type) -> bool:
    """Return whether a value is of a plain type; a whole number counts as a float."""
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if kind is float:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, kind)


def _word(kind: type) -> str:
    return {type(None): "null", str: "text", bool: "boolean"}.get(kind, "number")
