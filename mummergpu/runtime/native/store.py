"""Finds the kept code that runs without numba, by names that are known without numba.

A name depends on everything that the machine code depends on: the sources of the package, the
versions of Python, numpy, numba and llvmlite, the processor, and the types of the arguments.
Where something about this is unknown or unusual (another system or processor, settings of numba),
there is no store, and numba is used.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np

from mummergpu.runtime import code_cache
from mummergpu.runtime.code_store import CodeStore

MAXIMUM_BYTES: Final = 16 << 20
"""As `code_store.MAXIMUM_BYTES`; code without numba's additions is small."""

_SUFFIX: Final = "-native"
"""What is added to the name of the folder in which numba's code is kept."""
_FORMAT: Final = "native code 1"
_DIGEST_BYTES: Final = 16
_KEY_BYTES: Final = 32

_PROCESSORS: Final = "/proc/cpuinfo"
_ENOUGH_OF_THEM: Final = 8192
"""The bytes to read of that file: it describes the first processor in fewer of them."""
_TELLING: Final = (b"vendor_id", b"cpu family", b"model", b"model name", b"stepping", b"flags")
"""The lines that tell the processor; the others tell its clock and how much it does."""

_SETTING_PREFIX: Final = "NUMBA_"
_SETTINGS_FILE: Final = ".numba_config.yaml"


def native_store() -> CodeStore | None:
    """Return the store of code that runs without numba.

    Returns
    -------
    CodeStore or None
        None if no such code can be used here. Calls to a store must not overlap.
    """
    return _store_in(code_cache.code_places())


@cache
def _store_in(places: tuple[str, ...]) -> CodeStore | None:
    generation = _generation()
    if generation is None or not places:
        return None
    folders = [place + _SUFFIX for place in places]
    # Numba's code is kept in the same way, and its store reports trouble.
    return CodeStore(folders, generation, lambda _: None, MAXIMUM_BYTES)


def key_of(function: Callable[..., Any], kind: str) -> bytes:
    """Return the key of the code of a function.

    Parameters
    ----------
    function : callable
        The function in plain Python.
    kind : str
        The types of its arguments, and how it is compiled.

    Returns
    -------
    bytes
        The key in the store.
    """
    code = function.__code__
    names = (function.__module__, function.__qualname__, code.co_filename)
    parts = (*names, code.co_firstlineno, kind)
    return blake2b(repr(parts).encode() + code.co_code, digest_size=_KEY_BYTES).digest()


def _generation() -> str | None:
    """Return a name for all that the code of every function depends on; None if it is unknown."""
    if (sys.platform, platform.machine(), sys.implementation.name) != (
        "linux",
        "x86_64",
        "cpython",
    ):
        return None
    if any(name.startswith(_SETTING_PREFIX) for name in os.environ):
        return None
    if os.path.exists(_SETTINGS_FILE):
        return None
    try:
        compilers = [_version_file("numba"), _version_file("llvmlite")]
        processor = _processor()
    except (OSError, ImportError, ValueError, KeyError):
        return None
    sources = code_cache.digest_at_start()
    if sources is None:
        return None
    versions = (sys.version, sys.implementation.cache_tag, np.__version__)
    parts = (_FORMAT, sources, *versions, *compilers, processor)
    return blake2b(repr(parts).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _version_file(package: str) -> bytes:
    """Return the text of the file in which a package tells its version, without an import of it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(package)
    return Path(spec.origin).with_name("_version.py").read_bytes()


def _processor() -> bytes:
    """Return what the system tells of the first processor; the others are taken to be like it."""
    descriptor = os.open(_PROCESSORS, os.O_RDONLY | os.O_CLOEXEC)
    try:
        first, separator, _ = os.read(descriptor, _ENOUGH_OF_THEM).partition(b"\n\n")
    finally:
        os.close(descriptor)
    if not separator:
        raise ValueError("the description of the processor is not complete")
    lines = dict(line.partition(b":")[::2] for line in first.splitlines())
    facts = {name.strip(): value.strip() for name, value in lines.items()}
    return b"\n".join(facts[name] for name in _TELLING)
