"""The folders that keep compiled code between runs, and the messages about compiling.

There are two kinds of compiled code: numba compiles for this processor, and NVRTC compiles for a
GPU. The environment is a parameter, because only the command line reads that of the process.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Final

import click

from mummergpu.cli.option_types import PROGRAM
from mummergpu.runtime.cache_places import cache_folder


def folder_of_kernels(environment: Mapping[str, str]) -> Path | None:
    """Return the folder that keeps the kernels compiled for a GPU."""
    return cache_folder(environment)


COMPILATION: Final = "20 s"
"""About the longest time that everything that a search for matches needs takes to compile."""


SECONDS_BETWEEN_LINES: Final = 5.0


@cache
def announce_compilation(time: str = COMPILATION) -> None:
    """Print a message when the first compilation begins, at most once in a process."""
    from mummergpu.runtime.jit import on_first_compilation

    def announce() -> None:
        text = f"{PROGRAM}: compiling what is needed for the first time here (up to {time})"
        click.echo(_line_start() + text, err=True)

    on_first_compilation(announce)


def compile_in_processes(words: Sequence[str], threads: int | None, quiet: bool) -> None:
    """Have what a command needs compiled by several processes, if it has not been kept.

    They tell how far they are: a line at the beginning, and one every few seconds.
    """
    from mummergpu.runtime.compiled.ahead import expect

    expect(words, threads, CompilingProgress(quiet))


class CompilingProgress:
    """Tells standard error and the log how many functions have been compiled."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._last = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Tell of `done` functions of `total`."""
        now = monotonic()
        if done == 0:
            text = f"compiling {total} functions for the first time here"
        elif done < total and now - self._last < SECONDS_BETWEEN_LINES:
            return
        else:
            text = f"{done} of {total} functions are compiled"
        self._last = now
        logging.getLogger(PROGRAM).info("%s", text)
        if not self._quiet:
            click.echo(f"{_line_start()}{PROGRAM}: {text}", err=True)


def _line_start() -> str:
    """Return what clears the line of progress on a terminal; it comes back below."""
    return "\r\x1b[K" if sys.stderr.isatty() else ""


def tell_cache_trouble(notice: Callable[[str], None]) -> None:
    """Report trouble with the folders of compiled code."""
    from mummergpu.runtime.compiled.code_cache import on_cache_trouble

    on_cache_trouble(notice)
