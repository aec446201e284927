"""Computes one name from everything that the machine code of this program depends on.

Numba checks only the file of a function to see whether its machine code is out of date. It does
not check functions and constants from other files that were compiled into it. The name here
depends on all sources that a compiled function can reach.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Final

import numpy as np

PACKAGE: Final = str(Path(os.path.abspath(__file__)).parents[2])
"""The folder of the package."""

ROOMS_WITHOUT_CODE: Final = frozenset({"cli", "api", "cluster", "pipeline"})
"""The folders of the package that have no compiled functions, and that no module with one imports:
a change there compiles nothing again."""

_DIGEST_BYTES: Final = 16
_BYTES_AT_ONCE: Final = 1 << 16

_SETTINGS: Final = (
    *("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT"),
    *("LLVM_REFPRUNE_PASS", "LLVM_REFPRUNE_FLAGS", "USE_LLVMLITE_MEMORY_MANAGER"),
    *("ENABLE_PROFILING", "NRT_STATS"),
)
"""The settings in ``numba.config`` that affect machine code, besides those of the processor."""


def generation_of_code(sources: str) -> str:
    """Return the name of all code that is compiled from the same sources in the same way.

    It has 32 hexadecimal digits, which depend on the sources, on the versions of Python, numba,
    llvmlite and numpy, and on numba's settings, but not on the processor.
    """
    import llvmlite
    import numba

    settings = [repr(getattr(numba.config, name, None)) for name in _SETTINGS]
    # No code depends on the last number of Python's version, or on who has built it.
    versions = (sys.version_info[:2], sys.abiflags, sys.implementation.cache_tag, numba.__version__)
    parts = (sources, *versions, llvmlite.__version__, np.__version__, *settings)
    return blake2b("\0".join(map(str, parts)).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def digest_of_sources(
    package: str = PACKAGE, left_out: Collection[str] = ROOMS_WITHOUT_CODE
) -> str | None:
    """Return a digest of the names and texts of the Python files of a package but for some folders.

    The texts are read each time, which takes a millisecond, because two versions of a file can
    have the same modification time. None stands for sources that are missing or cannot be read.
    """
    digest = blake2b(digest_size=_DIGEST_BYTES)
    try:
        paths = sorted(_python_files(package, left_out))
        for path in paths:
            name, text = os.fsencode(path[len(package) :]), _read(path)
            # The lengths separate the parts.
            digest.update(b"%d %d " % (len(name), len(text)))
            digest.update(name)
            digest.update(text)
    except OSError:
        return None
    return digest.hexdigest() if paths else None


def _read(path: str) -> bytes:
    """Return the content of a file, without the slower `open`: the package has many files."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, _BYTES_AT_ONCE):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _python_files(folder: str, left_out: Collection[str] = ()) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path
            elif entry.name not in left_out and entry.name != "__pycache__" and entry.is_dir():
                yield from _python_files(entry.path)
