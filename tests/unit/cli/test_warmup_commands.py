"""A warm-up runs every function that is compiled."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mummergpu.cli.main import main

PROGRAM = """
import importlib, pkgutil, sys, tempfile
from pathlib import Path
from mummergpu.runtime.compiled.native import function

made = []
initialize = function.NativeFunction.__init__

def remember(self, *arguments):
    initialize(self, *arguments)
    made.append(self)

function.NativeFunction.__init__ = remember
import mummergpu
for module in pkgutil.walk_packages(mummergpu.__path__, "mummergpu."):
    if module.name not in sys.argv[1:]:
        importlib.import_module(module.name)
from mummergpu.cli.main import commands
from mummergpu.cli.warmup_commands import run_parts

with tempfile.TemporaryDirectory() as folder:
    run_parts(commands, Path(folder))
assert len(made) > 30
compiled = set()

def note(function):
    if function in compiled:
        return
    compiled.add(function)
    for name in function.__code__.co_names:
        called = function.__globals__.get(name)
        inner = getattr(called, "function", None) or getattr(called, "py_func", None)
        if inner is not None:
            note(inner)

for one in made:
    if one._callers or (one._made is not None and one._made.overloads):
        note(one.function)
for one in made:
    if one.function not in compiled:
        print(one.function.__module__, one.function.__qualname__)

from mummergpu.cli.compiled_list import entries
listed = {one.listed[:3] for one in entries()}
for one in made:
    for types in one._callers:
        if (one.function.__module__, one.function.__qualname__, types) not in listed:
            print(one.function.__module__, one.function.__qualname__, types, "is not listed")
"""
"""Prints the functions that were not compiled, or are not listed, except in modules that are not
imported. What a compiled function calls is compiled with it, also if its code has been kept from an
earlier run."""

NEED_LIBRARIES = ("mummergpu.__main__", "mummergpu.cuda.pycuda_device")


@pytest.mark.timeout(900)
def test_every_compiled_function_is_run() -> None:
    """If this fails, `cli/warmup_commands.py` lacks a command that uses the new function.

    Where it says that something is not listed, run packaging/list_compiled.py.
    """
    command = [sys.executable, "-c", PROGRAM, *NEED_LIBRARIES]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_processor_that_is_unknown_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warmup", "--cpu", "pentium"]) == 2
    assert "pentium" in capsys.readouterr().err
