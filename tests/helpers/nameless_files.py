"""File systems on which a new file has no name at first, and those on which it must have one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

WAYS = ("nameless", "named")
"""How a new file can be kept from being seen before it is complete."""


def can_be_nameless(folder: Path) -> bool:
    """Tell whether the file system of a folder has files without a name."""
    try:
        os.close(os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o600))
    except OSError:
        return False
    return True


def take_way(way: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let new files be made in one of `WAYS` for the rest of the test.

    Skips the test where the file system of `folder` cannot have files without a name.
    """
    if way == "nameless":
        if not can_be_nameless(folder):
            pytest.skip(f"the file system of {folder} has no files without a name")
        return
    really_open = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), path)
        return really_open(path, flags, mode, **more)

    monkeypatch.setattr(os, "open", refuse)
