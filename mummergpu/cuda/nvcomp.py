"""NVIDIA's nvCOMP, which deflates on a device.

Its functions for many pieces at once are called through ``ctypes``: the package for Python has the
same ones, but keeps memory of its own and copies each piece.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from mummergpu.cuda.driver import driver_facts
from mummergpu.errors import BackendError, LibraryError
from mummergpu.runtime.frozen import frozen

LIBRARY: Final = "nvidia-libnvcomp-cu"
EXTRA: Final = "nvcomp"
"""The library for pip without the version of CUDA, and the extra that installs it."""

_CUDA_13: Final = (13, 0)

LEVEL: Final = 2
"""Makes less of a BAM than zlib's first level, and takes a quarter longer than level 1."""

_VERSIONS: Final = (6, 5)
"""The major versions whose functions are those below."""

_SUCCESS: Final = 0


@frozen
class DeflateWork:
    """Pieces of text to deflate; all addresses are of a device.

    Attributes
    ----------
    count : int
        The number of pieces.
    piece_bytes : int
        The most bytes of a piece.
    texts, sizes : int
        The addresses of 64-bit numbers: where each piece begins, and its bytes.
    workspace, workspace_bytes : int
        The address and size of memory to work in (`Nvcomp.workspace_bytes`).
    outputs : int
        The address of 64-bit numbers: where the deflated form of each piece is to begin, a multiple
        of 8, with room for `Nvcomp.max_bytes`.
    output_sizes : int
        The address of 64-bit numbers, which receive the bytes of each deflated form.
    states : int
        The address of 32-bit numbers, which receive 0 for each piece that was deflated.
    """

    count: int
    piece_bytes: int
    texts: int
    sizes: int
    workspace: int
    workspace_bytes: int
    outputs: int
    output_sizes: int
    states: int


class _Options(ctypes.Structure):
    """``nvcompBatchedDeflateCompressOpts_t``."""

    _fields_ = (("algorithm", ctypes.c_int), ("reserved", ctypes.c_char * 60))


class _Properties(ctypes.Structure):
    """``nvcompProperties_t``."""

    _fields_ = (("version", ctypes.c_uint32), ("cudart_version", ctypes.c_uint32))


class Nvcomp:
    """The library, which deflates pieces of text in the memory of a device.

    Raises
    ------
    AttributeError
        If it lacks a function.
    OSError
        If it is of a version with other functions.
    """

    def __init__(self, library: Any) -> None:
        major = _version_of(library) // 1000
        if major not in _VERSIONS:
            raise OSError(f"version {major}; those that are known: {min(_VERSIONS)} or newer")
        prefix = "nvcompBatchedDeflateCompress"
        # The newer one also takes a stream.
        self._takes_stream = major > 5
        sizing = "GetTempSize" if self._takes_stream else "GetTempSizeAsync"
        self._workspace_bytes = getattr(library, prefix + sizing)
        self._max_bytes = getattr(library, f"{prefix}GetMaxOutputChunkSize")
        self._deflate = getattr(library, f"{prefix}Async")
        self._options = _Options(LEVEL, b"")

    def max_bytes(self, piece_bytes: int) -> int:
        """Return the most bytes that a piece of text may become."""
        found = ctypes.c_size_t()
        _check(self._max_bytes(ctypes.c_size_t(piece_bytes), self._options, ctypes.byref(found)))
        return found.value

    def workspace_bytes(self, count: int, piece_bytes: int) -> int:
        """Return the bytes of device memory that are needed to deflate `count` pieces at once."""
        found = ctypes.c_size_t()
        stream = (ctypes.c_void_p(0),) if self._takes_stream else ()
        _check(
            self._workspace_bytes(
                *(ctypes.c_size_t(count), ctypes.c_size_t(piece_bytes), self._options),
                *(ctypes.byref(found), ctypes.c_size_t(count * piece_bytes), *stream),
            )
        )
        return found.value

    def deflate(self, stream: int, work: DeflateWork) -> None:
        """Queue the work on a stream; raise `BackendError` if the library refuses it."""
        _check(
            self._deflate(
                *(ctypes.c_void_p(work.texts), ctypes.c_void_p(work.sizes)),
                *(ctypes.c_size_t(work.piece_bytes), ctypes.c_size_t(work.count)),
                *(ctypes.c_void_p(work.workspace), ctypes.c_size_t(work.workspace_bytes)),
                *(ctypes.c_void_p(work.outputs), ctypes.c_void_p(work.output_sizes)),
                *(self._options, ctypes.c_void_p(work.states), ctypes.c_void_p(stream)),
            )
        )


@cache
def load_nvcomp() -> Nvcomp:
    """Load the library; `LibraryError` if it is missing, or not in a version that is known."""
    problem = "not installed"
    for path in _paths():
        try:
            return Nvcomp(ctypes.CDLL(path))
        except AttributeError as error:
            problem = f"cannot be used: {error}"
        except OSError as error:
            # A library that the system does not have is not the problem to report.
            if "/" in path:
                problem = f"cannot be used: {error}"
    raise nvcomp_error(problem)


def nvcomp_error(problem: str) -> LibraryError:
    """Return the error to raise if the library does not do what it should.

    It names the version that the driver can use.
    """
    version = driver_facts().cuda_version
    is_older = version is not None and version < _CUDA_13
    library, extra = (LIBRARY + "12", EXTRA + "12") if is_older else (LIBRARY + "13", EXTRA)
    return LibraryError("compression on a GPU", library, extra, problem)


def _paths() -> Iterator[str]:
    """Yield where the library may be: in the wheel of NVIDIA, or where the system looks."""
    try:
        found = importlib.util.find_spec("nvidia.libnvcomp")
    except (ImportError, ValueError):
        found = None
    for folder in (found and found.submodule_search_locations) or ():
        for version in _VERSIONS:
            yield from map(str, sorted(Path(folder).glob(f"lib*/libnvcomp.so.{version}")))
    for version in _VERSIONS:
        yield f"libnvcomp.so.{version}"


def _version_of(library: Any) -> int:
    """Return the version, a thousand times the major one and more."""
    found = _Properties()
    _check(library.nvcompGetProperties(ctypes.byref(found)))
    return found.version  # type: ignore[no-any-return]


def _check(status: int) -> None:
    if status != _SUCCESS:
        raise BackendError("cuda", f"nvCOMP answers with status {status}")
