"""Kept machine code: never out of date, and never the reason why something fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import event

from mummergpu.runtime import jit
from mummergpu.runtime.cache_places import processor_code_places
from mummergpu.runtime.compiled import code_cache, compiler
from mummergpu.runtime.compiled.code_cache import keep_code_in, on_cache_trouble
from mummergpu.runtime.compiled.code_generation import PACKAGE
from mummergpu.runtime.compiled.compiler import announce_compilation
from mummergpu.runtime.compiled.native.store import native_stores
from mummergpu.sequence.codes import write_reverse_complements

DECORATORS = [jit.jit, jit.jit_without_refcounts]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """An empty folder for the code of this process."""
    keep_code_in((str(tmp_path / "kept"),))
    yield tmp_path / "kept"
    code_cache.process_store().close()
    keep_code_in(processor_code_places(os.environ))


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What is said about the cache."""
    lines: list[str] = []
    on_cache_trouble(lines.append)
    yield lines
    on_cache_trouble(lambda _: None)


def fresh(decorator: Callable[[Any], Any]) -> Any:
    """Return a dispatcher that knows nothing but what is on disk."""
    keep_code_in(code_cache._chosen_places[0])
    return decorator(write_reverse_complements.py_func).made()


def works(dispatcher: Any) -> bool:
    """Call a dispatcher; return whether it found its code on disk."""
    result = np.zeros(4, np.uint8)
    with event.install_recorder("numba:compile") as recorder:
        dispatcher(np.array([0, 1, 2, 2], np.uint8), np.array([0, 1, 4]), result)
    assert result.tolist() == [3, 1, 1, 2]
    return not recorder.buffer


def kept_files(place: Path) -> list[Path]:
    return sorted(place.rglob("*.code"))


def test_compiling_is_announced_once_and_after_some_time(place: Path) -> None:
    told: list[str] = []
    for name, seconds in (("soon", 0.0), ("later", 1e-9), ("never", 1e9)):
        announce_compilation(partial(told.append, name), seconds)
    assert not works(fresh(jit.jit)) and told[0] == "soon"
    assert not works(fresh(jit.jit_without_refcounts)) and told == ["soon", "later"]


def test_how_far_compiling_is_is_told_at_times(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, float]] = []
    begun: list[str] = []

    def go_on(functions: int, seconds: float) -> None:
        told.append((functions, seconds))

    monkeypatch.setattr(compiler, "TOLD_SECONDS", 1e-6)
    announce_compilation(partial(begun.append, "begun"), 0.0, go_on)
    for decorator in DECORATORS:
        assert not works(fresh(decorator))
    assert begun == ["begun"] and len(told) >= 1
    assert told == sorted(told) and told[-1][0] >= 1
    monkeypatch.setattr(compiler, "TOLD_SECONDS", 1e6)
    count = len(told)
    announce_compilation(lambda: None, 1e9, go_on)
    assert works(fresh(jit.jit)) and len(told) == count


@pytest.mark.parametrize("decorator", DECORATORS)
def test_code_is_compiled_once(place: Path, said: list[str], decorator: Any) -> None:
    assert [works(fresh(decorator)) for _ in range(3)] == [False, True, True]
    assert len(kept_files(place)) == 1 and said == []


def test_functions_that_count_references_are_told_from_those_that_do_not(place: Path) -> None:
    assert [works(fresh(decorator)) for decorator in DECORATORS] == [False, False]
    assert len(kept_files(place)) == 2


