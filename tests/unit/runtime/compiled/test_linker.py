"""Images of machine code: made of objects and of text, loaded anywhere, called by signatures."""

import platform
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest
from llvmlite import binding

from mummergpu.mapping.options import Limits
from mummergpu.runtime.compiled import llvm_text
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
from mummergpu.runtime.compiled.store import CodeStore
from mummergpu.sequence.mems import MemRows

of_x86 = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="images are for x86-64"
)

HEAD = "define i32 @entry(ptr %arguments, ptr %result, ptr %exception) {"
TAIL = "store i64 %r, ptr %result\nret i32 0\n}"

SUM = f"""{HEAD}
%b = getelementptr i64, ptr %arguments, i64 1
%x = load i64, ptr %arguments
%y = load i64, ptr %b
%r = add i64 %x, %y
{TAIL}"""

TABLE = f"""@table = private constant [4 x i64] [i64 7, i64 -5, i64 11, i64 13]
{HEAD}
%at = load i64, ptr %arguments
%place = getelementptr [4 x i64], ptr @table, i64 0, i64 %at
%r = load i64, ptr %place
{TAIL}"""

POINTERS = f"""@one = private constant i64 1
@two = private constant i64 2
@table = private constant [2 x ptr] [ptr @two, ptr @one]
{HEAD}
%at = load i64, ptr %arguments
%place = getelementptr [2 x ptr], ptr @table, i64 0, i64 %at
%found = load ptr, ptr %place
%r = load i64, ptr %found
{TAIL}"""

LIBRARY = f"""declare ptr @memset(ptr, i32, i64)
{HEAD}
%space = alloca i64
%n = load i64, ptr %arguments
%byte = trunc i64 %n to i32
%s = call ptr @memset(ptr %space, i32 %byte, i64 8)
%again = call ptr @memset(ptr %space, i32 %byte, i64 4)
%r = load i64, ptr %space
{TAIL}"""

OTHER_LIBRARY = f"""declare i64 @abs(i64)
{HEAD}
%n = load i64, ptr %arguments
%r = call i64 @abs(i64 %n)
{TAIL}"""

CALLED = f"""define i64 @double(i64 %x) noinline {{
%r = add i64 %x, %x
ret i64 %r
}}
{HEAD}
%n = load i64, ptr %arguments
%r = call i64 @double(i64 %n)
{TAIL}"""

WRITTEN = f"""@state = internal global i64 3
{HEAD}
%r = load volatile i64, ptr @state
%n = add i64 %r, 1
store volatile i64 %n, ptr @state
{TAIL}"""

ZEROED = WRITTEN.replace("i64 3", "i64 0")

ELSEWHERE = f"""@state = external thread_local global i64
{HEAD}
%r = load i64, ptr @state
{TAIL}"""


def object_of(text, codemodel="small"):
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(opt=2, reloc="pic", codemodel=codemodel)
    module = binding.parse_assembly(text)
    module.triple = target.triple
    made = machine.emit_object(module)
    return made


def call(image, numbers, result=INTEGER):
    return load_code(pack_code(image, result), len(numbers))(numbers)


@of_x86
@pytest.mark.parametrize(
    ("text", "numbers", "expected"),
    [
        (SUM, [2**40, -3], 2**40 - 3),
        (TABLE, [1], -5),
        (TABLE, [3], 13),
        (POINTERS, [0], 2),
        (POINTERS, [1], 1),
        (LIBRARY, [1], 0x0101010101010101),
        (CALLED, [-21], -42),
    ],
)
def test_an_image_does_what_the_object_file_says(text, numbers, expected):
    image = image_of(object_of(text))
    # Twice, at different places.
    assert [call(image, numbers) for _ in range(2)] == [expected] * 2


@of_x86
def test_results_are_numbers_truth_values_or_nothing():
    image = image_of(object_of(SUM))
    assert call(image, [1, 0], BOOLEAN) is True
    assert call(image, [0, 0], BOOLEAN) is False
    assert call(image, [5, 0], NOTHING) is None


@of_x86
def test_functions_of_libraries_are_named():
    assert {name for _, name in image_of(object_of(LIBRARY)).symbols} == {"memset"}
    assert image_of(object_of(CALLED)).symbols == []


@of_x86
@pytest.mark.parametrize("text", [WRITTEN, ZEROED, ELSEWHERE, OTHER_LIBRARY])
def test_data_that_is_written_and_other_functions_are_refused(text):
    with pytest.raises(UnsuitedCodeError):
        image_of(object_of(text))


@of_x86
def test_another_function_is_not_found():
    with pytest.raises(UnsuitedCodeError):
        image_of(object_of(SUM.replace("@entry", "@another")))


@of_x86
def test_what_is_no_object_file_is_refused():
    sound = object_of(POINTERS)
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
        image_of(object_of(POINTERS, "large"))


TEXT = """
define i32 @entry(ptr %arguments, ptr %result, ptr %exception) #0 {
  %address = load ptr, ptr %arguments
  %place = getelementptr i64, ptr %arguments, i64 1
  %added = load i64, ptr %place
  %before = load i64, ptr %address
  %sum = add i64 %before, %added
  store i64 %sum, ptr %address
  ret i32 0
}
"""


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
    assert (add(TEXT, 2), add(TEXT, 3)) == (42, 43)
    assert llvm_text.compiled_count == count + (1 if usable_levels() else 2)
    # Another text is another function.
    assert add(TEXT.replace("add i64", "sub i64"), 2) == 38
    assert llvm_text.compiled_count > count + 1


def test_code_runs_where_nothing_can_be_kept(monkeypatch):
    def refuse(*_):
        raise UnsuitedCodeError("another system")

    monkeypatch.setattr(llvm_text, "usable_levels", tuple)
    assert add(TEXT, 2) == 42
    monkeypatch.setattr(llvm_text, "image_of", refuse)
    assert add(TEXT, 4) == 44


COLUMNS = MemRows(*(np.zeros(2, np.int64) for _ in range(3)))


@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros(3, np.uint8), 3, True),
        (np.zeros((2, 3), np.float32), np.int64(4), np.bool_(0)),
        ((np.zeros(3), (np.zeros(2, bool), 3)), np.zeros((1, 1, 1), np.uint32)),
        (np.zeros(0, np.int64),),
        ((),),
        (COLUMNS, 3, (True, (Limits(1, 2, 3), np.zeros((1, 2), np.uint8))), ()),
    ],
)
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
def test_other_values_have_no_text(value):
    with pytest.raises(UnsuitedValueError):
        flatten((value,), [])
