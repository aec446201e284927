"""One folder for all that hypothesis tries."""

import os
import tempfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder():
    """One folder for all examples: hypothesis and a folder for each test do not agree.

    It is in memory if it can be: thousands of small files that replace others keep a disk busy.
    """
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as path:
        yield Path(path)
