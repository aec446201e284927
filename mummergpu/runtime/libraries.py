"""Which libraries are there, asked without trusting any of them to be whole."""

from __future__ import annotations

import importlib
import importlib.metadata
from dataclasses import dataclass


@dataclass(frozen=True)
class Library:
    """A library as it was found.

    Attributes
    ----------
    name : str
        What pip calls it.
    version : str or None
        The installed version; None if it is not installed.
    problem : str or None
        Why it cannot be used, in one line; None if it can.
    """

    name: str
    version: str | None
    problem: str | None


def look_for(name: str, module: str) -> Library:
    """Look for a library, and import it.

    Parameters
    ----------
    name : str
        What pip calls it.
    module : str
        The module that must be importable.

    Returns
    -------
    Library
        Whatever goes wrong is its problem.
    """
    version = None
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        # Systems other than pip's may install it too; the import decides.
        pass
    try:
        importlib.import_module(module)
    except Exception as error:
        if version is None and isinstance(error, ModuleNotFoundError):
            return Library(name, None, "not installed")
        return Library(name, version, f"cannot be imported: {in_one_line(error)}")
    return Library(name, version, None)


def in_one_line(error: Exception) -> str:
    """Return what an exception says, in one line.

    Parameters
    ----------
    error : Exception
        Of any library.

    Returns
    -------
    str
        The first line of its message, or its class where it has none.
    """
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
