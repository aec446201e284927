"""What tests share: the real data beside the checkout, and MUMmer's own program."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
"""Real genomes and reads; they lie beside a checkout, never in it."""

REQUIRE_MUMMER = "MUMMERGPU_REQUIRE_MUMMER"
"""Set to 1 where a missing ``mummer`` must fail the tests that need it."""


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real genomes and reads; skips where there is none."""
    if not SHARED_DATA.is_dir():
        pytest.skip("there is no ../shared/data beside this checkout")
    return SHARED_DATA


@pytest.fixture(scope="session")
def mummer_binary() -> str:
    """The path of MUMmer 3.23's ``mummer``, the program to agree with.

    Without it the test is skipped, or fails where `REQUIRE_MUMMER` is set to 1.
    """
    path = shutil.which("mummer")
    if path is not None:
        return path
    reason = "mummer is not installed (Debian: apt-get install mummer)"
    if os.environ.get(REQUIRE_MUMMER) == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def pytest_configure() -> None:
    """Forget compiled code that is older than any source of the package.

    Numba compiles a function anew when its own file has changed, but not when a function
    that it inlines has changed in another file; the tests would run yesterday's code.
    """
    found = importlib.util.find_spec("mummergpu")
    assert found is not None and found.origin is not None
    package = Path(found.origin).parent
    newest = max(path.stat().st_mtime for path in package.rglob("*.py"))
    for path in package.rglob("*.nb[ic]"):
        if path.stat().st_mtime < newest:
            path.unlink(missing_ok=True)
