"""Keeps machine code on disk; no fault of the disk makes a run fail.

A store has a generation: a name for everything that all of its code depends on. The code of
one generation lies in one folder, with one file for each function and signature.

Files are written under a temporary name and renamed, so that processes can share a folder. Each
process holds a shared lock on the generation that it uses. A generation without a lock can be
removed when the folder has grown too large.

Code is loaded only from a folder that belongs to this user or to root, and that no other user
can write to.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from mummergpu.runtime.compiled.kept_content import (
    FILE_MODE,
    FOLDER_MODE,
    MAXIMUM_BYTES,
    Kept,
    is_abandoned,
    pack,
    remove_least_used,
    unpack,
)

_SECONDS_BETWEEN_MARKS: Final = 86400
"""The time of the last use is noted at most once a day."""

SUFFIX: Final = ".code"
_UNFINISHED: Final = ".unfinished"
_LOCK: Final = "lock"
_GENERATION: Final = re.compile("[0-9a-f]{32}")


class UnsafeFolderError(OSError):
    """A folder that another user could have put code into."""


class CodeStore:
    """The code of one generation, in the first of several folders that can be used.

    The best of them comes first; they need not exist. With none, nothing is kept. Code is also
    loaded from the folders of `packaged`. A line for the user is told once, when the disk has
    caused trouble.

    Attributes
    ----------
    saved_count : int
        How much content this process has kept.

    Notes
    -----
    Calls must not overlap. Numba's lock around compilations ensures that.
    """

    def __init__(
        self,
        places: Sequence[str],
        generation: str,
        tell: Callable[[str], None],
        maximum_bytes: int = MAXIMUM_BYTES,
        packaged: Sequence[str] = (),
    ) -> None:
        self.saved_count = 0
        self._generation = generation
        self._tell = tell
        self._maximum_bytes = maximum_bytes
        self._has_told = False
        self._has_pruned = False
        self._places = (*places, *packaged)
        self._packaged = frozenset(packaged)
        self._writable = list(places)
        self._without_folder: set[str] = set()
        self._folders: dict[str, int] = {}
        self._locks: list[int] = []

    def load(self, key: bytes) -> bytes | None:
        """Return the content kept under a key of 32 bytes; None if it is missing or damaged."""
        for place in self._places:
            if place in self._without_folder:
                continue
            try:
                stored = self._read(place, key)
            except FileNotFoundError:
                continue
            except OSError as error:
                self.trouble("cannot be read from", place, error)
                continue
            content = unpack(stored, key)
            if content is not None:
                return content
            self.trouble("is damaged in", place, None)
        return None

    def save(self, key: bytes, content: bytes) -> None:
        """Keep content under a key, or report why that is not possible."""
        while self._writable:
            place = self._writable[0]
            try:
                self._write(place, key, pack(content, key))
            except OSError as error:
                self.trouble("cannot be kept in", place, error)
                # Code that others have kept there can still be loaded.
                del self._writable[0]
                continue
            self.saved_count += 1
            if not self._has_pruned:
                self._has_pruned = True
                prune(place, self._generation, self._maximum_bytes)
            return

    def folder(self) -> str | None:
        """Create the folder of this generation, for a cache that manages its own files.

        Return None if there is no safe folder that can be written to.
        """
        for place in self._writable:
            with suppress(OSError):
                self._descriptor(place, create=True)
                return os.path.join(place, self._generation)
        return None

    def trouble(self, what: str, place: str, error: OSError | None) -> None:
        """Report the first fault; `what` is the message before the folder's name."""
        if not self._has_told:
            self._has_told = True
            reason = "" if error is None else f": {error.strerror or error}"
            self._tell(f"compiled code {what} {place}{reason}")

    def close(self) -> None:
        """Close the folders; the store must not be used afterwards."""
        for descriptor in (*self._folders.values(), *self._locks):
            os.close(descriptor)
        self._folders.clear()
        self._locks.clear()

    def _read(self, place: str, key: bytes) -> bytes:
        folder = self._descriptor(place, create=False)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        with open(os.open(_name(key), flags, dir_fd=folder), "rb", buffering=0) as file:
            return file.read()

    def _write(self, place: str, key: bytes, stored: bytes) -> None:
        folder = self._descriptor(place, create=True)
        temporary = f"{secrets.token_hex(8)}{_UNFINISHED}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with open(os.open(temporary, flags, FILE_MODE, dir_fd=folder), "wb") as file:
                file.write(stored)
            os.replace(temporary, _name(key), src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise

    def _descriptor(self, place: str, *, create: bool) -> int:
        """Return a descriptor of this generation's folder in a place."""
        if place in self._folders:
            return self._folders[place]
        path = os.path.join(place, self._generation)
        if create:
            os.makedirs(place, mode=FOLDER_MODE, exist_ok=True)
            with suppress(FileExistsError):
                os.mkdir(path, mode=FOLDER_MODE)
        # Until a folder is created here, further checks for each function would fail too.
        self._without_folder.add(place)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            # Who could change code that came as a package could change this package, too.
            if place not in self._packaged:
                refuse_unsafe(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        self._without_folder.remove(place)
        self._folders[place] = descriptor
        self._hold(descriptor, create)
        return descriptor

    def _hold(self, folder: int, create: bool) -> None:
        """Take a shared lock on a generation until the process ends, if possible."""
        with suppress(OSError):
            try:
                flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
                lock = os.open(_LOCK, flags, FILE_MODE, dir_fd=folder)
            except OSError:
                lock = os.open(_LOCK, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
            self._locks.append(lock)
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.fstat(lock).st_mtime < time.time() - _SECONDS_BETWEEN_MARKS:
                os.utime(lock)


def refuse_unsafe(folder: int) -> None:
    """Raise an error if another user could have put code into a folder.

    Raises
    ------
    UnsafeFolderError
        If it belongs to neither this user nor root, or if other users can write to it.
    """
    found = os.fstat(folder)
    if found.st_uid not in (0, os.geteuid()):
        raise UnsafeFolderError("it belongs to another user")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnsafeFolderError("other users can write to it")


def prune(place: str, current: str, maximum_bytes: int) -> None:
    """Remove the least recently used generations, and abandoned files.

    The current generation stays, and so does one that a process has locked.
    """
    with suppress(OSError):
        _remove_abandoned(os.path.join(place, current))
        names = [name for name in os.listdir(place) if _GENERATION.fullmatch(name)]
        paths = [os.path.join(place, name) for name in names]
        kept = [Kept(_last_use(path), _bytes_below(path), path) for path in paths]
        remove_least_used(
            kept,
            maximum_bytes,
            lambda path: os.path.basename(path) != current and _remove_unless_held(path),
        )


def _remove_unless_held(generation: str) -> bool:
    """Remove a generation and return true, unless a process has locked it."""
    try:
        lock = os.open(os.path.join(generation, _LOCK), os.O_RDWR | os.O_CREAT, FILE_MODE)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(generation, ignore_errors=True)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def _remove_abandoned(folder: str) -> None:
    for name in os.listdir(folder):
        if name.endswith(_UNFINISHED):
            path = os.path.join(folder, name)
            # Another process may have removed it first.
            with suppress(OSError):
                if is_abandoned(os.lstat(path).st_mtime):
                    os.unlink(path)


def _last_use(generation: str) -> float:
    for path in (os.path.join(generation, _LOCK), generation):
        with suppress(OSError):
            return os.lstat(path).st_mtime
    return 0.0


def _bytes_below(folder: str) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def _name(key: bytes) -> str:
    return key.hex() + SUFFIX
