"""Finds installed libraries, even if some of them are broken."""

from __future__ import annotations

import importlib

from mummergpu.runtime.frozen import frozen


@frozen
class Library:
    """The state of a library on this machine: its name for pip, and its version if it is installed.

    `problem` says in one line why it cannot be used; None if it can.
    """

    name: str
    version: str | None
    problem: str | None


def find(name: str, module: str) -> Library:
    """Find a library by its name for pip, and import a module of it; any error is its `problem`."""
    # Many modules of Python come with this one, and few runs need it.
    from importlib import metadata

    version = None
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        # A tool other than pip may have installed it; the import decides.
        pass
    try:
        importlib.import_module(module)
    except Exception as error:
        if version is None and isinstance(error, ModuleNotFoundError):
            return Library(name, None, "not installed")
        return Library(name, version, f"cannot be imported: {in_one_line(error)}")
    return Library(name, version, None)


def in_one_line(error: Exception) -> str:
    """Return the first line of an exception's message, or the name of its class if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
