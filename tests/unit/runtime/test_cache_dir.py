"""Where caches lie, as the environment says."""

import os
from pathlib import Path

import pytest

from mummergpu.runtime import cache_dir
from mummergpu.runtime.cache_dir import (
    cache_folder,
    can_be_written,
    folder_of_compiled_code,
    processor_code_places,
)


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
def test_caches_lie_where_the_environment_says(environment, expected):
    assert cache_folder(environment) == (None if expected is None else Path(expected))


def test_a_relative_folder_means_the_same_after_a_change_of_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cache_folder({"MUMMERGPU_CACHE_DIR": "kept"}) == tmp_path / "kept"


def test_the_temporary_directory_stands_in_for_the_home():
    temporary = f"/v/mummergpu-{os.geteuid()}/processor"
    places = processor_code_places({"HOME": "/h", "TMPDIR": "/v"})
    assert places == ("/h/.cache/mummergpu/processor", temporary)
    assert processor_code_places({"HOME": "nowhere", "TMPDIR": "/v"}) == (temporary,)
    assert processor_code_places({"HOME": "/h"})[1].startswith("/tmp/mummergpu-")


def test_a_chosen_folder_stands_alone():
    environment = {"MUMMERGPU_CACHE_DIR": "/a", "HOME": "/h", "TMPDIR": "/v"}
    assert processor_code_places(environment) == ("/a/processor",)


def test_a_folder_can_be_written_if_it_can_be_made(tmp_path):
    assert can_be_written(str(tmp_path / "a" / "b"))
    (tmp_path / "file").touch()
    assert not can_be_written(str(tmp_path / "file" / "x"))


def test_both_kinds_of_code_lie_in_one_folder(tmp_path):
    environment = {"MUMMERGPU_CACHE_DIR": str(tmp_path)}
    assert cache_folder(environment) == tmp_path
    assert folder_of_compiled_code(environment) == tmp_path / "processor"


def test_the_first_place_that_can_be_written_is_named(monkeypatch):
    environment = {"HOME": "/h", "TMPDIR": "/v"}
    usual = "/h/.cache/mummergpu/processor"
    temporary = f"/v/mummergpu-{os.geteuid()}/processor"
    for writable, expected in [({usual, temporary}, usual), ({temporary}, temporary)]:
        monkeypatch.setattr(cache_dir, "can_be_written", writable.__contains__)
        assert folder_of_compiled_code(environment) == Path(expected)
    monkeypatch.setattr(cache_dir, "can_be_written", lambda _: False)
    assert folder_of_compiled_code(environment) == Path(usual)
