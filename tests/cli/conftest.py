"""A working folder with files for sweeps."""

import pytest
from helpers.sweep_command import write_files


@pytest.fixture(scope="module")
def sweep_files(tmp_path_factory):
    """The folder of the files of `write_files`."""
    folder = tmp_path_factory.mktemp("made")
    write_files(folder)
    return folder


@pytest.fixture
def inside_sweep_files(sweep_files, monkeypatch):
    monkeypatch.chdir(sweep_files)
