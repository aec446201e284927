"""Keeps compiled kernels on disk, so that a later run compiles nothing.

A file is named by its key, the SHA-256 of everything that the kernels depend on: the names
and texts of the files that the program can include, the compiler's options and version, and
`CACHE_FORMAT`. It begins with a header (`store_entry.pack`); if that shows damage, the kernels
are compiled again and the file is replaced. A file appears under its name only when it is complete,
so processes can share a folder without a lock.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import Final

from mummergpu.cuda.device import Device, Program
from mummergpu.cuda.nvrtc import compile_program, compiler_options, nvrtc_version
from mummergpu.cuda.program import ProgramSource, read_sources
from mummergpu.runtime.compiled.store_entry import (
    FILE_MODE,
    FOLDER_MODE,
    StoreEntry,
    is_abandoned,
    pack,
    remove_least_used,
    unpack,
)
from mummergpu.runtime.unfinished_file import is_temporary_name, write_whole_file

CACHE_FORMAT: Final = 3
"""Increased when the header or the composition of the key changes."""

_SUFFIX: Final = ".kernel"

MAXIMUM_BYTES: Final = 64 << 20
"""The least recently used kernels are removed when all have more than this."""

Compiler = Callable[[Mapping[str, str], ProgramSource, str], bytes]
"""Compiles sources, a program and an architecture, as `compile_program` does."""


class KernelCache:
    """Loads kernels that were compiled before, and compiles the others.

    The folder is created when it is first needed; None keeps nothing. A notice, one line for the
    user, is given once, when nothing can be kept. Threads may share a cache, and compile side by
    side.

    Attributes
    ----------
    hits, misses : int
        Images that were found, and those that were compiled.
    repaired : int
        Images that were compiled because their file was damaged; misses too.
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
        """Return the compiled kernels of a program (`compile_program`).

        The sources are texts by their paths. An image that cannot be kept is no error.
        """
        if self._folder is None:
            with self._lock:
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
        with self._lock:
            self.hits += image is not None
            self.misses += image is None
        if image is not None:
            self._mark_as_used(path)
            return image
        image = compile(sources, program, architecture)
        with self._lock:
            self.repaired += stored is not None
            self._keep(path, pack(image, key))
        return image

    def _mark_as_used(self, path: Path) -> None:
        # Set the time explicitly: most file systems do not record the time of an access.
        with suppress(OSError):
            os.utime(path)

    def _keep(self, path: Path, content: bytes) -> None:
        if not self._can_keep:
            return
        try:
            path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            write_whole_file(str(path), content, FILE_MODE)
        except OSError as error:
            # Images that others have kept there can still be loaded.
            self._can_keep = False
            reason = error.strerror or error
            self._notice(f"compiled kernels cannot be kept in {path.parent}: {reason}")
        else:
            prune(path.parent, self._maximum_bytes, self._used)


class Programs:
    """The programs of a device, each compiled and loaded once; several threads may ask for them."""

    def __init__(self, device: Device, cache: KernelCache) -> None:
        self._device = device
        self._cache = cache
        self._sources = read_sources()
        self._loaded: dict[ProgramSource, Program] = {}
        self._loading = threading.Lock()

    def __contains__(self, source: ProgramSource) -> bool:
        return source in self._loaded

    def cubin(self, source: ProgramSource) -> bytes:
        """Return a compiled program; `BackendError` is raised if it does not compile."""
        return self._cache.cubin(self._sources, source, self._device.architecture)

    def load(self, source: ProgramSource) -> Program:
        """Return a loaded program; the device is current in the calling thread."""
        if (program := self._loaded.get(source)) is not None:
            return program
        # Threads that need the same program at once would each compile it.
        with self._loading:
            if source not in self._loaded:
                self._loaded[source] = self._device.load(self.cubin(source))
            return self._loaded[source]

    def load_all(self, sources: Iterable[ProgramSource], executor: Executor) -> None:
        """Load programs that are compiled side by side."""
        with self._loading:
            missing = [source for source in sources if source not in self._loaded]
            cubins = executor.map(self.cubin, missing)
            self._loaded.update(zip(missing, map(self._device.load, cubins), strict=True))


def cache_key(
    sources: Mapping[str, str], program: ProgramSource, architecture: str, version: tuple[int, int]
) -> bytes:
    """Return 32 bytes, which differ if anything differs that the kernels depend on."""
    files = program.files(sources)
    texts = [part for name in sorted(files) for part in (name, files[name])]
    options = compiler_options(program, architecture)
    numbers = [str(CACHE_FORMAT), program.entry, *map(str, version), str(len(options))]
    digest = hashlib.sha256()
    for part in (*numbers, *options, *texts):
        content = part.encode()
        # The lengths separate the parts.
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.digest()


def prune(folder: Path, maximum_bytes: int, kept: set[str]) -> None:
    """Remove abandoned files, and the least recently used ones except the `kept` names."""

    def remove(path: str) -> bool:
        name = os.path.basename(path)
        if not name.endswith(_SUFFIX) or name in kept:
            return False
        os.unlink(path)
        return True

    remove_least_used(_files(folder), maximum_bytes, remove)


def _files(folder: Path) -> list[StoreEntry]:
    """Remove abandoned files; return the cache's others in a folder that may hold anything."""
    files = []
    with suppress(OSError):
        for path in folder.iterdir():
            is_unfinished = is_temporary_name(path.name)
            if path.suffix == _SUFFIX or is_unfinished:
                # A file may vanish meanwhile.
                with suppress(OSError):
                    status = path.lstat()
                    if is_unfinished and is_abandoned(status.st_mtime):
                        path.unlink()
                    else:
                        files.append(StoreEntry(status.st_mtime, status.st_size, str(path)))
    return files
