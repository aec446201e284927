"""Which folders the command line names for what is kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mummergpu.cli.cache_folders import folder_of_kernels
from mummergpu.runtime import cache_places
from mummergpu.runtime.cache_places import folder_of_compiled_code


def test_both_kinds_of_code_lie_in_one_folder(tmp_path: Path) -> None:
    environment = {"MUMMERGPU_CACHE_DIR": str(tmp_path)}
    assert folder_of_kernels(environment) == tmp_path
    assert folder_of_compiled_code(environment) == tmp_path / "processor"


def test_the_first_place_that_can_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"HOME": "/h", "TMPDIR": "/v"}
    usual = "/h/.cache/mummergpu/processor"
    temporary = f"/v/mummergpu-{os.geteuid()}/processor"
    for writable, expected in [({usual, temporary}, usual), ({temporary}, temporary)]:
        monkeypatch.setattr(cache_places, "can_be_written", writable.__contains__)
        assert folder_of_compiled_code(environment) == Path(expected)
    monkeypatch.setattr(cache_places, "can_be_written", lambda _: False)
    assert folder_of_compiled_code(environment) == Path(usual)
