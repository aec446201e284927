"""Images are called without numba, and numba takes over wherever there can be none."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numba
import numpy as np
import pytest
from helpers.children import printed_by
from helpers.loops import each

from mummergpu.mapping.options import Limits
from mummergpu.runtime.cache_dir import processor_code_places
from mummergpu.runtime.compiled import announcement, compiler, image, lazy_dispatch, store
from mummergpu.runtime.compiled.announcement import Compilation
from mummergpu.runtime.compiled.lazy_dispatch import LazyFunction
from mummergpu.runtime.compiled.levels import usable_levels
from mummergpu.runtime.compiled.sources import PACKAGE
from mummergpu.runtime.compiled.store import SUFFIX, keep_code_in, on_cache_trouble
from mummergpu.runtime.jit import flattened, jit
from mummergpu.sequence.codes import write_reverse_complements
from mummergpu.sequence.mems import MemRows

needs_images = pytest.mark.skipif(not usable_levels(), reason="there are no images here")

PLAIN = write_reverse_complements.py_func


@pytest.fixture
def place(tmp_path):
    """An empty folder for the code of this process."""
    keep_code_in((str(tmp_path / "kept"),))
    yield tmp_path / "kept"
    keep_code_in(processor_code_places(os.environ))


@pytest.fixture
def said():
    """What is said about the folder of code."""
    lines = []
    on_cache_trouble(lines.append)
    yield lines
    on_cache_trouble(lambda _: None)


def fresh():
    """Return a function that knows nothing but what is on disk."""
    keep_code_in(store.code_places())
    return LazyFunction(PLAIN, inlined=False)


def works(function):
    result = np.zeros(4, np.uint8)
    function(np.array([0, 1, 2, 2], np.uint8), np.array([0, 1, 4]), result)
    return result.tolist() == [3, 1, 1, 2]


def needs_numba(function, monkeypatch):
    """Return whether a call compiles an image, or asks numba for a dispatcher."""
    calls = []
    compile_now = function._compiled

    def note(types, count):
        calls.append(types)
        return compile_now(types, count)

    with monkeypatch.context() as changed:
        changed.setattr(function, "_compiled", note)
        assert works(function)
    return bool(calls) or function._made is not None


def kept(place):
    (path,) = place.rglob("*.code")
    return path


@needs_images
def test_numba_is_needed_once(place, said, monkeypatch):
    assert [needs_numba(fresh(), monkeypatch) for _ in range(3)] == [True, False, False]
    assert kept(place) and said == []


@needs_images
def test_damaged_code_is_made_anew(place, said, monkeypatch):
    needs_numba(fresh(), monkeypatch)
    path = kept(place)
    sound = path.read_bytes()
    damaged = [b"", sound[:40], sound[:-1]]
    for position in range(3, len(sound), len(sound) // 10):
        copy = bytearray(sound)
        copy[position] ^= 1 << position % 8
        damaged.append(bytes(copy))
    for content in damaged:
        path.write_bytes(content)
        said.clear()
        assert needs_numba(fresh(), monkeypatch)
        assert said == [f"compiled code is damaged in {place}"]
        assert path.read_bytes() == sound
        assert not needs_numba(fresh(), monkeypatch)


@needs_images
def test_code_for_another_loader_is_left_to_numba(place, monkeypatch):
    """The content is what was written, and yet nothing can be made of it."""
    needs_numba(fresh(), monkeypatch)
    key = bytes.fromhex(kept(place).stem)
    unknown = (
        b'{"entry": 0, "addresses": [], "symbols": [[0, "no_such"]], "result": "-"}\n' + bytes(8)
    )
    for content in (b"", b"text", b"{}\nx", unknown):
        store.process_store().save(key, content)
        assert needs_numba(fresh(), monkeypatch)


@needs_images
def test_memory_that_cannot_be_executed_is_left_to_numba(place, monkeypatch):
    needs_numba(fresh(), monkeypatch)
    monkeypatch.setattr(image, "_READ_AND_EXECUTE", -1)
    assert needs_numba(fresh(), monkeypatch)


@needs_images
@pytest.mark.parametrize("name", ["can_defer", "_object_of"])
def test_a_numba_that_differs_inside_is_left_to_itself(name, place, monkeypatch):
    calls = 0

    def fail(*_):
        nonlocal calls
        calls += 1
        if name == "can_defer":
            return False
        raise AttributeError("another version")

    monkeypatch.setattr(compiler, name, fail)
    assert all(needs_numba(fresh(), monkeypatch) for _ in range(2))
    if name == "_object_of":
        assert calls == 1
        monkeypatch.setattr(numba, "__version__", "99.0")
        assert needs_numba(fresh(), monkeypatch) and calls == 2
    # Its own cache lies in the folder of the generation.
    assert [path.suffix for path in sorted(place.rglob("*.nb*"))] == [".nbc", ".nbi"]
    for path in place.rglob("*.nb*"):
        path.write_bytes(path.read_bytes()[:10])
    assert needs_numba(fresh(), monkeypatch)


@needs_images
def test_other_types_and_names_are_left_to_numba(place, monkeypatch):
    needs_numba(fresh(), monkeypatch)
    function = fresh()
    assert not needs_numba(function, monkeypatch)
    codes, offsets = np.array([0, 1, 2, 2], np.uint8), np.array([0, 1, 4])
    function._made = lambda *given, **named: len(given) + len(named)
    result = np.zeros(4, np.uint8)
    read_only = codes.copy()
    read_only.flags.writeable = False
    calls = [
        function(read_only, offsets, result),
        function(codes[::-1], offsets, result),
        function(codes, offsets, result=result),
        function(codes, offsets, None),
    ]
    assert calls == [3] * 4 and not result.any()
    assert function(codes, offsets, result) is None and result.any()


@needs_images
def test_threads_share_a_function(place, monkeypatch):
    for is_kept in (False, True):
        function = fresh()
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(works, [function] * 1000)), is_kept
        assert function._made is None and len(function._images) == 1


def test_a_place_that_is_none_stops_nothing(tmp_path, place, said, monkeypatch):
    (tmp_path / "file").touch()
    keep_code_in((str(tmp_path / "file" / "x"),))
    assert all(needs_numba(fresh(), monkeypatch) for _ in range(2))
    assert all(str(tmp_path / "file" / "x") in line for line in said)


@needs_images
def test_code_of_other_sources_than_those_on_disk_is_not_kept(place, monkeypatch):
    monkeypatch.setattr(lazy_dispatch, "digest_of_function", lambda *_: None)
    assert works(fresh())
    assert not list(place.rglob("*.*"))


def test_without_sources_nothing_is_kept(place, monkeypatch):
    monkeypatch.setattr(store, "_COMPILATION", None)
    assert all(needs_numba(fresh(), monkeypatch) for _ in range(2))
    assert not place.exists()


def test_functions_from_elsewhere_are_not_kept(place):
    """Their sources are no part of the generation's name."""

    @jit
    def three():
        return 3

    assert three() == 3
    assert not list(place.rglob("*.*"))


