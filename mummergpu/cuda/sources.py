"""Where the kernels' source is, and its text.

The files lie inside the package where it was installed from a wheel, and beside the
package in a checkout (or an editable install, which is one).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import mummergpu
from mummergpu.errors import BackendError

PROGRAM_FILE: Final = "program.cu"
"""What is compiled; it includes all other files by their names."""


def source_folder() -> Path:
    """Return the folder of the kernels' source.

    Returns
    -------
    Path
        Inside the installed package, or beside it in a checkout.
    """
    package = Path(mummergpu.__file__).resolve().parent
    installed = package / "kernels"
    return installed if installed.is_dir() else package.parent / "kernels"


def read_sources(folder: Path | None = None) -> dict[str, str]:
    """Return the text of every source file of the kernels.

    Parameters
    ----------
    folder : Path, optional
        Where they are; by default `source_folder`.

    Returns
    -------
    dict of str to str
        By file name, in alphabetical order; `PROGRAM_FILE` is among them.

    Raises
    ------
    BackendError
        If they cannot be read, or `PROGRAM_FILE` is not among them.
    """
    folder = source_folder() if folder is None else folder
    try:
        paths = [path for path in folder.iterdir() if path.suffix in (".cu", ".cuh")]
        sources = {path.name: path.read_text("utf-8") for path in sorted(paths)}
    except OSError as error:
        message = f"the kernels' source cannot be read: {folder}: {error.strerror}"
        raise BackendError("cuda", message) from error
    if PROGRAM_FILE not in sources:
        raise BackendError(
            "cuda", f"the kernels' source is not complete: no {PROGRAM_FILE} in {folder}"
        )
    return sources
