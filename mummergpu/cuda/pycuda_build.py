"""Tells whether PyCUDA, which has no wheels, can be compiled on this machine."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_COMPILERS: Final = ("g++", "c++", "clang++")
_SYSTEM_FOLDERS: Final = ("/usr/include", "/usr/local/include")
_FOLDER_VARIABLES: Final = ("CPATH", "CPLUS_INCLUDE_PATH")


def can_build_pycuda(environment: Mapping[str, str], folder_of_python: str | None = None) -> bool:
    """Return whether this machine seems to have all that PyCUDA is compiled with.

    That is a C++ compiler, and the headers of CUDA and of Python, where the installation of
    PyCUDA or the compiler looks for them.
    """
    path = environment.get("PATH", os.defpath)
    if not any(shutil.which(compiler, path=path) for compiler in _COMPILERS):
        return False
    of_python = sysconfig.get_path("include") if folder_of_python is None else folder_of_python
    if not Path(of_python, "Python.h").is_file():
        return False
    folders = _header_folders(environment, path)
    return any(folder.joinpath("cuda.h").is_file() for folder in folders)


def _header_folders(environment: Mapping[str, str], path: str) -> Iterator[Path]:
    """Yield the folders in which the headers of CUDA are looked for."""
    # The installation of PyCUDA looks beside the compiler of CUDA.
    if nvcc := shutil.which("nvcc", path=path):
        yield Path(nvcc).parents[1] / "include"
    for variable in _FOLDER_VARIABLES:
        for folder in environment.get(variable, "").split(os.pathsep):
            if folder:
                yield Path(folder)
    yield from map(Path, _SYSTEM_FOLDERS)