@needs_images
@pytest.mark.parametrize("setting", ["BOUNDSCHECK", "DEBUGINFO_DEFAULT"])
def test_code_of_other_settings_is_not_kept(setting, place, monkeypatch):
    with monkeypatch.context() as changed:
        changed.setattr(numba.config, setting, 1)
        assert works(fresh())
    assert not [path for path in place.rglob("*") if path.is_file()]


def test_compiling_is_announced_once_and_after_some_time(monkeypatch):
    now = 0.0
    monkeypatch.setattr(announcement, "perf_counter", lambda: now)
    told = []
    compilation = Compilation()
    for name, after in (("soon", 0.0), ("later", 1.0), ("never", 1e9)):
        compilation.on_first(partial(told.append, name), after)
    compilation.on_first(lambda: None, go_on=lambda *facts: told.append(facts))
    for _ in range(5):
        compilation.begin()
        now += 6.0
        compilation.end()
        # Time between two functions is none of compiling.
        now += 100
    assert told == ["soon", "later", (2, 12.0), (4, 24.0)]


def compiled(function):
    """Return a function that is called as an image; another one is an error."""
    lazy = LazyFunction(function, inlined=False)
    lazy._dispatcher_of = lazy._make = None
    return lazy


def refuse(number):
    if number < 0:
        raise ValueError("negative", 7)
    return number + 1


