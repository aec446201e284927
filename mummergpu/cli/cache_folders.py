"""The folders that keep compiled code between runs, and the messages about compiling.

There are two kinds of compiled code: numba compiles for this processor, and NVRTC compiles for a
GPU. The environment is a parameter, because only the command line reads that of the process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import click

from mummergpu.cli.option_types import PROGRAM
from mummergpu.runtime.cache_places import cache_folder


def folder_of_kernels(environment: Mapping[str, str]) -> Path | None:
    """Return the folder that keeps the kernels compiled for a GPU.

    Parameters
    ----------
    environment : mapping of str
        As in `mummergpu.runtime.cache_places.cache_folder`.

    Returns
    -------
    Path or None
        The folder, which may not exist yet; None if the user has no home folder either.
    """
    return cache_folder(environment)


@cache
def announce_compilation(time: str = "20 s") -> None:
    """Print a message when the first compilation begins, at most once in a process.

    Parameters
    ----------
    time : str
        About the longest time that everything that the command needs takes to compile.
    """
    from mummergpu.runtime.jit import on_first_compilation

    def announce() -> None:
        # On a terminal the line replaces the progress line, which comes back below it.
        start = "\r\x1b[K" if sys.stderr.isatty() else ""
        text = f"{PROGRAM}: compiling what is needed for the first time here (up to {time})"
        click.echo(start + text, err=True)

    on_first_compilation(announce)


def tell_cache_trouble(notice: Callable[[str], None]) -> None:
    """Report trouble with the folders of compiled code.

    Parameters
    ----------
    notice : callable
        Receives one line, shown with -v.
    """
    from mummergpu.runtime.compiled.code_cache import on_cache_trouble

    on_cache_trouble(notice)
