"""Finds the kept code that runs without numba, by names that are known without numba.

A name depends on everything that the machine code depends on: the sources of the package, the
versions of Python, numpy, numba and llvmlite, the processor, and the types of the arguments.
Where something about this is unknown or unusual (another system or processor, settings of numba),
there is no store, and numba is used.
"""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np

from mummergpu.runtime.compiled import code_cache
from mummergpu.runtime.compiled.code_store import CodeStore
from mummergpu.runtime.compiled.code_target import accepted_targets, chosen_target
from mummergpu.runtime.compiled.pending import numba_settings
from mummergpu.runtime.processors import first_processor

MAXIMUM_BYTES: Final = 16 << 20
"""As `kept_content.MAXIMUM_BYTES`; code without numba's additions is small."""

_SUFFIX: Final = "-native"
"""What is added to the name of the folder in which numba's code is kept."""
_FORMAT: Final = "native code 1"
_DIGEST_BYTES: Final = 16
_KEY_BYTES: Final = 32

_TELLING: Final = (b"vendor_id", b"cpu family", b"model", b"model name", b"stepping", b"flags")
"""The lines that tell the processor; the others tell its clock and how much it does."""


def native_stores() -> tuple[CodeStore, ...]:
    """Return the stores of code that runs without numba; calls to them must not overlap.

    The first is the one that new code goes to; those of generic code follow that this machine can
    run. There are none if no such code can be used here.
    """
    return _stores_in(code_cache.code_places())


@cache
def _stores_in(places: tuple[str, ...]) -> tuple[CodeStore, ...]:
    if not places:
        return ()
    folders = [place + _SUFFIX for place in places]
    packaged = [place + _SUFFIX for place in code_cache.packaged_places()]
    return tuple(
        CodeStore(folders, generation, code_cache.tell_trouble, MAXIMUM_BYTES, packaged)
        for generation in _generations()
    )


code_cache.when_places_change(_stores_in.cache_clear)


def runs_here() -> bool:
    """Return whether code can be called without numba here, with numba's usual settings."""
    return (sys.platform, platform.machine(), sys.implementation.name) == (
        "linux",
        "x86_64",
        "cpython",
    ) and not numba_settings()


def key_of(function: Callable[..., Any], kind: str) -> bytes:
    """Return the key of a function's code for types of its arguments and a way of compiling."""
    code = function.__code__
    parts = (function.__module__, function.__qualname__, code.co_firstlineno, kind)
    return blake2b(repr(parts).encode() + code.co_code, digest_size=_KEY_BYTES).digest()


def _generations() -> list[str]:
    """Return a name for all that the code of every function depends on, one for each target.

    The list is empty if something of that is unknown.
    """
    if not runs_here():
        return []
    try:
        compilers = [_version_file("numba"), _version_file("llvmlite")]
        targets = _targets()
    except (OSError, ImportError, ValueError, KeyError):
        return []
    sources = code_cache.digest_at_start()
    if sources is None:
        return []
    # Of numpy and Python, numba asks the version; the instructions of Python are part of each key.
    versions = (sys.implementation.cache_tag, np.__version__)
    common = (_FORMAT, sources, *versions, *compilers)
    return [
        blake2b(repr((*common, target)).encode(), digest_size=_DIGEST_BYTES).hexdigest()
        for target in targets
    ]


def _version_file(package: str) -> bytes:
    """Return the text of the file in which a package tells its version, without an import of it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(package)
    return Path(spec.origin).with_name("_version.py").read_bytes()


def _targets() -> list[bytes | str]:
    """Return what code may have been compiled for: first what this process compiles for."""
    chosen = chosen_target()
    if chosen is not None:
        return [chosen.name]
    facts = first_processor()
    own = b"\n".join(facts[name] for name in _TELLING)
    return [own, *(target.name for target in accepted_targets())]
