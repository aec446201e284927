"""Where compiled code is kept, as the environment says."""

from __future__ import annotations

from pathlib import Path

import pytest

from mummergpu.cli import cache_folders as caches
from mummergpu.cli.cache_folders import can_be_written, folder_of_compiled_code, folder_of_kernels


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
def test_kernels_are_kept_where_the_environment_says(
    environment: dict[str, str], expected: str | None
) -> None:
    assert folder_of_kernels(environment) == (None if expected is None else Path(expected))


def test_a_relative_folder_of_kernels_means_the_same_after_a_change_of_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert folder_of_kernels({"MUMMERGPU_CACHE_DIR": "kept"}) == tmp_path / "kept"


def test_compiled_code_is_kept_where_numba_would_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(caches.__file__).parent.parent
    assert folder_of_compiled_code({"NUMBA_CACHE_DIR": "/n", "XDG_CACHE_HOME": "/c"}) == Path("/n")
    assert folder_of_compiled_code({"XDG_CACHE_HOME": "/c"}) == package
    monkeypatch.setattr(caches, "can_be_written", lambda folder: False)
    assert folder_of_compiled_code({"XDG_CACHE_HOME": "/c"}) == Path("/c/numba")
    monkeypatch.chdir(tmp_path)
    assert folder_of_compiled_code({"XDG_CACHE_HOME": "c"}) == tmp_path / "c" / "numba"


def test_a_folder_can_be_written_if_it_can_be_made(tmp_path: Path) -> None:
    assert can_be_written(str(tmp_path / "a" / "b"))
    (tmp_path / "file").touch()
    assert not can_be_written(str(tmp_path / "file" / "x"))