def test_damaged_code_is_compiled_anew(place: Path, said: list[str]) -> None:
    works(fresh(jit.jit_without_refcounts))
    (path,) = kept_files(place)
    sound = path.read_bytes()
    damaged = [b"", sound[:20], sound[: len(sound) // 2], sound[:-1], b"\x80\x05."]
    for position in range(3, len(sound), len(sound) // 20):
        copy = bytearray(sound)
        copy[position] ^= 1 << position % 8
        damaged.append(bytes(copy))
    assert len(damaged) > 20
    for content in damaged:
        path.write_bytes(content)
        said.clear()
        assert not works(fresh(jit.jit_without_refcounts))
        assert said == [f"compiled code is damaged in {place}"]
        assert works(fresh(jit.jit_without_refcounts))


def test_code_that_numba_cannot_use_is_compiled_anew(place: Path) -> None:
    """As of a numba that calls itself by the same version and is another."""
    dispatcher = fresh(jit.jit_without_refcounts)
    works(dispatcher)
    (path,) = kept_files(place)
    store = code_cache.process_store()
    for content in (b"no pickle", b"\x80\x04K\x01.", b"\x80\x04)."):
        store.save(bytes.fromhex(path.stem), content)
        assert not works(fresh(jit.jit_without_refcounts))


def test_a_place_that_is_none_stops_nothing(tmp_path: Path, place: Path, said: list[str]) -> None:
    (tmp_path / "file").touch()
    keep_code_in((str(tmp_path / "file" / "x"),))
    assert [works(fresh(jit.jit)) for _ in range(2)] == [False, False]
    assert len(said) == 2 and str(tmp_path / "file" / "x") in said[0]


def test_the_first_trouble_waits_for_a_listener() -> None:
    trouble = code_cache._Trouble()
    trouble.tell("one")
    lines: list[str] = []
    trouble.listen(lines.append)
    trouble.tell("two")
    assert lines == ["one"]
    # Other folders may have trouble of their own.
    trouble.forget()
    trouble.tell("three")
    assert lines == ["one", "three"]


def test_code_of_other_sources_than_those_on_disk_is_not_kept(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_cache, "digest_of_sources", lambda: "of an update meanwhile")
    assert not works(fresh(jit.jit))
    assert kept_files(place) == []


def test_without_sources_nothing_is_kept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_cache, "_SOURCES", None)
    assert [works(fresh(jit.jit)) for _ in range(2)] == [False, False]
    assert not place.exists()


def test_functions_from_elsewhere_are_not_kept(place: Path) -> None:
    """Their sources are no part of the generation's name."""

    def three() -> int:
        return 3

    assert jit.jit(three)() == 3
    assert not place.exists()


def run_child(program: str, cache: Path, *arguments: str) -> str:
    """Run a program beside a cache, which has the package of its folder, if there is one."""
    environment = {**os.environ, "MUMMERGPU_CACHE_DIR": str(cache)}
    environment["PYTHONPATH"] = os.pathsep.join([str(cache.parent), *sys.path])
    # Without files of byte code, for which size and time of a source tell its version.
    command = [sys.executable, "-B", "-c", program, *arguments]
    return subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=environment, cwd=cache.parent
    ).stdout


def test_a_change_in_an_inlined_function_of_another_file_is_seen(tmp_path: Path) -> None:
    package = tmp_path / "mummergpu"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    inner, outer = package / "sequence" / "inner.py", package / "sequence" / "outer.py"
    source = "from mummergpu.runtime.jit import {0}\n{1}\n\n@{0}\ndef f(x):\n    return {2}\n"
    outer.write_text(source.format("jit", "from mummergpu.sequence import inner", "inner.f(x)"))
    program = "from mummergpu.sequence.outer import f; print(f(20))"
    for expression, expected in [("x + 1", "21"), ("x + 2", "22"), ("x + 1", "21")]:
        inner.write_text(source.format("inline", "", expression))
        os.utime(inner, (1e9, 1e9))
        assert run_child(program, tmp_path / "cache").strip() == expected
    # The first and the last are one generation.
    place = "processor-native" if native_stores() else "processor"
    assert len(list((tmp_path / "cache" / place).iterdir())) == 2


TWICE = """
import numpy as np
from mummergpu.runtime import jit
from mummergpu.sequence.codes import write_reverse_complements
jit.on_first_compilation(lambda: None)
for decorator in (jit.jit, jit.jit_without_refcounts):
    for _ in range(2):
        result = np.zeros(4, np.uint8)
        offsets = np.array([0, 1, 4])
        kept = decorator(write_reverse_complements.py_func)
        kept(np.array([0, 1, 2, 2], np.uint8), offsets, result)
        print(*result, end="; ")
"""

EXPECTED = "3 1 1 2; " * 4


def test_processes_that_start_together_share_a_folder(tmp_path: Path) -> None:
    environment = {**os.environ, "MUMMERGPU_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", TWICE]
    children = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(3)
    ]
    assert [child.communicate()[0] for child in children] == [EXPECTED] * 3
    assert {child.returncode for child in children} == {0}
    names = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert not any("unfinished" in name for name in names)
    # Numba keeps nothing where code can be used without it.
    assert len(names) == 3


