"""Keeps images of compiled functions on disk; no fault of the disk makes a run fail.

An image depends on how functions are compiled and on the level of the processor: their digest is
the name of a folder, a generation. In it, each function has a file for each types of its arguments
and each state of the sources that it depends on (`sources.py`): an edit of another module compiles
nothing again.

Files are written under a temporary name and renamed, so that processes can share a folder. Code is
loaded only from a folder that belongs to this user or to root, and that no other user can write to.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Final

from mummergpu.runtime.blake2 import blake2b
from mummergpu.runtime.cache_dir import processor_code_places
from mummergpu.runtime.compiled.levels import settings_of_code, usable_levels
from mummergpu.runtime.compiled.sources import PACKAGE, digest_of_sources
from mummergpu.runtime.compiled.store_entry import (
    ABANDONED_SECONDS,
    FILE_MODE,
    FOLDER_MODE,
    StoreEntry,
    is_abandoned,
    pack,
    remove_least_used,
    unpack,
)

_IMAGES: Final = "images"

WITH_PACKAGE: Final = os.path.join(PACKAGE, _IMAGES)
"""The folder of the images that a wheel brings; nothing is ever written to it by a run."""

SUFFIX: Final = ".code"
MAXIMUM_BYTES: Final = 16 << 20
"""The least recently used images are removed when all have more than this."""

_FORMAT: Final = f"images 3, objects of {object.__basicsize__} bytes"
_UNFINISHED: Final = ".unfinished"
_GENERATION: Final = re.compile("[0-9a-f]{32}")
_DIGEST_BYTES: Final = 16


class UnsafeFolderError(OSError):
    """A folder that another user could have put code into."""


class CodeStore:
    """The images of some generations, in the first of several folders that can be used.

    Images are loaded from all `generations`, and saved in the first; with no `places`, nothing is
    kept. `packaged` folders are only loaded from. `report` is given a line for the user when a
    folder causes trouble for the first time. Above `maximum_bytes` in a folder, the least recently
    used images are removed.
    """

    def __init__(
        self,
        places: Sequence[str],
        generations: Sequence[str],
        report: Callable[[str], None],
        packaged: Sequence[str] = (),
        maximum_bytes: int = MAXIMUM_BYTES,
    ) -> None:
        self._places = list(places)
        self._generations = tuple(generations)
        self._report: Callable[[str], None] | None = report
        self._packaged = frozenset(packaged)
        self._maximum_bytes = maximum_bytes
        self._has_pruned = False
        self._readable = [
            os.path.join(place, generation)
            for generation in generations
            for place in (*places, *packaged)
        ]
        self._descriptors: dict[str, int] = {}
        self._lock = threading.RLock()

    def load(self, key: bytes) -> bytes | None:
        """Return the image kept under a key of 32 bytes; None if it is missing or damaged."""
        with self._lock:
            for folder in tuple(self._readable):
                try:
                    content = unpack(self._read(folder, key), key)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    self._complain("cannot be read from", os.path.dirname(folder), error)
                    continue
                if content is not None:
                    return content
                self._complain("is damaged in", os.path.dirname(folder))
            return None

    def save(self, key: bytes, content: bytes) -> None:
        """Keep an image under a key, or report why that is not possible."""
        with self._lock:
            while self._places:
                place = self._places[0]
                try:
                    self._write(os.path.join(place, self._generations[0]), key, pack(content, key))
                except OSError as error:
                    self._complain("cannot be kept in", place, error)
                    # Images that others have kept there can still be loaded.
                    del self._places[0]
                    continue
                if not self._has_pruned:
                    self._has_pruned = True
                    prune(place, self._maximum_bytes)
                return

    def folder(self) -> str | None:
        """Create the folder that images are saved in; return None if no safe one can be written."""
        with self._lock:
            for place in self._places:
                with suppress(OSError):
                    folder = os.path.join(place, self._generations[0])
                    self._descriptor(folder, create=True)
                    return folder
            return None

    def _complain(self, what: str, place: str, error: OSError | None = None) -> None:
        """Report the first fault; `what` is the message before the folder's name."""
        if self._report is not None:
            reason = "" if error is None else f": {error.strerror or error}"
            self._report(f"compiled code {what} {place}{reason}")
            self._report = None

    def _read(self, folder: str, key: bytes) -> bytes:
        try:
            descriptor = self._descriptor(folder)
        except OSError:
            # Until the folder is created here, it is not looked for again.
            self._readable.remove(folder)
            raise
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        with open(os.open(_name(key), flags, dir_fd=descriptor), "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_mtime < time.time() - ABANDONED_SECONDS / 2:
                # Marks the use; another user's images, and a read-only folder, keep their time.
                with suppress(OSError):
                    os.utime(file.fileno())
            return file.read()

    def _write(self, folder: str, key: bytes, stored: bytes) -> None:
        descriptor = self._descriptor(folder, create=True)
        temporary = f"{os.urandom(8).hex()}{_UNFINISHED}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with open(os.open(temporary, flags, FILE_MODE, dir_fd=descriptor), "wb") as file:
                file.write(stored)
            os.replace(temporary, _name(key), src_dir_fd=descriptor, dst_dir_fd=descriptor)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=descriptor)
            raise
        if folder not in self._readable:
            self._readable.insert(0, folder)

    def _descriptor(self, folder: str, *, create: bool = False) -> int:
        """Return a descriptor of a generation's folder."""
        if folder in self._descriptors:
            return self._descriptors[folder]
        place = os.path.dirname(folder)
        if create:
            os.makedirs(place, mode=FOLDER_MODE, exist_ok=True)
            with suppress(FileExistsError):
                os.mkdir(folder, mode=FOLDER_MODE)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            # Who can change the images of the package can change the package.
            if place not in self._packaged:
                _refuse_unsafe(os.fstat(descriptor))
        except OSError:
            os.close(descriptor)
            raise
        self._descriptors[folder] = descriptor
        return descriptor


