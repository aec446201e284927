"""Finds and reads the source of the kernels.

The files lie inside the package if it was installed from a wheel. They lie beside the package
in a checkout, which an editable install uses.
"""

from __future__ import annotations

import os
from pathlib import Path

from mummergpu.errors import BackendError


def source_folder() -> Path:
    """Return the folder of the kernels' source, in the installed package or beside it."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "kernels"
    return installed if installed.is_dir() else package.parent / "kernels"


def read_sources(folder: Path | None = None) -> dict[str, str]:
    """Return the text of every source file of the kernels by its path, in alphabetical order.

    The folder has one for each engine; by default it is `source_folder`. `BackendError` says that
    they cannot be read.
    """
    folder = source_folder() if folder is None else folder

    def refuse(error: OSError) -> None:
        raise error

    try:
        paths = [
            Path(parent, name)
            for parent, _, names in os.walk(folder, onerror=refuse)
            for name in names
            if name.endswith((".cu", ".cuh"))
        ]
        found = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}
    except OSError as error:
        message = f"the kernels' source cannot be read: {folder}: {error.strerror}"
        raise BackendError("cuda", message) from error
    return dict(sorted(found.items()))
