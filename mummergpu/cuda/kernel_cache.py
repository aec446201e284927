"""Compiled kernels on disk, so that a second start compiles nothing.

A file is named by its key, the SHA-256 of everything that the kernels depend on: the names
and texts of the files that the program can include, the compiler's options and version, and
`CACHE_FORMAT`. It begins with a header (see `_HEADER`) that holds the key again, and the length
and the SHA-256 of what follows: the image that the driver loads. A file in which these do not
agree is compiled again and replaced.

Files appear when they are complete, so that processes can share a folder without a lock. None
is flushed to the disk on purpose: what a crash leaves is checked.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from mummergpu.cuda.nvrtc import compile_program, compiler_options, nvrtc_version
from mummergpu.cuda.program import ProgramSource
from mummergpu.runtime.unfinished_file import is_temporary_name, write_whole_file

CACHE_FORMAT: Final = 2
"""Changes when the header does, or what the key is made of."""

MAXIMUM_BYTES: Final = 64 << 20
"""The folder is pruned when its files are larger together."""

ABANDONED_SECONDS: Final = 3600
"""An unfinished file that is older belongs to no living process."""

_MAGIC: Final = b"mummergpu kernel"
_HEADER: Final = struct.Struct("<16s32sQ32s")
"""Magic, key, length of the image, SHA-256 of the image."""

_SUFFIX: Final = ".kernel"

Compiler = Callable[[Mapping[str, str], ProgramSource, str], bytes]
"""Takes sources, a program and architecture, as `compile_program`."""


class KernelCache:
    """Compiles kernels, or finds what was compiled before.

    Parameters
    ----------
    folder : Path or None
        Where images are kept; it is made when it is first needed. None keeps nothing.
    notice : callable
        Takes one line for people; called at most once, when nothing can be kept.
    maximum_bytes : int
        As `MAXIMUM_BYTES`.
    version : callable
        Returns the compiler's version, as `nvrtc_version`.

    Attributes
    ----------
    hits : int
        Images that were found.
    misses : int
        Images that were compiled, the repaired ones among them.
    repaired : int
        Images that were compiled because the file that held them was damaged.

    Notes
    -----
    Threads may share a cache; they wait for each other's compilations.
    """

    def __init__(
        self,
        folder: Path | None,
        notice: Callable[[str], None],
        maximum_bytes: int = MAXIMUM_BYTES,
        version: Callable[[], tuple[int, int]] = nvrtc_version,
    ) -> None:
        self.hits = 0
        self.misses = 0
        self.repaired = 0
        self._folder = folder
        self._notice = notice
        self._maximum_bytes = maximum_bytes
        self._version = version
        self._can_keep = True
        self._used: set[str] = set()
        self._lock = threading.Lock()

    def cubin(
        self,
        sources: Mapping[str, str],
        program: ProgramSource,
        architecture: str,
        compile: Compiler = compile_program,
    ) -> bytes:
        """Return the compiled kernels.

        Parameters
        ----------
        sources : mapping of str to str
            The text of every source file by its path.
        program : ProgramSource
            What is compiled.
        architecture : str
            As in `compile_program`.
        compile : callable
            What is called if the image is not found.

        Returns
        -------
        bytes
            A cubin, or PTX if the architecture asks for it.

        Raises
        ------
        BackendError
            If they cannot be compiled. That nothing can be kept is no error.
        """
        with self._lock:
            if self._folder is None:
                self.misses += 1
                return compile(sources, program, architecture)
            key = cache_key(sources, program, architecture, self._version())
            path = self._folder / (key.hex() + _SUFFIX)
            self._used.add(path.name)
            try:
                stored = path.read_bytes()
            except OSError:
                stored = None
            image = None if stored is None else unpack(stored, key)
            if image is not None:
                self.hits += 1
                self._mark_as_used(path)
                return image
            self.misses += 1
            image = compile(sources, program, architecture)
            self.repaired += stored is not None
            if self._can_keep:
                self._keep(path, pack(image, key))
            return image

    def _mark_as_used(self, path: Path) -> None:
        # By hand: most file systems do not keep the time of an access.
        with suppress(OSError):
            os.utime(path)

    def _keep(self, path: Path, content: bytes) -> None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole_file(str(path), content, 0o600)
        except OSError as error:
            # What others have kept there is still of use.
            self._can_keep = False
            reason = error.strerror or error
            self._notice(f"compiled kernels cannot be kept in {path.parent}: {reason}")
        else:
            prune(path.parent, self._maximum_bytes, self._used)


def cache_key(
    sources: Mapping[str, str],
    program: ProgramSource,
    architecture: str,
    version: tuple[int, int],
) -> bytes:
    """Return what names the kernels that a compilation makes.

    Parameters
    ----------
    sources, program, architecture
        As in `compile_program`.
    version : tuple of int
        The compiler's.

    Returns
    -------
    bytes
        32 of them, different for whatever could make a difference.
    """
    files = program.files(sources)
    texts = [part for name in sorted(files) for part in (name, files[name])]
    options = compiler_options(program, architecture)
    numbers = [str(CACHE_FORMAT), program.entry, *map(str, version), str(len(options))]
    digest = hashlib.sha256()
    for part in (*numbers, *options, *texts):
        content = part.encode()
        # Lengths keep the parts apart.
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.digest()


def pack(image: bytes, key: bytes) -> bytes:
    """Return the content of the file that keeps an image.

    Parameters
    ----------
    image : bytes
        What the driver loads.
    key : bytes
        Of `cache_key`.

    Returns
    -------
    bytes
        The header and the image.
    """
    return _HEADER.pack(_MAGIC, key, len(image), hashlib.sha256(image).digest()) + image


def unpack(content: bytes, key: bytes) -> bytes | None:
    """Return the image that a file keeps.

    Parameters
    ----------
    content : bytes
        The whole file.
    key : bytes
        Of `cache_key`.

    Returns
    -------
    bytes or None
        None if the file was cut, damaged, made for another key, or is of another kind.
    """
    if len(content) < _HEADER.size:
        return None
    image = content[_HEADER.size :]
    return image if content == pack(image, key) else None


def prune(folder: Path, maximum_bytes: int, kept: set[str]) -> None:
    """Remove the files that were not used for the longest time, and abandoned ones.

    Parameters
    ----------
    folder : Path
        Where images are kept.
    maximum_bytes : int
        How much may stay.
    kept : set of str
        Names of files that stay in any case.
    """
    files = _files(folder)
    excess = sum(found.st_size for _, found in files) - maximum_bytes
    abandoned = time.time() - ABANDONED_SECONDS
    for path, found in sorted(files, key=lambda file: file[1].st_mtime_ns):
        old = is_temporary_name(path.name) and found.st_mtime < abandoned
        if old or (excess > 0 and path.suffix == _SUFFIX and path.name not in kept):
            # Another process may have been faster.
            with suppress(OSError):
                path.unlink()
            excess -= found.st_size


def _files(folder: Path) -> list[tuple[Path, os.stat_result]]:
    """Return the cache's own files in a folder; it may hold others, which are let alone."""
    files = []
    with suppress(OSError):
        for path in folder.iterdir():
            if path.suffix == _SUFFIX or is_temporary_name(path.name):
                # A file may vanish between the two looks.
                with suppress(OSError):
                    files.append((path, path.lstat()))
    return files
