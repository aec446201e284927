"""A kept library is taken if, and only if, compiling again would give the same."""

import ctypes
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers import host_libraries
from helpers.host_libraries import host_compiler, library_of, prune

OPTIONS = ["-shared", "-fPIC", "-DMORE=1"]


@pytest.fixture
def sources(tmp_path):
    if shutil.which(host_compiler()) is None:
        pytest.skip("there is no compiler")
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "number.h").write_text("#define NUMBER 41\n")
    main = '#include "number.h"\nextern "C" int number() { return NUMBER + MORE; }\n'
    (tmp_path / "main.cpp").write_text(main)
    (tmp_path / "kept").mkdir()
    return tmp_path


def made(sources, options=OPTIONS):
    folder, headers = sources / "kept", sources / "headers"
    return library_of(folder, "number", sources / "main.cpp", [headers], options)


def number_of(library):
    return int(ctypes.CDLL(str(library)).number())


def test_a_library_is_compiled_once(sources, monkeypatch):
    library = made(sources)
    assert number_of(library) == 42
    os.utime(library, (1, 1))
    with monkeypatch.context() as no_compiler:
        no_compiler.setattr(host_libraries.subprocess, "run", None)
        assert made(sources) == library
    assert time.time() - library.stat().st_mtime < 1000, "it counts as used"
    assert list((sources / "kept").iterdir()) == [library]


def test_whatever_counts_makes_another_library(sources, monkeypatch):
    before = {made(sources)}
    library = made(sources, [*OPTIONS[:2], "-DMORE=2"])
    assert library not in before and number_of(library) == 43
    before.add(library)
    (sources / "headers" / "number.h").write_text("#define NUMBER 1\n")
    library = made(sources)
    assert library not in before and number_of(library) == 2
    before.add(library)
    (sources / "headers" / "more.h").write_text("")
    assert made(sources) not in before
    before.add(made(sources))
    monkeypatch.setattr(host_libraries, "_version_of", lambda compiler: b"another")
    assert made(sources) not in before


def test_what_does_not_compile_leaves_nothing(sources):
    (sources / "headers" / "number.h").write_text("")
    with pytest.raises(AssertionError, match="NUMBER"):
        made(sources)
    assert list((sources / "kept").iterdir()) == []


def test_several_may_compile_the_same(sources):
    with ThreadPoolExecutor(4) as pool:
        libraries = set(pool.map(lambda _: made(sources), range(4)))
    assert list((sources / "kept").iterdir()) == list(libraries)


def test_the_libraries_of_long_ago_are_removed(tmp_path):
    now = time.time()
    for age in (0, 100, 5000, 6000, 7000, 8000):
        file = tmp_path / f"{age}.so"
        file.write_bytes(bytes(100))
        os.utime(file, (now - age, now - age))
    prune(tmp_path, 300)
    assert {file.stem for file in tmp_path.iterdir()} == {"0", "100", "5000"}
    prune(tmp_path, 0)
    assert {file.stem for file in tmp_path.iterdir()} == {"0", "100"}, "they may be in use"
