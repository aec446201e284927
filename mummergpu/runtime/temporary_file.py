"""Files without a name in the folder for temporary files, and what can go wrong with them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, cast

from mummergpu.errors import OutputError

_PREFIX: Final = "mummergpu-"


@contextmanager
def temporary_data() -> Iterator[None]:
    """Turn what can go wrong with a temporary file into an error that names its folder.

    Raises
    ------
    OutputError
        If the work inside raises an `OSError`, such as that of a full disk.
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        message = f"no room for temporary data: {reason[:1].lower() + reason[1:]} (see TMPDIR)"
        raise OutputError(message, _folder()) from error


def open_temporary_file() -> BinaryIO:
    """Create a temporary file without a name, which ends when it is closed.

    Returns
    -------
    file
        Open for writing and reading.

    Raises
    ------
    OSError
        If there is no folder that can take it; `temporary_data` puts that into words.
    """
    return cast(BinaryIO, tempfile.TemporaryFile(prefix=_PREFIX))


def _folder() -> str:
    """Return the folder for temporary files, or the one that was asked for if there is none."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return os.environ.get("TMPDIR", "/tmp")
