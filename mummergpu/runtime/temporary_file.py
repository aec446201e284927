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
    """Raise errors with a temporary file as an error that names its folder.

    Parameters
    ----------
    folder : str or None
        The folder, None for that of the system.

    Raises
    ------
    OutputError
        If the ``with`` block raises an `OSError`, for example because the disk is full.
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        hint = " (see TMPDIR)" if folder is None else ""
        message = f"no room for temporary data: {reason[:1].lower() + reason[1:]}{hint}"
        raise OutputError(message, _folder() if folder is None else folder) from error


def open_temporary_file(folder: str | None = None) -> BinaryIO:
    """Create a temporary file without a name; it is removed when it is closed.

    Parameters
    ----------
    folder : str or None
        The folder to create it in, None for that of the system.

    Returns
    -------
    file
        Open for writing and reading.

    Raises
    ------
    OSError
        If no folder can hold it; `temporary_data` turns this into a message.
    """
    return cast(BinaryIO, tempfile.TemporaryFile(prefix=_PREFIX, dir=folder))


def _folder() -> str:
    """Return the folder for temporary files; if none is usable, the one that was requested."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return os.environ.get("TMPDIR", "/tmp")
