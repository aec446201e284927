"""Renders the page on the Python interface: mkdocstrings fills it from the docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType

import mummergpu
from mummergpu import errors

HEAD = """# Python

Everything here can be imported from `mummergpu`. [The tutorial](../tutorials/python.md) shows how
it is used.

"""

ERRORS = """## Errors

All are errors of the class `MummergpuError`. Their text is the line that the command prints; they
are in `mummergpu.errors`.

"""


def api_page() -> str:
    """Return the page: the public names, then public modules, then the classes of errors."""
    names = "".join(f"::: {place}\n\n" for place in _public_names())
    kinds = "".join(f"::: mummergpu.errors.{name}\n\n" for name in _error_names())
    return HEAD + names + ERRORS + kinds


def _public_names() -> Iterator[str]:
    """Yield where each public name of the package is defined, modules last."""
    modules = []
    for name in dir(mummergpu):
        value = getattr(mummergpu, name)
        if isinstance(value, ModuleType) and hasattr(value, "__all__"):
            modules.append(value.__name__)
        elif (inspect.isclass(value) or inspect.isfunction(value)) and not name.startswith("_"):
            if not _is_error(value):
                yield f"{value.__module__}.{name}"
    yield from modules


def _is_error(value: object) -> bool:
    """Tell whether a public name is a class of errors, which have a section of their own."""
    return inspect.isclass(value) and issubclass(value, errors.MummergpuError)


def _error_names() -> list[str]:
    return [name for name, value in vars(errors).items() if _is_error(value)]
