"""How hard hypothesis tries, and one folder for all that it tries.

``HYPOTHESIS_PROFILE=thorough`` tries ten times as much.
"""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES = 150

for name, factor in (("quick", 1), ("thorough", 10)):
    settings.register_profile(
        name,
        max_examples=factor * EXAMPLES,
        deadline=None,
        # The first example compiles; others run under a loaded machine.
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="module")
def folder():
    """One folder for all examples: hypothesis and a folder for each test do not agree.

    It is in memory if it can be: thousands of small files that replace others keep a disk busy.
    """
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as path:
        yield Path(path)
