"""Functions that are written as LLVM's text: compiled once, and kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mummergpu.runtime.compiled.code_store import CodeStore
from mummergpu.runtime.compiled.native import written
from mummergpu.runtime.compiled.native.image import UnsuitedCodeError

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


def add(text: str, added: int, avx512: str = "") -> int:
    """What the function makes of 40, for a text that this process has not seen."""
    written._called.clear()
    number = np.array([40])
    written.compiled_text(text, 2, avx512)([number.ctypes.data, added])
    return int(number[0])


def test_code_is_compiled_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CodeStore([str(tmp_path)], "0" * 32, pytest.fail)
    monkeypatch.setattr(written, "native_stores", lambda: (store,))
    count = written.compiled_count
    assert (add(TEXT, 2), add(TEXT, 3)) == (42, 43)
    assert written.compiled_count == count + 1
    # Another text is another function.
    assert add(TEXT.replace("add i64", "sub i64"), 2) == 38
    assert written.compiled_count == count + 2
    store.close()


def test_processors_with_avx512_get_a_text_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from llvmlite import binding

    host = dict(binding.get_host_cpu_features())
    monkeypatch.setattr(written, "native_stores", tuple)
    for has in {False, host.get("avx512f", False)}:
        features = type(binding.get_host_cpu_features())({**host, "avx512f": has})
        monkeypatch.setattr(binding, "get_host_cpu_features", lambda found=features: found)
        assert add(TEXT, 2, TEXT.replace("add i64", "sub i64")) == (38 if has else 42)


def test_code_runs_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise UnsuitedCodeError("another system")

    monkeypatch.setattr(written, "native_stores", tuple)
    assert add(TEXT, 2) == 42
    monkeypatch.setattr(written, "image_of", refuse)
    assert add(TEXT, 4) == 44
