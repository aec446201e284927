"""Where caches lie, as the environment says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mummergpu.runtime.cache_places import cache_folder, can_be_written, processor_code_places


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"MUMMERGPU_CACHE_DIR": "/a/b", "XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/a/b"),
        ({"MUMMERGPU_CACHE_DIR": "", "XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/mummergpu"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/mummergpu"),
        ({"XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/mummergpu"),
        ({"HOME": "/h"}, "/h/.cache/mummergpu"),
        ({"HOME": "nowhere"}, None),
    ],
)
def test_caches_lie_where_the_environment_says(
    environment: dict[str, str], expected: str | None
) -> None:
    assert cache_folder(environment) == (None if expected is None else Path(expected))


def test_a_relative_folder_means_the_same_after_a_change_of_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cache_folder({"MUMMERGPU_CACHE_DIR": "kept"}) == tmp_path / "kept"


def test_the_temporary_directory_stands_in_for_the_home() -> None:
    temporary = f"/v/mummergpu-{os.geteuid()}/processor"
    places = processor_code_places({"HOME": "/h", "TMPDIR": "/v"})
    assert places == ("/h/.cache/mummergpu/processor", temporary)
    assert processor_code_places({"HOME": "nowhere", "TMPDIR": "/v"}) == (temporary,)
    assert processor_code_places({"HOME": "/h"})[1].startswith("/tmp/mummergpu-")


def test_a_chosen_folder_stands_alone() -> None:
    environment = {"MUMMERGPU_CACHE_DIR": "/a", "HOME": "/h", "TMPDIR": "/v"}
    assert processor_code_places(environment) == ("/a/processor",)


def test_a_folder_can_be_written_if_it_can_be_made(tmp_path: Path) -> None:
    assert can_be_written(str(tmp_path / "a" / "b"))
    (tmp_path / "file").touch()
    assert not can_be_written(str(tmp_path / "file" / "x"))
