"""The tools that the tests of packages and recipes need."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

REQUIRE_PACKAGING = "MUMMERGPU_REQUIRE_PACKAGING"
"""Set to 1 where a missing tool must fail the tests of packages and recipes."""

INSTALL = "pip install 'mummergpu[packaging]'"


def do_without(tool: str) -> None:
    """Skip the test, or fail it where that is asked for."""
    reason = f"{tool} is not installed ({INSTALL})"
    if os.environ.get(REQUIRE_PACKAGING) == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def program(name: str) -> str:
    """Return the path of a program, which may lie beside this Python."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        do_without(name)
    assert found is not None
    return found


def module(name: str) -> Any:
    """Return a module; skip the test if it is not installed."""
    if importlib.util.find_spec(name) is None:
        do_without(name)
    return importlib.import_module(name)


@pytest.fixture(scope="session")
def hadolint() -> str:
    """The program that checks Dockerfiles."""
    return program("hadolint")


@pytest.fixture(scope="session")
def snakemake() -> str:
    """The program that runs workflows."""
    return program("snakemake")


@pytest.fixture(scope="session")
def yaml() -> Any:
    """The module that reads YAML."""
    return module("yaml")


@pytest.fixture(scope="session")
def build_tools() -> None:
    """The modules that build archives, and check what an index will show of them."""
    module("build")
    module("twine")


@pytest.fixture
def path_with_command(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A search path with the command of this checkout before all others."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "mummergpu"
    modules = os.pathsep.join(path for path in sys.path if path)
    script.write_text(
        f"#!/bin/sh\nPYTHONPATH='{modules}' exec '{sys.executable}' -m mummergpu \"$@\"\n"
    )
    script.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
