"""Creates files without a name in the temporary folder, and reports their errors."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, cast

from mummergpu.errors import OutputError

_PREFIX: Final = "mummergpu-"


@contextmanager
def temporary_data(folder: str | None = None) -> Iterator[None]:
    """Raise an `OSError` of the ``with`` block as an `OutputError` that names the folder.

    None stands for the folder of the system.
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        hint = " (see TMPDIR)" if folder is None else ""
        message = f"temporary data cannot be kept: {reason[:1].lower() + reason[1:]}{hint}"
        raise OutputError(message, _folder() if folder is None else folder) from error


def open_temporary_file(folder: str | None = None) -> BinaryIO:
    """Create a temporary file without a name, to write and read; it is removed when it is closed.

    None stands for the folder of the system. `temporary_data` turns an `OSError` into a message.
    """
    return cast(BinaryIO, tempfile.TemporaryFile(prefix=_PREFIX, dir=folder))


def _folder() -> str:
    """Return the folder for temporary files; if none is usable, the one that was requested."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return os.environ.get("TMPDIR", "/tmp")
