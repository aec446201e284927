"""New files that get their name only when complete, and leave nothing if the work fails.

Until then such a file is ``.mummergpu-*.part`` in the same folder. It is removed if the work fails,
or a signal ends the process; only SIGKILL leaves it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_PERMISSIONS: Final = 0o666
"""The permissions of a new file, before the umask is applied."""

_CANNOT_SYNC: Final = frozenset((errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES))
"""The errors of file systems that cannot sync a folder, and of folders that cannot be read."""

_PREFIX: Final = ".mummergpu-"
_SUFFIX: Final = ".part"

_unfinished: Final[set[str]] = set()
"""The paths of unfinished files, and of folders of parts of files."""


def remove_unfinished() -> None:
    """Remove all unfinished files, and folders of parts of files.

    Call it before the process is ended from outside the thread that writes.
    """
    for path in tuple(_unfinished):
        _remove(path)


@contextmanager
def parts_folder(target: str) -> Iterator[str]:
    """Make a folder for parts of a file, next to it; remove it at the end, also of the process."""
    folder = _new_path(os.path.realpath(target)) + "s"
    _unfinished.add(folder)
    try:
        os.mkdir(folder)
        yield folder
    finally:
        _remove(folder)


def is_temporary_name(name: str) -> bool:
    """Return whether a name, without its folder, is one that unfinished files have."""
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def write_whole_file(path: str, content: bytes, permissions: int | None = None) -> None:
    """Write a file that appears only when all of it is written; an older file is replaced.

    The path is no symbolic link; the permissions are as for `UnfinishedFile`. If an `OSError` says
    that the file cannot be written, nothing of it is left.
    """
    file = UnfinishedFile(path, permissions)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file.descriptor, rest) :]
        file.finish()
    except BaseException:
        file.abandon()
        raise


class UnfinishedFile:
    """A new file that appears under its name when `finish` is called; write to its `descriptor`.

    Until then an older file of that name stays as it is. `OSError` if no new file can be created
    there.
    """

    def __init__(self, target: str, permissions: int | None = None) -> None:
        self._target = target
        self._path = _new_path(target)
        self._is_open = False
        _unfinished.add(self._path)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self.descriptor = os.open(self._path, flags, _PERMISSIONS)
            self._is_open = True
            if permissions is not None:
                os.fchmod(self.descriptor, permissions)
        except BaseException:
            self.abandon()
            raise

    def finish(self, durable: bool = False) -> None:
        """Close the file and give it its name; if that raises an OSError, call `abandon`.

        A durable file gets it when the content is on the disk, and the name is waited for too.
        """
        if durable:
            os.fsync(self.descriptor)
        # Some file systems report delayed errors only now.
        self._close()
        os.replace(self._path, self._target)
        _unfinished.discard(self._path)
        if durable:
            _sync_folder(os.path.dirname(self._target))

    def abandon(self) -> None:
        """Close the file and remove it, unless it has got its name."""
        # Only the first failure, which led here, is reported.
        with suppress(OSError):
            self._close()
        if self._path in _unfinished:
            _remove(self._path)

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self.descriptor)


def _new_path(target: str) -> str:
    name = f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}{_SUFFIX}"
    return os.path.join(os.path.dirname(target), name)


def _remove(path: str) -> None:
    with suppress(OSError):
        if os.path.isdir(path):
            # Its import costs every start 2 ms, and hardly any needs it.
            import shutil

            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
    _unfinished.discard(path)


def _sync_folder(folder: str) -> None:
    """Flush the names in a folder to the disk, if its file system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