RENAMER = """
import importlib.machinery, re, sys
pattern, folder = re.compile(sys.argv[1]), sys.argv[2]
renamed = []

class Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, name):
        source = self.get_data(self.path).decode()
        if folder not in self.path or "cloudpickle" in self.path or not pattern.search(source):
            return super().get_code(name)
        renamed.append(name)
        return compile(pattern.sub("new_name", source), self.path, "exec")

class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        spec = super().find_spec(name, path, target)
        if spec and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = Loader(name, spec.origin)
        return spec

sys.meta_path.insert(0, Finder)
"""
"""Lets numba be imported with a name replaced in all of its sources."""

RENAMED = {
    "_cache": (r"(?<=self\.)_cache\b", "numba"),
    "_cache and enable_caching": (r"(?<=self\.)_cache\b|\benable_caching\b", "numba"),
    "_rebuild": (r"\b_rebuild\b", "numba"),
    "_reduce": (r"\b_reduce\b", "numba"),
    "dumps": (r"(?<![\w.])dumps\b|(?<=serialize\.)dumps\b", "numba"),
    "CompileResult": (r"\bCompileResult\b", "numba"),
    "has_dynamic_globals": (r"\bhas_dynamic_globals\b", "numba"),
    "rtsys": (r"\brtsys\b", "numba"),
    "_nrt": (r"\b_nrt\b", "numba"),
    "CPUTargetOptions": (r"\bCPUTargetOptions\b", "numba"),
    "event.register": (r"(?<![\w.])register(?=\()", "core/event"),
    "map_layout": (r"\bmap_layout\b", "numba"),
    "config.CACHE_DIR and _rebuild": (r"\b_rebuild\b|\bCACHE_DIR\b", "numba"),
}
"""What is private to numba: how it reads in the sources, and in which of them."""


LOADED_IN_A_SECOND_PROCESS = {"_cache", "_rebuild", "rtsys", "_nrt"}
"""Where a process that compiles nothing goes another way; elsewhere one process tells all."""


@pytest.mark.slow
@pytest.mark.parametrize("name", RENAMED)
def test_a_private_of_numba_that_has_another_name_costs_time_only(
    name: str, tmp_path: Path
) -> None:
    pattern, folder = RENAMED[name]
    program = f"{RENAMER}\n{TWICE}\nassert renamed"
    for _ in range(1 + (name in LOADED_IN_A_SECOND_PROCESS)):
        assert run_child(program, tmp_path, pattern, f"/{folder}") == EXPECTED


def test_numba_keeps_the_code_where_this_program_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the folder of the generation, so that it is never out of date either."""
    # With a setting of numba, no code is called without it.
    monkeypatch.setenv("NUMBA_OPT", "3")
    pattern, folder = RENAMED["_rebuild"]
    run_child(RENAMER + TWICE, tmp_path, pattern, f"/{folder}")
    (generation,) = (tmp_path / "processor").iterdir()
    files = sorted(path.suffix for path in generation.rglob("*.nb*"))
    assert files == [".nbc", ".nbi"]
    for path in generation.rglob("*.nb*"):
        path.write_bytes(path.read_bytes()[:10])
    assert run_child(RENAMER + TWICE, tmp_path, pattern, f"/{folder}") == EXPECTED
