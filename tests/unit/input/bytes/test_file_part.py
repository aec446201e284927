"""Parts of files are read into memory, with and without the call that macOS lacked for long."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from mummergpu.input.bytes.file_part import read_into


@pytest.mark.parametrize("has_preadv", [True, False])
def test_a_part_of_a_file_is_read(
    has_preadv: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_preadv:
        monkeypatch.delattr(os, "preadv", raising=False)
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    memory = np.full(6, ord("-"), dtype=np.uint8)
    with open(path, "rb", buffering=0) as file:
        assert read_into(file.fileno(), memory[:4].data, 3) == 4
        assert memory.tobytes() == b"3456--"
        assert read_into(file.fileno(), memory.data, 8) == 2
        assert memory.tobytes() == b"8956--"
        assert read_into(file.fileno(), memory.data, 10) == 0
        assert read_into(file.fileno(), memory[:0].data, 0) == 0
        assert memory.tobytes() == b"8956--" and file.tell() == 0
    with pytest.raises(OSError, match="Bad file descriptor"):
        read_into(-1, memory.data, 0)
