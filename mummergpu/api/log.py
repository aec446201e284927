"""The log of the package, and what it tells of compiling."""

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
"""The seconds of compiling of which nobody is told."""


@cache
def tell_of_compiling() -> None:
    """Log one line if what is compiled here for the first time takes long.

    It is a warning, which Python prints where nobody has set up a log: else a notebook would be
    silent for a minute.
    """

    def tell() -> None:
        folder = folder_of_compiled_code(os.environ)
        LOG.warning(
            "mummergpu compiles for this processor, once, for a minute or two; kept in '%s'", folder
        )

    def go_on(functions: int, seconds: float) -> None:
        LOG.info("compiling: %d functions in %.0f s so far", functions, seconds)

    on_first_compilation(tell, SILENT_SECONDS, go_on)


def context_of(threads: int) -> RunContext:
    """Return what a job works with that tells the log what it does."""
    tell_of_compiling()
    return RunContext(threads, notice=LOG.info, warn=LOG.warning)