def _refuse_unsafe(folder: os.stat_result) -> None:
    """Raise `UnsafeFolderError` if another user could have put code into a folder."""
    if folder.st_uid not in (0, os.geteuid()):
        raise UnsafeFolderError("it belongs to another user")
    if folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnsafeFolderError("other users can write to it")


def prune(place: str, maximum_bytes: int) -> None:
    """Remove the least recently used images of all generations, and abandoned files.

    What a running process may use stays.
    """

    def remove(path: str) -> bool:
        if not is_abandoned(os.lstat(path).st_mtime):
            return False
        os.unlink(path)
        with suppress(OSError):
            # A generation without images goes, once it is empty.
            os.rmdir(os.path.dirname(path))
        return True

    entries = []
    with suppress(OSError):
        names = [name for name in os.listdir(place) if _GENERATION.fullmatch(name)]
        for path in (path for name in names for path in _files(os.path.join(place, name))):
            # Another process may remove a file first.
            with suppress(OSError):
                found = os.lstat(path)
                if not (path.endswith(_UNFINISHED) and remove(path)):
                    entries.append(StoreEntry(found.st_mtime, found.st_size, path))
    remove_least_used(entries, maximum_bytes, remove)


def _files(folder: str) -> list[str]:
    """Return the paths of the files in a folder, and in the folders that numba makes there."""
    return [os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names]


def _name(key: bytes) -> str:
    return key.hex() + SUFFIX


# How functions are compiled; read as early as possible, like the modules that have been imported.
_COMPILATION: Final = digest_of_sources(
    *(os.path.join(PACKAGE, "runtime", name) for name in ("compiled", "jit.py", "llvm.py"))
)

_chosen_places: list[tuple[str, ...]] = []
_listeners: list[Callable[[str], None]] = []
_unheard: list[str] = []


def generations() -> tuple[str, ...]:
    """Return the generations whose code this process runs; it saves code in the first.

    There is one for each level of the processor; without images, one for what numba keeps.
    """
    if _COMPILATION is None:
        return ()
    kinds = usable_levels() or (repr(settings_of_code()),)
    texts = ("\0".join((_FORMAT, _COMPILATION, kind)).encode() for kind in kinds)
    return tuple(blake2b(text, digest_size=_DIGEST_BYTES).hexdigest() for text in texts)


def code_places() -> tuple[str, ...]:
    """Return the folders for compiled code, the best first: `keep_code_in`'s or the usual ones."""
    return _chosen_places[0] if _chosen_places else processor_code_places(os.environ)


def keep_code_in(places: tuple[str, ...]) -> None:
    """Set the folders for compiled code; with none, nothing is kept."""
    _chosen_places[:] = [places]
    process_store.cache_clear()


@cache
def process_store() -> CodeStore:
    """Return the store of this process."""
    names = generations()
    return CodeStore(code_places() if names else (), names, _report, (WITH_PACKAGE,))


def on_cache_trouble(listener: Callable[[str], None]) -> None:
    """Give `listener` a line for each store about the folder of code that causes trouble."""
    _listeners[:] = [listener]
    while _unheard:
        listener(_unheard.pop(0))


def _report(line: str) -> None:
    if _listeners:
        _listeners[0](line)
    else:
        _unheard.append(line)
