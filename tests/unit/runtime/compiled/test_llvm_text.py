"""Functions that are written as LLVM's text: compiled once, and kept."""

import numpy as np
import pytest

from mummergpu.runtime.compiled import llvm_text
from mummergpu.runtime.compiled.levels import usable_levels
from mummergpu.runtime.compiled.linker import UnsuitedCodeError
from mummergpu.runtime.compiled.store import CodeStore

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
