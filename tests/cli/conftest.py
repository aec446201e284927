"""A working folder with files for sweeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.sweep_command import write_files


@pytest.fixture(scope="module")
def sweep_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the files of `write_files`."""
    folder = tmp_path_factory.mktemp("made")
    write_files(folder)
    return folder


@pytest.fixture
def inside_sweep_files(sweep_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sweep_files)
