"""Where compiled code is kept between runs, and a word to the user when there is none yet.

Two kinds are kept: what numba compiles for this processor, and what NVRTC compiles for a
GPU. The environment is a parameter; only the command line reads the process's own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

import click

from mummergpu.cli.option_types import PROGRAM

NUMBA_VARIABLE: Final = "NUMBA_CACHE_DIR"
KERNEL_VARIABLE: Final = "MUMMERGPU_CACHE_DIR"

_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def find_place_for_compiled_code(environment: MutableMapping[str, str]) -> None:
    """Give numba a folder to keep compiled code in where it would find none.

    It looks for one beside the modules and in the user's home; in a container both may be
    read-only, and then it refuses to work.

    Parameters
    ----------
    environment : mutable mapping of str
        The environment of this process; numba must not have been imported yet.
    """
    if NUMBA_VARIABLE in environment or any(map(can_be_written, _places_of_numba(environment))):
        return
    import tempfile

    folder = os.path.join(tempfile.gettempdir(), f"{PROGRAM}-{os.geteuid()}")
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    # Code is loaded from here: the folder must be nobody else's.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        folder = tempfile.mkdtemp(prefix=f"{PROGRAM}-")
    environment[NUMBA_VARIABLE] = folder


def folder_of_compiled_code(environment: Mapping[str, str]) -> Path:
    """Return the folder in or below which numba keeps what it compiles.

    Parameters
    ----------
    environment : mapping of str
        As `find_place_for_compiled_code` leaves it.

    Returns
    -------
    Path
        It need not exist yet.
    """
    chosen = environment.get(NUMBA_VARIABLE)
    if chosen:
        return Path(chosen)
    beside, in_home = _places_of_numba(environment)
    return Path(beside).parent if can_be_written(beside) else Path(in_home)


def folder_of_kernels(environment: Mapping[str, str]) -> Path | None:
    """Return the folder that keeps the kernels that were compiled for a GPU.

    Parameters
    ----------
    environment : mapping of str
        ``MUMMERGPU_CACHE_DIR`` names the folder; else it is ``mummergpu`` in
        ``XDG_CACHE_HOME``, else in ``~/.cache``. A variable that is empty counts as unset.

    Returns
    -------
    Path or None
        It need not exist yet; None if there is no home either.
    """
    chosen = environment.get(KERNEL_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    caches = environment.get("XDG_CACHE_HOME", "")
    # The standard asks for an absolute path, and to ignore any other.
    if not os.path.isabs(caches):
        caches = os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".cache")
    return Path(caches, PROGRAM) if os.path.isabs(caches) else None


def can_be_written(folder: str) -> bool:
    """Tell whether files can be made in a folder, or the folder itself made.

    Parameters
    ----------
    folder : str
        An absolute path.

    Returns
    -------
    bool
        True if this user may do so.
    """
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _places_of_numba(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return where numba looks by itself: beside the modules, and in the user's home."""
    # Unlike the standard, numba takes a relative folder, and an empty name, as they are.
    caches = environment.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    return os.path.join(_PACKAGE, "__pycache__"), os.path.abspath(os.path.join(caches, "numba"))


@cache
def announce_compilation() -> None:
    """Say when the first compilation begins; at most once in a process."""
    from mummergpu.runtime.jit import on_first_compilation

    text = f"{PROGRAM}: compiling what is needed for the first time here (up to 20 s)"
    on_first_compilation(lambda: click.echo(text, err=True))
