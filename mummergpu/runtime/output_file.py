"""Output files that appear under their name only when they are complete.

If a run fails earlier, nothing is left of a regular file, and an older file of that name stays
as it was (see `unfinished_file`). Pipes and devices are written directly.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import select
import stat
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, cast

from mummergpu.errors import OutputError
from mummergpu.runtime.unfinished_file import UnfinishedFile

if TYPE_CHECKING:
    from mummergpu.runtime.arrays import ByteArray

STANDARD_OUTPUT: Final = "-"

_DESCRIPTORS_BY_NAME: Final = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR_PATH: Final = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")

_RESERVE_FROM: Final = 4 << 20
_MOST_RESERVED: Final = 256 << 20
_COPIED_BYTES: Final = 8 << 20
_CANNOT_COPY: Final = frozenset(
    (errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF, errno.EPERM)
)
"""The errors of file systems and kernels that cannot copy between two files."""

_KEEP_SIZE: Final = 1  # FALLOC_FL_KEEP_SIZE


class OutputFile:
    """A stream of bytes into a file, a pipe, a device or standard output ("-").

    As a context manager it completes the file at the end of the ``with`` block, or abandons it if
    the block raises an exception. Completion of a `durable` file waits until the content, and then
    the name, are on the disk. `OutputError` if it cannot be opened.
    """

    def __init__(self, path: str, durable: bool = False) -> None:
        self.path = path
        self._durable = durable
        self._file: UnfinishedFile | None = None
        self._owns_descriptor = True
        self._written = 0
        self._reserved = 0
        self._may_reserve = True
        self._can_copy = hasattr(os, "copy_file_range")
        try:
            self._descriptor = self._open()
        except OSError as error:
            raise self._failure("cannot be opened for writing", error) from error

    def _open(self) -> int:
        shared = _descriptor_named(self.path)
        if shared is not None:
            os.fstat(shared)
            self._owns_descriptor = False
            return shared
        target = os.path.realpath(self.path)
        mode = None
        try:
            found = os.stat(target)
            descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            if self.path.endswith("/"):
                raise
        else:
            if not stat.S_ISREG(found.st_mode):
                return descriptor
            # It was opened only to check permission: a rename would replace even a read-only file.
            os.close(descriptor)
            mode = stat.S_IMODE(found.st_mode)
        self._file = UnfinishedFile(target, mode)
        return self._file.descriptor

    def write(self, data: bytes | bytearray | memoryview | ByteArray) -> None:
        """Write contiguous bytes, all of them.

        `OutputError` if the file cannot take them, `BrokenPipeError` if the reader of a pipe has
        gone.
        """
        rest = memoryview(cast(bytes, data))
        if self._file is not None:
            self._written += rest.nbytes
            self._reserve()
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                # Another process that shares the pipe may have made it non-blocking.
                select.select([], [self._descriptor], [])
            except BrokenPipeError:
                raise
            except OSError as error:
                raise self._failure("cannot be written", error) from error

    def copy_from(self, descriptor: int, size: int) -> None:
        """Append the first bytes of an open file, within the file system where it can do that.

        `OutputError` if the file cannot take them, or there are fewer.
        """
        left = size
        self._written += size
        try:
            while left and (count := self._copy_some(descriptor, size - left, left)):
                left -= count
        except OSError as error:
            raise self._failure("cannot be written", error) from error
        if left:
            raise OutputError("a part of it has been cut short", self.path)

    def _copy_some(self, descriptor: int, at: int, most: int) -> int:
        """Copy some bytes of a file; return how many, 0 at its end."""
        if self._can_copy and self._file is not None:
            try:
                return os.copy_file_range(descriptor, self._descriptor, most, at)
            except OSError as error:
                if error.errno not in _CANNOT_COPY:
                    raise
            self._can_copy = False
        piece = os.pread(descriptor, min(most, _COPIED_BYTES), at)
        self.write(piece)
        # `write` has counted them, too.
        self._written -= len(piece) if self._file is not None else 0
        return len(piece)

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file, which appears when complete, not a pipe or a device."""
        return self._file is not None

    def write_start(self, data: bytes) -> None:
        """Overwrite the first bytes of those that have been written; later writes go to the end."""
        at = 0
        try:
            while at < len(data):
                at += os.pwrite(self._descriptor, data[at:], at)
        except OSError as error:
            raise self._failure("cannot be written", error) from error

    def _reserve(self) -> None:
        """Reserve disk space for a large file in large steps.

        Writing then takes a third less time. A file system that cannot reserve does no harm.
        """
        if not self._may_reserve or self._written < max(self._reserved, _RESERVE_FROM):
            return
        end = self._written + min(self._written, _MOST_RESERVED)
        self._may_reserve = _allocate(self._descriptor, self._reserved, end)
        self._reserved = end

    def complete(self) -> None:
        """Close the file and give it its name; OutputError if a failure is reported only now."""
        try:
            if self._reserved:
                # The file already has this length; the call frees the reserved space after its end.
                os.ftruncate(self._descriptor, self._written)
            if self._file is not None:
                self._file.finish(self._durable)
            elif self._owns_descriptor:
                self._close()
            else:
                # Closing a copy of the descriptor lets the file system report delayed errors.
                os.close(os.dup(self._descriptor))
        except OSError as error:
            self.abandon()
            raise self._failure("cannot be completed", error) from error
        except BaseException:
            # An interrupt may come when the file has a temporary name.
            self.abandon()
            raise

    def abandon(self) -> None:
        """Close the file, and remove it if it is an unfinished regular file."""
        if self._file is not None:
            self._file.abandon()
            return
        # Only the first failure, which led here, is reported.
        with suppress(OSError):
            self._close()

    def _close(self) -> None:
        if self._owns_descriptor:
            self._owns_descriptor = False
            os.close(self._descriptor)

    def _failure(self, what: str, error: OSError) -> OutputError:
        name = "standard output" if self.path == STANDARD_OUTPUT else self.path
        return OutputError(f"{what}: {error.strerror}", name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.complete()
        else:
            self.abandon()


def _descriptor_named(path: str) -> int | None:
    """Return the open descriptor that a path names, None if it names none."""
    if path == STANDARD_OUTPUT:
        return 1
    absolute = os.path.abspath(path)
    match = _DESCRIPTOR_PATH.fullmatch(absolute)
    return int(match[1]) if match else _DESCRIPTORS_BY_NAME.get(absolute)


def _allocate(descriptor: int, begin: int, end: int) -> bool:
    """Reserve disk space for a part of a file; return whether the system did.

    `os.posix_fallocate` is unsuitable: if the file system cannot reserve space, it writes to
    every block.
    """
    try:
        allocate = ctypes.CDLL(None).fallocate
    except (AttributeError, OSError):
        return False
    allocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return bool(allocate(descriptor, _KEEP_SIZE, begin, end - begin) == 0)
