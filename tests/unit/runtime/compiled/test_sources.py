"""An image is named by the sources that its code depends on, and by no others."""

import importlib
import math
import os
import subprocess
import sys

import pytest

from mummergpu.runtime.compiled import sources
from mummergpu.runtime.compiled.sources import digest_of_function, digest_of_sources

MODULES = {
    "__init__": "",
    "numbers": "WIDTH = 32\nNAMES = frozenset('abc')\nUNUSED = 1\n",
    "bundle": "from typing import NamedTuple\nclass Pair(NamedTuple):\n    a: int\n    b: int\n",
    "callee": """
from mummergpu.runtime.jit import inline
from small import numbers
from small.numbers import NAMES
from small.square import Square
from small.step import step
STEPS = {"first": [step]}
@inline
def doubled(number):
    return 2 * number + numbers.WIDTH + len(NAMES) + len(STEPS) + Square().area
""",
    "root": """
from mummergpu.runtime.jit import jit
from small.callee import doubled
from small.page import TITLE
@jit
def root(pair):
    return doubled(pair.a)
""",
    "shape": "class Shape:\n    @property\n    def area(self):\n        return 7\n",
    "square": "from small.shape import Shape\nclass Square(Shape):\n    pass\n",
    "step": "def step():\n    return 5\n",
    "page": "TITLE = 'a page'\n",
}
EDITS = {
    "a constant": ("numbers", "32", "33", True),
    "a set": ("numbers", "'abc'", "'abd'", True),
    "a constant that no code names": ("numbers", "UNUSED = 1", "UNUSED = 2", False),
    "a function that is called": ("callee", "2 *", "3 *", True),
    "a base of a class": ("shape", "7", "8", True),
    "a function in a table": ("step", "5", "6", True),
    "a bundle of the arguments": ("bundle", "a: int\n    b", "b: int\n    a", True),
    "the module itself": ("root", "pair.a", "pair.b", True),
    "a page that the module imports": ("page", "a page", "another page", False),
}


@pytest.fixture
def digest(tmp_path, monkeypatch):
    """Returns the digest of `root`, of modules as they are then."""
    package = tmp_path / "small"
    package.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sources, "PACKAGE", str(package))
    monkeypatch.setattr(sources, "_NAME", "small")
    monkeypatch.setattr(sources, "_CLASS", sources.re.compile(r"(small[\w.]*)\.\w+\("))
    monkeypatch.setattr(sources, "_BEGIN", math.inf)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def forget():
        for name in [name for name in sys.modules if name.split(".")[0] == "small"]:
            del sys.modules[name]
        sources._direct.cache_clear()
        sources._digest_of_text.cache_clear()
        importlib.invalidate_caches()

    def digest_of(modules, begin=math.inf):
        forget()
        monkeypatch.setattr(sources, "_BEGIN", begin)
        for name, text in modules.items():
            (package / f"{name}.py").write_text(text)
        importlib.import_module("small.bundle")
        root = importlib.import_module("small.root").root
        return digest_of_function(root.function, "(small.bundle.Pair(ii))")

    yield digest_of
    forget()


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_seen_where_code_can_reach_it(digest, edit):
    module, before, after, is_seen = EDITS[edit]
    assert MODULES[module].count(before) == 1
    first = digest(MODULES)
    assert first is not None and digest(MODULES) == first
    edited = {**MODULES, module: MODULES[module].replace(before, after)}
    assert (digest(edited) != first) == is_seen


def test_sources_that_changed_since_the_process_began_have_no_digest(digest):
    assert digest(MODULES, begin=0) is None


def test_digests_are_the_same_in_each_process():
    """Of all compiled functions: their images would never be found again."""
    program = """
import importlib, pkgutil
import mummergpu
from mummergpu.runtime.compiled.lazy_dispatch import LazyFunction
from mummergpu.runtime.compiled.sources import digest_of_function
for room in ("mapping", "matching", "viterbi", "hmm", "index", "input", "output", "sequence"):
    package = importlib.import_module(f"mummergpu.{room}")
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if type(value) is LazyFunction and value.function.__closure__ is None:
                print(module.name, name, digest_of_function(value.function).hex())
"""
    first, second = (
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    )
    assert first == second and first.count("\n") > 500


@pytest.fixture
def package(tmp_path):
    (tmp_path / "room").mkdir()
    (tmp_path / "a.py").write_text("WIDTH = 32\n")
    (tmp_path / "room" / "b.py").write_text("x = 1\n")
    return tmp_path


def test_sources_that_stay_have_the_same_digest(package):
    before = digest_of_sources(str(package))
    assert before is not None and len(before) == 32
    (package / "room" / "__pycache__").mkdir()
    (package / "room" / "__pycache__" / "b.py").write_text("not a source")
    (package / "README.md").write_text("nor is this")
    os.utime(package / "a.py", (1, 1))
    assert digest_of_sources(str(package)) == before


def test_every_change_of_sources_is_seen(package):
    path = package / "room" / "b.py"
    digests, found = [digest_of_sources(str(package))], path.stat()
    # Size and time stay.
    path.write_text("x = 2\n")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert path.stat().st_size == found.st_size
    digests.append(digest_of_sources(str(package)))
    (package / "c.py").touch()
    digests.append(digest_of_sources(str(package)))
    (package / "c.py").rename(package / "d.py")
    digests.append(digest_of_sources(str(package)))
    (package / "d.py").rename(package / "room" / "d.py")
    digests.append(digest_of_sources(str(package)))
    # What goes from the end of a file to the beginning of the next.
    (package / "a.py").write_text("WIDTH = 32")
    path.write_text("\nx = 2\n")
    digests.append(digest_of_sources(str(package)))
    assert len(set(digests)) == len(digests)


def test_some_sources_are_files_and_folders(package):
    places = str(package / "a.py"), str(package / "room")
    digests = [digest_of_sources(*places), digest_of_sources(*places[:1])]
    (package / "c.py").touch()
    assert digest_of_sources(*places) == digests[0]
    for path in (package / "a.py", package / "room" / "b.py"):
        path.write_text("x = 3\n")
        digests.append(digest_of_sources(*places))
    assert len(set(digests)) == len(digests) and None not in digests


def test_sources_that_are_not_there_have_no_digest(tmp_path):
    assert digest_of_sources(str(tmp_path / "none")) is None
    assert digest_of_sources(str(tmp_path)) is None
    (tmp_path / "a.py").symlink_to("nowhere")
    assert digest_of_sources(str(tmp_path)) is None
