"""What code is compiled for: the levels of x86-64, and the settings of numba.

Code for a level runs on every processor with the features of the level. So a wheel, the image of a
container or the home folder of a cluster serves machines of several kinds.
"""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from typing import Final

from mummergpu.runtime.processors import first_processor

_V2: Final = frozenset({b"pni", b"ssse3", b"sse4_1", b"sse4_2", b"popcnt", b"cx16", b"lahf_lm"})
_V3: Final = _V2 | {
    *(b"avx", b"avx2", b"bmi1", b"bmi2", b"f16c", b"fma", b"abm", b"movbe", b"xsave")
}
_V4: Final = _V3 | {b"avx512f", b"avx512bw", b"avx512cd", b"avx512dq", b"avx512vl"}

LEVELS: Final = {"x86-64-v4": _V4, "x86-64-v3": _V3, "x86-64-v2": _V2}
"""LLVM's names of the levels, the best first, and Linux's names of the features that they need."""

PREFIX: Final = "NUMBA_"
_SETTINGS_FILE: Final = ".numba_config.yaml"
_NOT_OF_CODE: Final = frozenset({"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER"})

_compiled_for: list[str] = []


@cache
def machine_levels() -> tuple[str, ...]:
    """Return the levels that this machine's processor has, the best first.

    There are none on other systems, and if the system does not describe its processors.
    """
    system = (sys.platform, platform.machine(), sys.implementation.name)
    if system != ("linux", "x86_64", "cpython"):
        return ()
    try:
        flags = frozenset(first_processor()[b"flags"].split())
    except (OSError, ValueError, KeyError):
        return ()
    return tuple(level for level, features in LEVELS.items() if features <= flags)


def compile_for(level: str) -> None:
    """Have this process compile for one of `machine_levels`, and run images of no other."""
    _compiled_for[:] = [level]
    usable_levels.cache_clear()


@cache
def usable_levels() -> tuple[str, ...]:
    """Return the levels whose images this process runs; it compiles for the first.

    There are none where settings of numba decide what code is like.
    """
    return () if settings_of_code() else tuple(_compiled_for) or machine_levels()


def settings_of_code() -> tuple[str, ...]:
    """Return the settings of numba that code may depend on, with their values."""
    named = (f"{name}={os.environ[name]}" for name in numba_variables() if name not in _NOT_OF_CODE)
    try:
        with open(_SETTINGS_FILE, encoding="utf-8", errors="replace") as file:
            return (*named, file.read())
    except OSError:
        return tuple(named)


def numba_variables() -> list[str]:
    """Return the variables of the environment that set numba up."""
    return sorted(name for name in os.environ if name.startswith(PREFIX))


def numba_settings() -> list[str]:
    """Return the variables of the environment, and the file, that set numba up."""
    return [*numba_variables(), *(name for name in (_SETTINGS_FILE,) if os.path.exists(name))]
