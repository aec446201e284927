"""Where compiled code is kept between runs, and a word to the user when there is none yet.

Two kinds are kept: what numba compiles for this processor, and what NVRTC compiles for a
GPU. The environment is a parameter; only the command line reads the process's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import click

from mummergpu.cli.option_types import PROGRAM
from mummergpu.runtime.cache_places import cache_folder, can_be_written, processor_code_places


def folder_of_compiled_code(environment: Mapping[str, str]) -> Path:
    """Return the folder below which new code for this processor is kept.

    Parameters
    ----------
    environment : mapping of str
        As in `mummergpu.runtime.cache_places.cache_folder`.

    Returns
    -------
    Path
        The first place that can be written to, or else the first. It need not exist yet.
    """
    places = processor_code_places(environment)
    return Path(next(filter(can_be_written, places), places[0]))


def folder_of_kernels(environment: Mapping[str, str]) -> Path | None:
    """Return the folder that keeps the kernels that were compiled for a GPU.

    Parameters
    ----------
    environment : mapping of str
        As in `mummergpu.runtime.cache_places.cache_folder`.

    Returns
    -------
    Path or None
        It need not exist yet; None if there is no home either.
    """
    return cache_folder(environment)


@cache
def announce_compilation() -> None:
    """Say when the first compilation begins; at most once in a process."""
    from mummergpu.runtime.jit import on_first_compilation

    text = f"{PROGRAM}: compiling what is needed for the first time here (up to 20 s)"
    on_first_compilation(lambda: click.echo(text, err=True))


def tell_cache_trouble(notice: Callable[[str], None]) -> None:
    """Pass on the line that says what is the matter with code that was kept.

    Parameters
    ----------
    notice : callable
        Takes one line for people.
    """
    from mummergpu.runtime.code_cache import on_cache_trouble

    on_cache_trouble(notice)
