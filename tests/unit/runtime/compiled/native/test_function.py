"""Kept code is called without numba, and numba takes over wherever it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from mummergpu.runtime import processors
from mummergpu.runtime.cache_places import processor_code_places
from mummergpu.runtime.compiled import code_cache
from mummergpu.runtime.compiled.code_cache import keep_code_in
from mummergpu.runtime.compiled.compiler import dispatcher_of
from mummergpu.runtime.compiled.native import loader
from mummergpu.runtime.compiled.native import store as native_store
from mummergpu.runtime.compiled.native.build import build_code
from mummergpu.runtime.compiled.native.function import NativeFunction
from mummergpu.runtime.compiled.native.loader import load_code
from mummergpu.runtime.compiled.native.values import (
    UnsuitedValueError,
    flatten,
    text_of_types,
    types_of_text,
)
from mummergpu.runtime.jit import flattened
from mummergpu.sequence.codes import write_reverse_complements

pytestmark = pytest.mark.skipif(
    not native_store.native_stores(), reason="kept code cannot run without numba here"
)

PLAIN = write_reverse_complements.py_func  # type: ignore[attr-defined]
TYPES = "[|u1,1][<i8,1][|u1,1]"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """An empty folder for the code of this process."""
    keep_code_in((str(tmp_path / "kept"),))
    yield tmp_path / "kept-native"
    code_cache.process_store().close()
    forget()
    keep_code_in(processor_code_places(os.environ))


def forget() -> None:
    """Forget which folders there are, and what this process is told of its machine."""
    keep_code_in(code_cache.code_places())
    native_store._stores_in.cache_clear()


class Maker:
    """Makes dispatchers, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, function: Callable[..., Any]) -> Any:
        self.count += 1
        return dispatcher_of(function, False)


def fresh() -> tuple[NativeFunction, Maker]:
    maker = Maker()
    return NativeFunction(PLAIN, maker, False), maker


def works(function: Any) -> bool:
    result = np.zeros(4, np.uint8)
    function(np.array([0, 1, 2, 2], np.uint8), np.array([0, 1, 4]), result)
    return result.tolist() == [3, 1, 1, 2]


