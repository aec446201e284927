"""What machine code depends on has a name, and the name changes with it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numba
import pytest

from mummergpu.runtime.compiled.code_generation import (
    PACKAGE,
    ROOMS_WITHOUT_CODE,
    digest_of_sources,
    generation_of_code,
)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "room").mkdir()
    (tmp_path / "a.py").write_text("WIDTH = 32\n")
    (tmp_path / "room" / "b.py").write_text("x = 1\n")
    return tmp_path


def test_sources_that_stay_have_the_same_digest(package: Path) -> None:
    before = digest_of_sources(str(package))
    assert before is not None and len(before) == 32
    (package / "room" / "__pycache__").mkdir()
    (package / "room" / "__pycache__" / "b.py").write_text("not a source")
    (package / "README.md").write_text("nor is this")
    os.utime(package / "a.py", (1, 1))
    assert digest_of_sources(str(package)) == before


def test_a_change_is_seen_though_size_and_time_are_the_same(package: Path) -> None:
    path = package / "room" / "b.py"
    before, found = digest_of_sources(str(package)), path.stat()
    path.write_text("x = 2\n")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert path.stat().st_size == found.st_size
    assert digest_of_sources(str(package)) != before


def test_every_other_change_is_seen(package: Path) -> None:
    digests = [digest_of_sources(str(package))]
    (package / "c.py").touch()
    digests.append(digest_of_sources(str(package)))
    (package / "c.py").rename(package / "d.py")
    digests.append(digest_of_sources(str(package)))
    (package / "d.py").rename(package / "room" / "d.py")
    digests.append(digest_of_sources(str(package)))
    # What goes from the end of a file to the beginning of the next.
    (package / "a.py").write_text("WIDTH = 32")
    (package / "room" / "b.py").write_text("\nx = 1\n")
    digests.append(digest_of_sources(str(package)))
    assert len(set(digests)) == len(digests)


def test_sources_that_are_not_there_have_no_digest(tmp_path: Path) -> None:
    assert digest_of_sources(str(tmp_path / "none")) is None
    assert digest_of_sources(str(tmp_path)) is None
    (tmp_path / "a.py").symlink_to("nowhere")
    assert digest_of_sources(str(tmp_path)) is None


def test_a_generation_depends_on_sources_versions_and_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [generation_of_code("a"), generation_of_code("b")]
    assert generation_of_code("a") == names[0] and len(names[0]) == 32
    for owner, name, value in [
        (numba, "__version__", "9.0"),
        (numba.config, "BOUNDSCHECK", 1),
        (numba.config, "OPT", 0),
    ]:
        with monkeypatch.context() as changed:
            changed.setattr(owner, name, value)
            names.append(generation_of_code("a"))
    assert len(set(names)) == len(names)


def test_no_compiled_function_can_reach_what_the_digest_leaves_out() -> None:
    compiled = re.compile(r"^\s*@(jit|inline)", re.MULTILINE)
    imports = re.compile(
        rf"^\s*(?:from|import) mummergpu\.({'|'.join(ROOMS_WITHOUT_CODE)})\b", re.M
    )
    found = 0
    for path in Path(PACKAGE).rglob("*.py"):
        text = path.read_text()
        if compiled.search(text):
            found += 1
            assert path.relative_to(PACKAGE).parts[0] not in ROOMS_WITHOUT_CODE, path
            assert not imports.search(text), path
    assert found > 50


def test_an_edit_of_a_room_without_code_keeps_the_digest(tmp_path: Path) -> None:
    for room in ("cli", "mapping"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "a.py").write_text("a = 1")
    before, whole = digest_of_sources(str(tmp_path)), digest_of_sources(str(tmp_path), ())
    (tmp_path / "cli" / "a.py").write_text("a = 2")
    assert digest_of_sources(str(tmp_path)) == before
    assert digest_of_sources(str(tmp_path), ()) != whole
    (tmp_path / "mapping" / "a.py").write_text("a = 2")
    assert digest_of_sources(str(tmp_path)) != before
