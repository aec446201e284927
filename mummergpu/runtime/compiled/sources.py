"""Finds the sources that the code of a compiled function depends on.

These are the texts of its own module and of the modules of the package's functions and classes that
its code leads to by name, and the values of the constants that it names. An edit of any other
module leaves the function's image as it is.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from mummergpu.runtime.blake2 import blake2b

PACKAGE: Final = str(Path(os.path.abspath(__file__)).parents[2])
"""The folder of the package."""

_NAME: Final = __name__.split(".", 1)[0]
_CLASS: Final = re.compile(rf"({_NAME}[\w.]*)\.\w+\(")
"""A named tuple in the text of types (`signatures.py`), with the name of its module."""

_BEGIN: Final = time.time() - 0.05
"""When this process began to import the package; file systems give times in hundredths."""

_BYTES_AT_ONCE: Final = 1 << 16
_DIGEST_BYTES: Final = 16
_SIMPLE: Final = (int, float, str, bytes, type(None))


class UnknownSourceError(Exception):
    """A text is missing, or was changed after this process began to import the package."""


def digest_of_function(function: Callable[..., Any], types: str = "") -> bytes | None:
    """Return a digest of all that the code of a function for some types depends on.

    None stands for sources that are missing, or that are no longer those of this process, and for
    functions that are not the package's: their code must not be kept.
    """
    digest = blake2b(digest_size=_DIGEST_BYTES)
    if function.__closure__ is not None:
        return None
    try:
        parts = {_text_of_module(module) for module in _CLASS.findall(types)}
        reached, waiting = {function}, [function]
        while waiting:
            direct_parts, functions = _direct(waiting.pop())
            parts |= direct_parts
            waiting += functions - reached
            reached |= functions
    except UnknownSourceError:
        return None
    for part in sorted(parts):
        digest.update(part)
    return digest.digest()


@cache
def _direct(function: Any) -> tuple[frozenset[bytes], frozenset[Any]]:
    """Return digests of a function's text and of constants it names, and functions it names."""
    parts, functions = {_digest_of_text(function.__code__.co_filename)}, set[Any]()
    names = frozenset(_names(function.__code__))
    cells = function.__closure__ or ()
    waiting = [(b"", cell.cell_contents) for cell in cells]
    waiting += [
        (name.encode(), function.__globals__[name])
        for name in names
        if name in function.__globals__
    ]
    while waiting:
        name, value = waiting.pop()
        elements = _elements(name, value, names)
        if elements is not None:
            waiting += elements
        elif isinstance(value, FunctionType):
            functions.add(value)
        elif isinstance(value, type):
            for own_class in (base for base in value.__mro__ if _is_own(base.__module__)):
                parts.add(_text_of_module(own_class.__module__))
                functions |= set(_methods(own_class))
        elif isinstance(getattr(value, "__dict__", {}).get("function"), FunctionType):
            # One that is compiled, or whose code is written by hand. Nothing is looked up with
            # `getattr` here: it would import numba for the names of `runtime/llvm.py`.
            functions.add(value.function)
        else:
            parts.add(_digest_of_value(name, value))
            if _is_own(type(value).__module__):
                waiting.append((b"", type(value)))
    # Those of other libraries change with their versions, not with this package.
    own_functions = {one for one in functions if _is_own(one.__module__)}
    return frozenset(parts), frozenset(own_functions)


def _elements(name: bytes, value: Any, names: frozenset[str]) -> list[tuple[bytes, Any]] | None:
    """Return what a container holds, and of a module what has one of some names; else None."""
    if isinstance(value, ModuleType):
        own = vars(value) if _is_own(value.__name__) else {}
        return [(other.encode(), own[other]) for other in names if other in own]
    if type(value) in (tuple, list):
        return [(b"%s %d" % (name, number), one) for number, one in enumerate(value)]
    if type(value) is dict:
        return [(b"%s %a" % (name, key), one) for key, one in value.items()]
    if type(value) in (set, frozenset):
        # Their order depends on the process.
        return [(name, one) for one in value]
    return None


def _methods(own_class: type) -> Iterator[FunctionType]:
    for value in vars(own_class).values():
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        if isinstance(value, FunctionType):
            yield value


def _digest_of_value(name: bytes, value: Any) -> bytes:
    """Return a digest of a constant; an object that says nothing of itself is as its class is."""
    if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        text = b"%s %r" % (value.dtype.str.encode(), value.shape) + value.tobytes()
    else:
        text = repr(value).encode()
        if not isinstance(value, _SIMPLE) and b" at 0x" in text:
            text = type(value).__qualname__.encode()
    kind = type(value).__name__.encode()
    return blake2b(b"%s\0%s\0%s" % (name, kind, text), digest_size=_DIGEST_BYTES).digest()


def _names(code: CodeType) -> Iterator[str]:
    """Return all names in the code of a function and of the functions within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_own(module: str | None) -> bool:
    return module is not None and module.split(".", 1)[0] == _NAME


def _text_of_module(module: str) -> bytes:
    return _digest_of_text(getattr(sys.modules[module], "__file__", None) or "")


@cache
def _digest_of_text(path: str) -> bytes:
    """Return a digest of a module's name and text, as they were when this process began."""
    path = os.path.abspath(path)
    if not path.startswith(PACKAGE + os.sep):
        raise UnknownSourceError
    try:
        # The time of a change cannot be set back, as that of a file's content can.
        if os.stat(path).st_ctime > _BEGIN:
            raise UnknownSourceError
        text = _read(path)
    except OSError as error:
        raise UnknownSourceError from error
    name = os.fsencode(path[len(PACKAGE) :])
    return blake2b(b"%s\0%s" % (name, text), digest_size=_DIGEST_BYTES).digest()


def digest_of_sources(*places: str) -> str | None:
    """Return a digest of the names and texts of Python files, and of all below folders.

    Without places they are all of the package. None stands for sources that are missing or cannot
    be read.
    """
    digest = blake2b(digest_size=_DIGEST_BYTES)
    paths = []
    try:
        for place in places or (PACKAGE,):
            root = os.path.dirname(place) if place.endswith(".py") else place
            paths += [(path[len(root) :], path) for path in sorted(_python_files(place))]
        for name, path in paths:
            text = _read(path)
            # The lengths separate the parts.
            digest.update(b"%d %d " % (len(os.fsencode(name)), len(text)))
            digest.update(os.fsencode(name))
            digest.update(text)
    except OSError:
        return None
    return digest.hexdigest() if paths else None


def _read(path: str) -> bytes:
    """Return the content of a file, without the slower `open`: the package has many files."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, _BYTES_AT_ONCE):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _python_files(place: str) -> Iterator[str]:
    if place.endswith(".py"):
        yield place
        return
    with os.scandir(place) as entries:
        for entry in entries:
            is_folder = entry.name != "__pycache__" and entry.is_dir()
            if is_folder or entry.name.endswith(".py"):
                yield from _python_files(entry.path)
