"""Keeps images of compiled functions on disk; no fault of the disk makes a run fail.

An image depends on the sources of this package and on the level of the processor. Their digest is
the name of a folder, a generation. In it, each function has a file for each types of its arguments.

Files are written under a temporary name and renamed, so that processes can share a folder. Code is
loaded only from a folder that belongs to this user or to root, and that no other user can write to.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final

from mummergpu.runtime.cache_dir import processor_code_places
from mummergpu.runtime.compiled.levels import settings_of_code, usable_levels
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

PACKAGE: Final = str(Path(os.path.abspath(__file__)).parents[2])
"""The folder of the package."""

_IMAGES: Final = "images"

WITH_PACKAGE: Final = os.path.join(PACKAGE, _IMAGES)
"""The folder of the images that a wheel brings; nothing is ever written to it by a run."""

ROOMS_WITHOUT_CODE: Final = frozenset({"cli", "api", "cluster", "pipeline"})
"""The folders of the package that have no compiled functions, and that no module with one imports:
a change there compiles nothing again."""

SUFFIX: Final = ".code"
MAXIMUM_BYTES: Final = 16 << 20
"""The least recently used generations are removed when all have more than this."""

_FORMAT: Final = "images 1"
_UNFINISHED: Final = ".unfinished"
_GENERATION: Final = re.compile("[0-9a-f]{32}")
_DIGEST_BYTES: Final = 16
_BYTES_AT_ONCE: Final = 1 << 16


class UnsafeFolderError(OSError):
    """A folder that another user could have put code into."""


class CodeStore:
    """The images of some generations, in the first of several folders that can be used.

    Images are loaded from all `generations`, and saved in the first; with no `places`, nothing is
    kept. `packaged` folders are only loaded from. `report` is given a line for the user when a
    folder causes trouble for the first time. Above `maximum_bytes` in a folder, the least recently
    used generations are removed.
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
                    prune(place, self._generations, self._maximum_bytes)
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
        """Return a descriptor of a generation's folder, whose last use is marked."""
        if folder in self._descriptors:
            return self._descriptors[folder]
        place = os.path.dirname(folder)
        if create:
            os.makedirs(place, mode=FOLDER_MODE, exist_ok=True)
            with suppress(FileExistsError):
                os.mkdir(folder, mode=FOLDER_MODE)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            # Who can change the images of the package can change the package.
            if place not in self._packaged:
                _refuse_unsafe(found)
        except OSError:
            os.close(descriptor)
            raise
        if found.st_mtime < time.time() - ABANDONED_SECONDS / 2:
            with suppress(OSError):
                os.utime(descriptor)
        self._descriptors[folder] = descriptor
        return descriptor


def _refuse_unsafe(folder: os.stat_result) -> None:
    """Raise `UnsafeFolderError` if another user could have put code into a folder."""
    if folder.st_uid not in (0, os.geteuid()):
        raise UnsafeFolderError("it belongs to another user")
    if folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnsafeFolderError("other users can write to it")


def prune(place: str, current: Collection[str], maximum_bytes: int) -> None:
    """Remove the least recently used generations, and abandoned files.

    The current ones stay, and so do those that a running process may use.
    """
    import shutil

    def remove(path: str) -> bool:
        if os.path.basename(path) in current or not is_abandoned(os.lstat(path).st_mtime):
            return False
        shutil.rmtree(path, ignore_errors=True)
        return True

    with suppress(OSError):
        names = [name for name in os.listdir(place) if _GENERATION.fullmatch(name)]
        for name in current:
            _remove_abandoned(os.path.join(place, name))
        paths = [os.path.join(place, name) for name in names]
        entries = [StoreEntry(os.lstat(path).st_mtime, _bytes_below(path), path) for path in paths]
        remove_least_used(entries, maximum_bytes, remove)


def _remove_abandoned(folder: str) -> None:
    # There may be no such folder, and another process may remove a file first.
    with suppress(OSError):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.endswith(_UNFINISHED) and is_abandoned(os.lstat(path).st_mtime):
                os.unlink(path)


def _bytes_below(folder: str) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def _name(key: bytes) -> str:
    return key.hex() + SUFFIX


def digest_of_sources(
    package: str = PACKAGE, left_out: Collection[str] = ROOMS_WITHOUT_CODE | {_IMAGES}
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


# Computed as early as possible: if the package is updated while a process runs, the process must
# not save code from the old sources under the name of the new ones.
_SOURCES: Final = digest_of_sources()

_chosen_places: list[tuple[str, ...]] = []
_listeners: list[Callable[[str], None]] = []
_unheard: list[str] = []


def is_covered(function: Callable[..., object]) -> bool:
    """Return whether the digest of the sources, as they still are, covers a function."""
    path = os.path.abspath(function.__code__.co_filename)
    is_own = function.__closure__ is None and path.startswith(PACKAGE + os.sep)
    return is_own and digest_of_sources() == _SOURCES


def generations() -> tuple[str, ...]:
    """Return the generations whose code this process runs; it saves code in the first.

    There is one for each level of the processor; without images, one for what numba keeps.
    """
    if _SOURCES is None:
        return ()
    kinds = usable_levels() or (repr(settings_of_code()),)
    texts = ("\0".join((_FORMAT, _SOURCES, kind)).encode() for kind in kinds)
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
