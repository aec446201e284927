"""New files that get their name only when complete, and leave nothing if the work fails.

If the file system supports it, such a file has no name at first (O_TMPFILE). Nothing of it is
left then, even if the process is killed. Otherwise it has a temporary name in the same folder,
and is removed if the work fails or a signal ends the process.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_PERMISSIONS: Final = 0o666
"""The permissions of a new file, before the umask is applied."""

_CANNOT_LINK: Final = frozenset(
    (
        *(errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV),
        *(errno.EINVAL, errno.ENOENT, errno.ELOOP, errno.EMLINK),
    )
)
"""The errors of file systems and sandboxes that cannot give a name to a nameless file."""

_CANNOT_SYNC: Final = frozenset((errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES))
"""The errors of file systems that cannot sync a folder, and of folders that cannot be read."""

_COPY_BYTES: Final = 1 << 24

_PREFIX: Final = ".mummergpu-"
_SUFFIX: Final = ".part"

_temporary_paths: Final[set[str]] = set()
_temporary_folders: Final[set[str]] = set()


def remove_unfinished() -> None:
    """Remove the temporary names of all unfinished files, and folders of parts of files.

    Call it before the process is ended from outside the thread that writes.
    """
    for path in tuple(_temporary_paths):
        with suppress(OSError):
            os.unlink(path)
    for folder in tuple(_temporary_folders):
        _remove_folder(folder)


@contextmanager
def parts_folder(target: str) -> Iterator[str]:
    """Make a folder for parts of a file, beside it; it is removed at the end, also of the process.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    beside = os.path.dirname(os.path.realpath(target))
    folder = os.path.join(beside, f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}{_SUFFIX}s")
    _temporary_folders.add(folder)
    try:
        os.mkdir(folder)
        yield folder
    finally:
        _remove_folder(folder)
        _temporary_folders.discard(folder)


def _remove_folder(folder: str) -> None:
    # Its import costs every start 2 ms, and hardly any needs it.
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


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
    """A new file that appears under its name when `finish` is called.

    Until then an older file of that name stays as it is.

    Attributes
    ----------
    descriptor : int
        The descriptor to write to.

    Raises
    ------
    OSError
        If no new file can be created in that folder.
    """

    def __init__(self, target: str, permissions: int | None = None) -> None:
        self._target = target
        self._temporary = ""
        self._handle: int | None = None
        self._is_open = True
        nameless = _open_nameless(os.path.dirname(target))
        if nameless is None:
            self.descriptor = self._open_named()
        else:
            self.descriptor, self._handle = nameless
        if permissions is not None:
            try:
                os.fchmod(self.descriptor, permissions)
            except OSError:
                self.abandon()
                raise

    def finish(self, durable: bool = False) -> None:
        """Close the file and give it its name.

        A durable file gets it when the content is on the disk, and the name is waited for too.

        Raises
        ------
        OSError
            If a step fails; call `abandon` then.
        """
        if durable:
            os.fsync(self.descriptor)
        # Some file systems report delayed errors only now.
        self._close()
        if self._handle is None or not self._link(self._handle, durable):
            os.replace(self._temporary, self._target)
            self._forget_temporary()
        self._close_handle()
        if durable:
            _sync_folder(os.path.dirname(self._target))

    def abandon(self) -> None:
        """Close the file and remove it, unless it has got its name."""
        # Only the first failure, which led here, is reported.
        with suppress(OSError):
            self._close()
        self._close_handle()
        if self._temporary:
            with suppress(OSError):
                os.unlink(self._temporary)
            self._forget_temporary()

    def _open_named(self) -> int:
        """Create a file with a temporary name."""
        self._choose_temporary()
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            return os.open(self._temporary, flags, _PERMISSIONS)
        except OSError:
            self._forget_temporary()
            raise

    def _link(self, handle: int, durable: bool) -> bool:
        """Give a name to a nameless file: the target's (True), or a temporary one (False)."""
        try:
            _link_descriptor(handle, self._target)
            return True
        except FileExistsError:
            # A link replaces no file, but a rename does.
            self._choose_temporary()
            _link_descriptor(handle, self._temporary)
        except OSError as error:
            if error.errno not in _CANNOT_LINK:
                raise
            self._copy(handle, durable)
        return False

    def _copy(self, handle: int, durable: bool) -> None:
        """Copy a nameless file to a new file with a temporary name."""
        permissions = stat.S_IMODE(os.fstat(handle).st_mode)
        source = os.open(_path_of(handle), os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.descriptor = self._open_named()
            self._is_open = True
            os.fchmod(self.descriptor, permissions)
            while os.sendfile(self.descriptor, source, None, _COPY_BYTES):
                pass
        finally:
            os.close(source)
        if durable:
            os.fsync(self.descriptor)
        self._close()

    def _choose_temporary(self) -> None:
        name = f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}{_SUFFIX}"
        self._temporary = os.path.join(os.path.dirname(self._target), name)
        _temporary_paths.add(self._temporary)

    def _forget_temporary(self) -> None:
        _temporary_paths.discard(self._temporary)
        self._temporary = ""

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self.descriptor)

    def _close_handle(self) -> None:
        if self._handle is not None:
            handle, self._handle = self._handle, None
            # Nothing was written by it.
            with suppress(OSError):
                os.close(handle)


def _open_nameless(folder: str) -> tuple[int, int] | None:
    """Open a new file without a name, and a handle through which it can get one.

    Return the descriptor to write to, and one that stays open when the first is closed; None if
    that is not possible.
    """
    if not (hasattr(os, "O_TMPFILE") and hasattr(os, "O_PATH")):
        # Only Linux has such files.
        return None
    try:
        descriptor = os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, _PERMISSIONS)
    except OSError:
        # A file with a name either works, or fails again for the same reason.
        return None
    handle = None
    try:
        handle = os.open(_path_of(descriptor), os.O_PATH | os.O_CLOEXEC)
        opened, found = os.fstat(descriptor), os.fstat(handle)
        if os.path.samestat(opened, found) and _obeys_umask(opened.st_mode):
            return descriptor, handle
    except OSError:
        # /proc is not mounted.
        pass
    for number in (descriptor, handle):
        if number is not None:
            with suppress(OSError):
                os.close(number)
    return None


def _obeys_umask(mode: int) -> bool:
    """Return whether the umask was applied; before Linux 6.0 some file systems ignore it."""
    if stat.S_IMODE(mode) != _PERMISSIONS:
        return True
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"Umask:"):
                return not int(line.split()[1], 8) & _PERMISSIONS
    return False


def _path_of(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def _link_descriptor(handle: int, path: str) -> None:
    """Give a name to a nameless file."""
    # Python follows the link in /proc only if a folder is given; an absolute path ignores it.
    os.link(_path_of(handle), path, src_dir_fd=handle, follow_symlinks=True)


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