def pick(tables, which, at):
    return tables[which][at]


def test_exceptions_are_those_of_the_function():
    call = compiled(refuse)
    assert call(4) == 5
    with pytest.raises(ValueError) as caught:
        call(-1)
    assert caught.value.args == ("negative", 7)


def test_errors_that_numba_finds_are_raised():
    tables = (np.arange(3), np.arange(5, 9))
    call = compiled(pick)
    assert (call(tables, 1, 2), call(tables, 0, 2)) == (7, 2)
    with pytest.raises(IndexError):
        call(tables, 2, 0)


def test_an_exception_that_cannot_be_read_is_an_error_all_the_same():
    assert isinstance(image._exception(None), SystemError)


def both(numbers, flag, pair):
    return flag == (numbers[1, 1] + pair[0] > pair[1][0])


def test_arguments_are_passed_as_numba_passes_them():
    numbers, floats = np.arange(6, dtype=np.int16).reshape(2, 3), np.array([9.5])
    call = compiled(both)
    for flag in (True, False):
        for number in (3, 5, 6, np.int64(6)):
            expected = both(numbers, flag, (number, floats))
            assert call(numbers, np.bool_(flag), (number, floats)) is bool(expected)


def width(rows, limits):
    last = limits[0].margin if limits[1] else limits[0].min_score
    return rows.lengths[last] - rows.query_starts[0]


def test_bundles_are_passed_by_their_names(place):
    rows = MemRows(np.arange(5), np.arange(5), np.arange(10, 15))
    call = compiled(width)
    for is_most in (False, True):
        limits = (Limits(1, 3, 2), is_most)
        for given in (rows, flattened(rows)):
            assert call(given, limits) == width(rows, limits)
    # Arrays may change between two calls.
    kept_rows = flattened(rows)
    rows.lengths[3] = 1000
    assert call(kept_rows, (Limits(1, 3, 2), True)) == 1000


def test_a_bundle_that_only_numba_knows_is_passed_as_it_is(place):
    odd = MemRows(np.arange(3.0), None, np.arange(3))
    assert flattened(odd) is odd
    # What comes with it decides as well.
    rows = flattened(MemRows(*np.arange(15).reshape(3, 5)))
    function = LazyFunction(lambda one, other: one.query_starts[1] + other[1], inlined=False)
    assert function(rows, np.arange(6)[::2]) == 3


def weighted_sum(table):
    total = 0
    for row in range(table.shape[0]):
        for place in range(table.shape[1]):
            total += (10 * row + place) * table[row, place]
    return total


OF_NUMPY = [np.arange(12).reshape(3, 4), np.arange(12).reshape(4, 3)[:, :0], np.ones((1, 1), int)]
OF_NUMPY += [np.arange(12).reshape(3, 4)[::2], np.arange(12).reshape(3, 4, order="F")]
OF_NUMPY += [np.broadcast_to(np.arange(4), (3, 4)), np.frombuffer(bytes(range(48)), np.uint8)[None]]


@each("table", OF_NUMPY)
def test_arrays_are_read_wherever_they_lie(place, table):
    """Images refuse those that are read-only or not contiguous, unless they are empty."""
    function = LazyFunction(weighted_sum, inlined=False)
    expected = sum((10 * r + c) * int(one) for (r, c), one in np.ndenumerate(table))
    for given in (table, table.copy()):
        assert function(given) == expected


@pytest.mark.parametrize(
    ("function", "argument", "expected"),
    [
        (lambda x: x * 0.5, 3, 1.5),
        (lambda x: (x, x), 3, (3, 3)),
        (lambda x: np.uint64(x), 3, 3),
        (lambda x: x[1], np.zeros(3)[::2], 0),
    ],
)
def test_other_values_are_passed_and_returned_by_numba(function, argument, expected):
    lazy = LazyFunction(function, inlined=False)
    assert [lazy(argument) for _ in range(2)] == [expected] * 2
    assert not lazy._images


