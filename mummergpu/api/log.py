"""The log of the package, with a line when compiling takes long."""

from __future__ import annotations

import logging
import os
from functools import cache
from typing import Final

from mummergpu.pipeline.context import RunContext
from mummergpu.runtime.cache_dir import folder_of_compiled_code
from mummergpu.runtime.jit import on_first_compilation

LOG: Final = logging.getLogger("mummergpu")

SILENT_SECONDS: Final = 1.0
"""Compiling for fewer seconds is not logged."""


@cache
def log_compiling() -> None:
    """Log one line if compiling for the first time takes long.

    It is a warning, because Python prints warnings even if no log is configured: otherwise a
    notebook would be silent for a minute.
    """

    def announce() -> None:
        folder = folder_of_compiled_code(os.environ)
        LOG.warning(
            "mummergpu compiles for this processor, once, for a minute or two; kept in '%s'", folder
        )

    def go_on(functions: int, seconds: float) -> None:
        LOG.info("compiling: %d functions in %.0f s so far", functions, seconds)

    on_first_compilation(announce, SILENT_SECONDS, go_on)


def context_of(threads: int) -> RunContext:
    """Return the context of a job, whose messages go to the log."""
    log_compiling()
    return RunContext(threads, notice=LOG.info, warn=LOG.warning)
