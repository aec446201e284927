"""The folders that keep compiled code between runs, and the messages about compiling.

There are two kinds of compiled code: numba compiles for this processor, and NVRTC compiles for a
GPU. The environment is a parameter, because only the command line reads that of the process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import click

from mummergpu.cli.option_types import PROGRAM
from mummergpu.runtime.cache_places import cache_folder


def folder_of_kernels(environment: Mapping[str, str]) -> Path | None:
    """Return the folder that keeps the kernels compiled for a GPU."""
    return cache_folder(environment)


COMPILATION: Final = "20 s"
"""About the longest time that everything that a search for matches needs takes to compile."""


@cache
def announce_compilation(time: str = COMPILATION) -> None:
    """Print messages when this process begins to compile, and how far that is."""
    from mummergpu.runtime.jit import on_first_compilation

    def announce() -> None:
        _tell(f"compiling what is needed for the first time here (up to {time})")

    def go_on(functions: int, seconds: float) -> None:
        _tell(f"compiling: {functions:,} functions in {seconds:.0f} s so far")

    on_first_compilation(announce, go_on=go_on)


def _tell(text: str) -> None:
    # On a terminal the line replaces the progress line, which comes back below it.
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    click.echo(f"{start}{PROGRAM}: {text}", err=True)


def tell_cache_trouble(notice: Callable[[str], None]) -> None:
    """Report trouble with the folders of compiled code."""
    from mummergpu.runtime.compiled.store import on_cache_trouble

    on_cache_trouble(notice)