def needs_numba(function: NativeFunction, maker: Maker, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether a call compiles, or asks numba for a dispatcher."""
    calls = []
    compile_now = function.keeper.compile

    def note(types: str, given: Any) -> bytes:
        calls.append(types)
        return compile_now(types, given)

    with monkeypatch.context() as changed:
        changed.setattr(function.keeper, "compile", note)
        assert works(function)
    return bool(calls) or maker.count > 0


def kept(place: Path) -> Path:
    (path,) = place.rglob("*.code")
    return path


def test_numba_is_needed_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [needs_numba(*fresh(), monkeypatch) for _ in range(3)] == [True, False, False]
    assert kept(place)


def test_damaged_code_is_made_anew(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_numba(*fresh(), monkeypatch)
    path = kept(place)
    sound = path.read_bytes()
    damaged = [b"", sound[:40], sound[:-1]]
    for position in range(3, len(sound), len(sound) // 10):
        copy = bytearray(sound)
        copy[position] ^= 1 << position % 8
        damaged.append(bytes(copy))
    for content in damaged:
        path.write_bytes(content)
        assert needs_numba(*fresh(), monkeypatch)
        assert path.read_bytes() == sound
        assert not needs_numba(*fresh(), monkeypatch)


def test_code_for_another_loader_is_left_to_numba(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The content is what was written, and yet nothing can be made of it."""
    needs_numba(*fresh(), monkeypatch)
    path = kept(place)
    store, *_ = native_store.native_stores()
    unknown = (
        b'{"entry": 0, "addresses": [], "symbols": [[0, "no_such"]], "result": "-"}\n' + bytes(8)
    )
    for content in (b"", b"text", b"{}\nx", unknown):
        store.save(bytes.fromhex(path.stem), content)
        assert needs_numba(*fresh(), monkeypatch)


def test_memory_that_cannot_be_executed_is_left_to_numba(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_numba(*fresh(), monkeypatch)
    monkeypatch.setattr(loader, "_READ_AND_EXECUTE", -1)
    assert needs_numba(*fresh(), monkeypatch)


def test_a_version_that_differs_inside_is_tried_once(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def fail(result: Any, optimise: bool) -> bytes:
        calls.append(result)
        raise AttributeError("another version")

    monkeypatch.setattr("mummergpu.runtime.compiled.native.build.build_code", fail)
    assert all(needs_numba(*fresh(), monkeypatch) for _ in range(3))
    assert len(calls) == 1


def test_other_types_and_names_are_left_to_numba(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_numba(*fresh(), monkeypatch)
    function, maker = fresh()
    assert not needs_numba(function, maker, monkeypatch)
    codes, offsets = np.array([0, 1, 2, 2], np.uint8), np.array([0, 1, 4])
    function.made = lambda: lambda *given, **named: len(given) + len(named)  # type: ignore
    result = np.zeros(4, np.uint8)
    read_only = codes.copy()
    read_only.flags.writeable = False
    calls: list[Any] = [
        function(read_only, offsets, result),
        function(codes[::-1], offsets, result),
        function(codes, offsets, result=result),
        function(codes, offsets, None),
    ]
    assert calls == [3] * 4 and not result.any()
    assert function(codes, offsets, result) is None and result.any()


def test_threads_share_a_function(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_numba(*fresh(), monkeypatch)
    function, maker = fresh()
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(works, [function] * 2000))
    assert maker.count == 0


def test_what_is_unusual_has_no_store(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def generations() -> list[str]:
        return native_store._generations()

    usual = generations()
    assert usual and generations() == usual
    monkeypatch.chdir(tmp_path)
    for owner, name, value in [
        (sys, "platform", "darwin"),
        (native_store.platform, "machine", lambda: "aarch64"),
        (processors, "_DESCRIPTION", str(tmp_path / "none")),
        (processors, "_ENOUGH_OF_IT", 100),
        (native_store, "_TELLING", (b"no such line",)),
        (native_store.importlib.util, "find_spec", lambda name: None),
        (code_cache, "_SOURCES", None),
    ]:
        with monkeypatch.context() as changed:
            changed.setattr(owner, name, value)
            assert generations() == [], name
    with monkeypatch.context() as changed:
        changed.setenv("NUMBA_BOUNDSCHECK", "0")
        assert generations() == []
    (tmp_path / ".numba_config.yaml").touch()
    assert generations() == []


def test_a_generation_depends_on_versions_and_the_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = tmp_path / "cpuinfo"
    told = Path(processors._DESCRIPTION).read_text()
    described.write_text(told.replace("flags\t\t:", "flags\t\t: more"))
    assert described.read_text() != told
    names = [native_store._generations()[0]]
    for owner, name, value in [
        (sys.implementation, "cache_tag", "cpython-40"),
        (np, "__version__", "9.0"),
        (code_cache, "_SOURCES", "others"),
        (native_store, "_version_file", lambda package: b"9.0"),
        (native_store, "_version_file", lambda package: package.encode()),
        (processors, "_DESCRIPTION", str(described)),
    ]:
        with monkeypatch.context() as changed:
            changed.setattr(owner, name, value)
            names.append(native_store._generations()[0])
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("setting", ["BOUNDSCHECK", "CPU_NAME", "DEBUGINFO_DEFAULT"])
def test_code_of_other_settings_is_not_kept(
    setting: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, _ = fresh()
    with monkeypatch.context() as changed:
        changed.setattr(numba.config, setting, "generic")
        assert function.keeper.compile(TYPES, function) == b""
    assert list(place.rglob("*.code")) == []
    assert function.keeper.compile(TYPES, function)
    assert kept(place)


def compiled(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any] | None:
    """Return a function that calls compiled code without numba; None if it needs numba."""
    dispatcher = numba.njit(error_model="numpy")(function)
    try:
        dispatcher(*arguments)
    except ValueError:
        pass
    (result,) = dispatcher.overloads.values()
    packed = build_code(result)
    if not packed:
        return None

    def call(*given: Any) -> Any:
        numbers: list[int] = []
        flatten(given, numbers)
        return load_code(packed, len(numbers))(numbers)

    return call


def refuse(number: int) -> int:
    if number < 0:
        raise ValueError("negative", 7)
    return number + 1


def pick(tables: tuple[np.ndarray, np.ndarray], which: int, at: int) -> int:
    return tables[which][at]


def test_exceptions_are_those_of_the_function() -> None:
    call = compiled(refuse, 1)
    assert call is not None and call(4) == 5
    with pytest.raises(ValueError) as caught:
        call(-1)
    assert caught.value.args == ("negative", 7)


def test_errors_that_numba_finds_are_raised() -> None:
    tables = (np.arange(3), np.arange(5, 9))
    call = compiled(pick, tables, 0, 0)
    assert call is not None
    assert (call(tables, 1, 2), call(tables, 0, 2)) == (7, 2)
    with pytest.raises(IndexError):
        call(tables, 2, 0)


def test_an_exception_that_cannot_be_read_is_an_error_all_the_same() -> None:
    assert isinstance(loader._exception(None), SystemError)


def both(numbers: np.ndarray, flag: bool, pair: tuple[int, np.ndarray]) -> bool:
    return flag == (numbers[1, 1] + pair[0] > pair[1][0])


def test_arguments_are_passed_as_numba_passes_them() -> None:
    numbers, floats = np.arange(6, dtype=np.int16).reshape(2, 3), np.array([9.5])
    call = compiled(both, numbers, True, (3, floats))
    assert call is not None
    for flag in (True, False):
        for number in (3, 5, 6, np.int64(6)):
            expected = both(numbers, flag, (number, floats))
            assert call(numbers, np.bool_(flag), (number, floats)) is bool(expected)


class Window(NamedTuple):
    """A part of some numbers."""

    numbers: np.ndarray
    begin: int
    end: int


class Step(NamedTuple):
    """A bundle with fields of the same types as `Window`'s."""

    numbers: np.ndarray
    end: int
    begin: int


class Windows(NamedTuple):
    both: tuple[Window, Window]
    is_reverse: bool


def width(windows: Windows, step: Step) -> int:
    last = windows.both[1]
    shift = step.begin if windows.is_reverse else step.end
    return last.numbers[last.end - 1] - windows.both[0].begin + shift


def test_bundles_are_passed_by_their_names() -> None:
    numbers = np.arange(10, 20)
    windows = Windows((Window(numbers, 2, 5), Window(numbers, 3, 9)), False)
    call = compiled(width, windows, Step(numbers, 100, 1000))
    assert call is not None
    for is_reverse in (False, True):
        turned, step = windows._replace(is_reverse=is_reverse), Step(numbers, 7, 3000)
        assert call(turned, step) == width(turned, step)


def add_last(window: Window, step: Step) -> int:
    return window.numbers[window.end - 1] + step.end


def test_a_flattened_bundle_is_passed_as_the_bundle_itself(place: Path) -> None:
    numbers = np.arange(10, 20)
    window, step = Window(numbers, 3, 9), Step(numbers, 7, 3000)
    code = NativeFunction(add_last, Maker(), False)
    for value in (window, flattened(window)):
        assert code(value, step) == add_last(window, step)
    # Its arrays may change between two calls.
    kept_window = flattened(window)
    numbers[8] = 1000
    assert code(kept_window, step) == 1007


def test_a_bundle_that_only_numba_knows_is_not_flattened(place: Path) -> None:
    window = Window(np.arange(10)[::2], 1, 3)
    assert flattened(window) is window
    # What comes with it decides as well.
    function, step = NativeFunction(add_last, Maker(), False), Step(np.arange(6)[::2], 7, 3000)
    assert function(flattened(Window(np.arange(10), 1, 3)), step) == 2 + 7


def test_bundles_of_two_names_are_told_apart() -> None:
    texts = set()
    for kind in (Window, Step):
        bundle = kind(np.arange(3), 1, 2)
        texts |= {flatten((bundle,), []), text_of_types([numba.typeof(bundle)])}
    assert len(texts) == 2


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (lambda x: np.zeros(x), 3),
        (lambda x: x * 0.5, 3),
        (lambda x: (x, x), 3),
        (lambda x: np.uint64(x), 3),
        (lambda x: x.copy(), np.zeros(3)),
        (lambda x: print(x), 3),
    ],
)
def test_code_that_needs_numba_is_not_kept(function: Any, argument: Any) -> None:
    assert compiled(function, argument) is None


@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros(3, np.uint8), 3, True),
        (np.zeros((2, 3), np.float32), np.int64(4), np.bool_(0)),
        ((np.zeros(3), (np.zeros(2, bool), 3)), np.zeros((1, 1, 1), np.uint32)),
        (np.zeros(0, np.int64),),
        ((),),
        (Windows((Window(np.arange(3), 0, 2), Window(np.arange(2), 1, 1)), True),),
    ],
)
def test_values_and_types_have_the_same_text(arguments: tuple[Any, ...]) -> None:
    numbers: list[int] = []
    kinds = tuple(numba.typeof(one) for one in arguments)
    assert flatten(arguments, numbers) == text_of_types(kinds)


def test_types_are_read_from_their_text() -> None:
    from mummergpu.mapping.options import Limits
    from mummergpu.sequence.mems import MemRows

    columns = [np.zeros(2, np.int64) for _ in range(3)]
    values = (MemRows(*columns), 3, (True, (Limits(1, 2, 3), np.zeros((1, 2), np.uint8))), ())
    text = flatten(values, [])
    kinds = types_of_text(text)
    assert kinds == tuple(numba.typeof(one) for one in values)
    assert text_of_types(kinds) == text
    for wrong in ("x", "i)", "mummergpu.no.Such(i)", "mummergpu.mapping.options.Nothing(i)"):
        with pytest.raises(UnsuitedValueError):
            types_of_text(wrong)


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((4, 4))[::2],
        np.zeros((2, 3), order="F"),
        np.frombuffer(b"abc", np.uint8),
        1.5,
        np.uint8(3),
        np.uint64(3),
        None,
    ],
)
def test_other_values_and_types_have_none(value: Any) -> None:
    with pytest.raises(UnsuitedValueError):
        flatten((value,), [])
    with pytest.raises(UnsuitedValueError):
        text_of_types([numba.typeof(value)])


