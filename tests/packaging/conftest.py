"""The tools that the tests of packages and recipes need."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from helpers.requirements import do_without, program_of

SOURCE = "pip install 'mummergpu[packaging]'"


def program(name, source=SOURCE):
    """Return the path of a program, which may lie beside this Python."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else program_of(name, "PACKAGING", source)


def module(name):
    """Return a module; skip the test if it is not installed."""
    if importlib.util.find_spec(name) is None:
        do_without(f"{name} is not installed ({SOURCE})", "PACKAGING")
    return importlib.import_module(name)


@pytest.fixture(scope="session")
def hadolint():
    """The program that checks Dockerfiles."""
    return program("hadolint")


@pytest.fixture(scope="session")
def snakemake():
    """The program that runs workflows."""
    return program("snakemake", "pip install snakemake")


@pytest.fixture(scope="session")
def yaml():
    """The module that reads YAML."""
    return module("yaml")


@pytest.fixture(scope="session")
def build_tools():
    """The modules that build archives, and check what an index will show of them."""
    module("build")
    module("twine")


@pytest.fixture
def path_with_command(tmp_path_factory):
    """A search path with the command of this checkout before all others."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "mummergpu"
    modules = os.pathsep.join(path for path in sys.path if path)
    script.write_text(
        f"#!/bin/sh\nPYTHONPATH='{modules}' exec '{sys.executable}' -m mummergpu \"$@\"\n"
    )
    script.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