def run_child(program, cache, **settings):
    """Run a program beside a cache, which has the package of its folder, if there is one."""
    environment = {"MUMMERGPU_CACHE_DIR": str(cache), **settings}
    environment["PYTHONPATH"] = os.pathsep.join([str(cache.parent), *sys.path])
    # Without files of byte code, for which size and time of a source tell its version.
    return printed_by("-B", "-c", program, env=environment, cwd=cache.parent)


@pytest.mark.parametrize("settings", [{}, {"NUMBA_OPT": "3"}], ids=["image", "numba"])
def test_a_change_in_an_inlined_function_of_another_file_is_seen(tmp_path, settings):
    package = tmp_path / "mummergpu"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    inner, outer = package / "sequence" / "inner.py", package / "sequence" / "outer.py"
    source = "from mummergpu.runtime.jit import {0}\n{1}\n\n@{0}\ndef f(x):\n    return {2}\n"
    outer.write_text(source.format("jit", "from mummergpu.sequence import inner", "inner.f(x)"))
    program = "from mummergpu.sequence.outer import f; print(f(20))"
    for expression, expected in [("x + 1", "21"), ("x + 2", "22"), ("x + 1", "21")]:
        inner.write_text(source.format("inline", "", expression))
        os.utime(inner, (1e9, 1e9))
        assert run_child(program, tmp_path / "cache", **settings).strip() == expected
    # The first and the last have one name: an image, or a folder of numba's.
    kept = list((tmp_path / "cache" / "processor").rglob("*.*"))
    assert len({path if path.suffix == SUFFIX else path.parent for path in kept}) == 2


CALLS = """
import numpy as np
from mummergpu.mapping.seeding.windows import keep_windows
from mummergpu.sequence.codes import longest_of, write_reverse_complements
from mummergpu.sequence.mems import MemColumns

offsets = np.array([0, 1, 4])
codes = np.zeros(4, np.uint8)
write_reverse_complements(np.array([0, 1, 2, 2], np.uint8), offsets, codes)
kept = MemColumns(np.zeros(2, np.int64), *np.zeros((3, 1), np.int64))
matches = MemColumns(np.array([0, 1]), *np.array([[3], [5], [9]]))
print(*codes, longest_of(offsets), keep_windows(matches, 4, kept), *kept.rows)
"""
"""Calls three small compiled functions of the package, one of them with named tuples."""


def test_processes_that_start_together_share_a_folder(tmp_path):
    environment = {**os.environ, "MUMMERGPU_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", CALLS]
    expected = subprocess.check_output(command)
    for _ in range(2):
        children = [
            subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path, env=environment)
            for _ in range(2)
        ]
        assert [child.communicate()[0] for child in children] == [expected] * 2
    files = list((tmp_path / "cache" / "processor").rglob("*.code"))
    assert len(files) >= 3
    for number, path in enumerate(files):
        content = path.read_bytes()
        path.write_bytes([content[:-1], b"", content[:99] + b"?" + content[100:]][number % 3])
    assert subprocess.check_output(command, cwd=tmp_path, env=environment) == expected


BOUNDS = """
import numpy as np
from mummergpu.sequence.codes import write_reverse_complements

codes, offsets = np.array([0, 1, 2, 2], np.uint8), np.array([0, 4])
# Memory behind the array is there, so that nothing but a check tells.
result = np.zeros(64, np.uint8)[:{}]
try:
    write_reverse_complements(codes, offsets, result)
    print(*result)
except IndexError as error:
    print(error)
"""


def test_code_with_bounds_checks_is_kept_by_itself(tmp_path, monkeypatch):
    """`make bounds` asks numba for the checks."""
    monkeypatch.delenv("NUMBA_BOUNDSCHECK", raising=False)
    cache, checks = tmp_path / "cache", {"NUMBA_BOUNDSCHECK": "1"}
    # Twice: what a process has compiled, and what it has kept.
    for _ in range(2):
        assert run_child(BOUNDS.format(4), cache, **checks) == "1 1 2 3\n"
        assert "out of bounds" in run_child(BOUNDS.format(3), cache, **checks)
        assert run_child(BOUNDS.format(3), cache) == "1 1 2\n"
