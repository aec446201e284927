"""Finds the cache folders on disk from the environment variables.

The environment is a parameter of each function, so that tests can pass any environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

CACHE_VARIABLE: Final = "MUMMERGPU_CACHE_DIR"

_NAME: Final = "mummergpu"

PROCESSOR_CODE: Final = "processor"
"""The folder of code for processors in such a place."""


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """Return the folder for all data that is kept between runs, which need not exist yet.

    ``MUMMERGPU_CACHE_DIR`` names it. Otherwise it is ``mummergpu`` in ``XDG_CACHE_HOME``, or in
    ``~/.cache``; None if there is no home folder either. An empty variable counts as unset.
    """
    chosen = environment.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    caches = environment.get("XDG_CACHE_HOME", "")
    # The XDG standard says that a relative path must be ignored.
    if not os.path.isabs(caches):
        caches = os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".cache")
    return Path(caches, _NAME) if os.path.isabs(caches) else None


def processor_code_places(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders that may keep code for this processor, the best first.

    A folder that the user chose is the only one. Otherwise a folder of this user in the
    temporary directory comes after the usual one, because a home folder can be read-only.
    """
    usual = cache_folder(environment)
    places = [] if usual is None else [str(usual)]
    if not environment.get(CACHE_VARIABLE):
        temporary = os.path.abspath(environment.get("TMPDIR") or "/tmp")
        places.append(os.path.join(temporary, f"{_NAME}-{os.geteuid()}"))
    return tuple(os.path.join(place, PROCESSOR_CODE) for place in places)


def folder_of_compiled_code(environment: Mapping[str, str]) -> Path:
    """Return the folder that keeps new code for this processor, which may not exist yet.

    It is the first of the possible ones that can be written to; if none can, the first.
    """
    places = processor_code_places(environment)
    return Path(next(filter(can_be_written, places), places[0]))


def can_be_written(folder: str) -> bool:
    """Return whether this user can create files in a folder, or the folder itself."""
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
