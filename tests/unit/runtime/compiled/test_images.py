"""Images of machine code: made of objects and of text, named by the sources they depend on."""

import importlib
import math
import os
import platform
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from helpers.children import printed_by
from helpers.loops import each
from llvmlite import binding

from mummergpu.mapping.options import Limits
from mummergpu.runtime.compiled import llvm_text, sources
from mummergpu.runtime.compiled.image import load_code, pack_code
from mummergpu.runtime.compiled.levels import usable_levels
from mummergpu.runtime.compiled.linker import UnsuitedCodeError, image_of
from mummergpu.runtime.compiled.signatures import (
    BOOLEAN,
    INTEGER,
    NOTHING,
    UnsuitedValueError,
    flatten,
    types_of_text,
)
from mummergpu.runtime.compiled.sources import digest_of_function, digest_of_sources
from mummergpu.runtime.compiled.store import CodeStore
from mummergpu.sequence.mems import MemRows

of_x86 = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="images are for x86-64"
)

PARTS = Path(__file__).with_name("images.ll").read_text().split("; ## ")[1:]
TEXTS = dict(part.split("\n", 1) for part in PARTS)


def object_of(text, codemodel="small"):
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(opt=2, reloc="pic", codemodel=codemodel)
    module = binding.parse_assembly(text)
    module.triple = target.triple
    return machine.emit_object(module)


def call(image, numbers, result=INTEGER):
    return load_code(pack_code(image, result), len(numbers))(numbers)


RESULTS = [
    *(("SUM", [2**40, -3], 2**40 - 3), ("TABLE", [1], -5), ("TABLE", [3], 13)),
    *(("POINTERS", [0], 2), ("POINTERS", [1], 1), ("LIBRARY", [1], 0x0101010101010101)),
    ("CALLED", [-21], -42),
]


@of_x86
@each("name, numbers, expected", RESULTS)
def test_an_image_does_what_the_object_file_says(name, numbers, expected):
    image = image_of(object_of(TEXTS[name]))
    # Twice, at different places.
    assert [call(image, numbers) for _ in range(2)] == [expected] * 2


@of_x86
def test_results_are_numbers_truth_values_or_nothing():
    image = image_of(object_of(TEXTS["SUM"]))
    assert call(image, [1, 0], BOOLEAN) is True
    assert call(image, [0, 0], BOOLEAN) is False
    assert call(image, [5, 0], NOTHING) is None


@of_x86
def test_functions_of_libraries_are_named():
    assert {name for _, name in image_of(object_of(TEXTS["LIBRARY"])).symbols} == {"memset"}
    assert image_of(object_of(TEXTS["CALLED"])).symbols == []


@of_x86
def test_data_that_is_written_and_other_functions_are_refused():
    zeroed = TEXTS["WRITTEN"].replace("i64 3", "i64 0")
    for text in (zeroed, *(TEXTS[name] for name in ("WRITTEN", "ELSEWHERE", "OTHER_LIBRARY"))):
        with pytest.raises(UnsuitedCodeError):
            image_of(object_of(text))


@of_x86
def test_another_function_is_not_found():
    with pytest.raises(UnsuitedCodeError):
        image_of(object_of(TEXTS["SUM"].replace("@entry", "@another")))


@of_x86
def test_what_is_no_object_file_is_refused():
    sound = object_of(TEXTS["POINTERS"])
    assert image_of(sound).addresses
    for content in (b"", b"text", sound[:20], b"\x7fELF\x01" + sound[5:]):
        with pytest.raises(UnsuitedCodeError):
            image_of(content)
    for size in range(0, len(sound), 7):
        with pytest.raises(UnsuitedCodeError):
            image_of(sound[:size])


@of_x86
def test_unknown_relocations_are_refused():
    # Earlier versions of LLVM put pointers into a section of another name, which is refused before.
    with pytest.raises(UnsuitedCodeError, match=r"relocation|written: \.ldata"):
        image_of(object_of(TEXTS["POINTERS"], "large"))


def add(text, added):
    """What the function makes of 40, for a text that this process has not seen."""
    llvm_text._called.clear()
    number = np.array([40])
    llvm_text.compiled_text(text, 2)([number.ctypes.data, added])
    return int(number[0])


def test_code_is_compiled_once_and_kept(tmp_path, monkeypatch):
    store = CodeStore([str(tmp_path)], ["0" * 32], pytest.fail)
    monkeypatch.setattr(llvm_text, "process_store", lambda: store)
    count = llvm_text.compiled_count
    assert (add(TEXTS["KEPT"], 2), add(TEXTS["KEPT"], 3)) == (42, 43)
    assert llvm_text.compiled_count == count + (1 if usable_levels() else 2)
    # Another text is another function.
    assert add(TEXTS["KEPT"].replace("add i64", "sub i64"), 2) == 38
    assert llvm_text.compiled_count > count + 1


def test_code_runs_where_nothing_can_be_kept(monkeypatch):
    def refuse(*_):
        raise UnsuitedCodeError("another system")

    monkeypatch.setattr(llvm_text, "usable_levels", tuple)
    assert add(TEXTS["KEPT"], 2) == 42
    monkeypatch.setattr(llvm_text, "image_of", refuse)
    assert add(TEXTS["KEPT"], 4) == 44


COLUMNS = MemRows(*(np.zeros(2, np.int64) for _ in range(3)))


VALUES = [
    (np.zeros(3, np.uint8), 3, True),
    (np.zeros((2, 3), np.float32), np.int64(4), np.bool_(0)),
    ((np.zeros(3), (np.zeros(2, bool), 3)), np.zeros((1, 1, 1), np.uint32)),
    *((np.zeros(0, np.int64),), ((),)),
    (COLUMNS, 3, (True, (Limits(1, 2, 3), np.zeros((1, 2), np.uint8))), ()),
]


@each("arguments", VALUES)
def test_the_text_of_values_tells_their_types(arguments):
    text = flatten(arguments, [])
    assert types_of_text(text) == tuple(numba.typeof(one) for one in arguments)


def test_bundles_of_two_names_are_told_apart():
    class One(NamedTuple):
        number: int

    class Other(NamedTuple):
        number: int

    assert flatten((One(1),), []) != flatten((Other(1),), [])


@pytest.mark.parametrize(
    "text", ["x", "i)", "[|V5,1]", "mummergpu.no.Such(i)", "mummergpu.mapping.options.Nothing(i)"]
)
def test_a_text_of_no_types_is_an_error(text):
    with pytest.raises((UnsuitedValueError, numba.core.errors.NumbaError)):
        types_of_text(text)


@each("value", [1.5, np.uint8(3), np.uint64(3), None])
def test_other_values_have_no_text(value):
    with pytest.raises(UnsuitedValueError):
        flatten((value,), [])


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
    first, second = (printed_by("-c", program, env={"PYTHONHASHSEED": seed}) for seed in "12")
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
    found = path.stat()

    def rewrite():
        """Size and time stay."""
        path.write_text("x = 2\n")
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
        assert path.stat().st_size == found.st_size

    def move_a_line():
        """What goes from the end of a file to the beginning of the next."""
        (package / "a.py").write_text("WIDTH = 32")
        path.write_text("\nx = 2\n")

    digests = [digest_of_sources(str(package))]
    for change in (
        *(rewrite, (package / "c.py").touch, lambda: (package / "c.py").rename(package / "d.py")),
        *(lambda: (package / "d.py").rename(package / "room" / "d.py"), move_a_line),
    ):
        change()
        digests.append(digest_of_sources(str(package)))
    assert len(set(digests)) == len(digests) == 6


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