def test_records_are_told_apart_by_numba_alone() -> None:
    record = np.zeros(2, [("a", "i4"), ("b", "u1")])
    with pytest.raises(UnsuitedValueError):
        text_of_types([numba.typeof(record)])


CALLS = """
import numpy as np
from mummergpu.index.kmer_index import count_equal_pairs
from mummergpu.index.tree.flatten import place_bases
from mummergpu.mapping.seeding.windows import keep_windows
from mummergpu.runtime.jit import flattened
from mummergpu.sequence.codes import write_reverse_complements
from mummergpu.sequence.mems import MemColumns
from mummergpu.sequence.offsets import longest_of

offsets = np.array([0, 1, 4])
codes, placed = np.zeros(4, np.uint8), np.zeros(9, np.uint8)
write_reverse_complements(np.array([0, 1, 2, 2], np.uint8), offsets, codes)
kept = MemColumns(np.zeros(2, np.int64), *np.zeros((3, 1), np.int64))
matches = MemColumns(np.array([0, 1]), *np.array([[3], [5], [9]]))
place_bases(codes, placed, 0)
print(
    *(*codes, longest_of(offsets), keep_windows(matches, 4, kept), *kept.rows),
    count_equal_pairs(np.array([1, 1, 2], np.uint64), 0),
    *placed,
)
"""
"""Calls five small compiled functions of the package, one of them with named tuples."""


def test_processes_that_start_together_share_a_folder(tmp_path: Path) -> None:
    environment = {**os.environ, "MUMMERGPU_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", CALLS]
    expected = subprocess.check_output(command)
    for _ in range(2):
        children = [
            subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path, env=environment)
            for _ in range(2)
        ]
        assert [child.communicate()[0] for child in children] == [expected] * 2
    files = list((tmp_path / "cache" / "processor-native").rglob("*.code"))
    assert len(files) >= 5
    for number, path in enumerate(files):
        content = path.read_bytes()
        path.write_bytes([content[:-1], b"", content[:99] + b"?" + content[100:]][number % 3])
    assert subprocess.check_output(command, cwd=tmp_path, env=environment) == expected
