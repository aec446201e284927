"""Files that get their name when they are complete: nothing of them is seen before."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.nameless_files import take_way

from mummergpu.errors import OutputError
from mummergpu.runtime import unfinished_file
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.unfinished_file import UnfinishedFile


@pytest.fixture
def nameless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take_way("nameless", tmp_path, monkeypatch)


def write(path: Path, text: bytes, durable: bool = False) -> None:
    file = UnfinishedFile(str(path))
    os.write(file.descriptor, text)
    file.finish(durable)


def refuse(number: int) -> Callable[..., Any]:
    def fail(*_arguments: object, **_more: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def open_descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def test_descriptors_are_closed(way: str, tmp_path: Path) -> None:
    before = open_descriptors()
    write(tmp_path / "out", b"new")
    write(tmp_path / "out", b"again")
    UnfinishedFile(str(tmp_path / "out")).abandon()
    with pytest.raises(FileNotFoundError):
        UnfinishedFile(str(tmp_path / "missing" / "out"))
    assert open_descriptors() == before
    assert (tmp_path / "out").read_bytes() == b"again"
    assert os.listdir(tmp_path) == ["out"]


def test_the_last_of_two_that_are_written_at_once_stays(way: str, tmp_path: Path) -> None:
    path = str(tmp_path / "out")
    first, second = UnfinishedFile(path), UnfinishedFile(path)
    os.write(first.descriptor, b"first")
    os.write(second.descriptor, b"second")
    second.finish()
    assert Path(path).read_bytes() == b"second"
    first.finish()
    assert Path(path).read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["out"]


MANY = """
import os, sys
from mummergpu.runtime.output_file import OutputFile

if sys.argv[3] == "named":
    os.O_TMPFILE = os.O_DIRECTORY
sys.stdin.read()
for turn in range(300):
    with OutputFile(sys.argv[1]) as output:
        for piece in range(5):
            output.write(sys.argv[2].encode() * 1000)
    if turn % 3 == 0 and sys.argv[2] == "A":
        os.unlink(sys.argv[1])
"""


def test_processes_that_write_the_same_file_leave_a_whole_one(way: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    words = [sys.executable, "-c", MANY, str(path)]
    processes = [
        subprocess.Popen([*words, letter, way], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for letter in "AB"
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
    contents = set()
    while any(process.poll() is None for process in processes):
        if path.exists():
            try:
                contents.add(path.read_bytes())
            except FileNotFoundError:
                continue
    for process in processes:
        assert process.stderr is not None
        assert (process.wait(), process.stderr.read()) == (0, b"")
        process.stderr.close()
    assert contents <= {b"A" * 5000, b"B" * 5000}
    assert contents
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.usefixtures("nameless")
def test_a_name_that_is_taken_meanwhile_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out"
    file = UnfinishedFile(str(path))
    os.write(file.descriptor, b"new")
    path.write_text("by another process")
    file.finish()
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.usefixtures("nameless")
@pytest.mark.parametrize("older", [True, False])
@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOENT])
def test_what_cannot_be_linked_is_copied(
    number: int, older: bool, umask: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on file systems without links, and where a sandbox forbids them."""
    path = tmp_path / "out"
    text = os.urandom(100_000)
    if older:
        path.write_text("older")
        path.chmod(0o604)
    before = open_descriptors()
    monkeypatch.setattr(unfinished_file, "_COPY_BYTES", 30_000)
    monkeypatch.setattr(unfinished_file.os, "link", refuse(number))
    with OutputFile(str(path), durable=True) as output:
        output.write(text)
        assert len(os.listdir(tmp_path)) == older
    assert path.read_bytes() == text
    assert stat.S_IMODE(path.stat().st_mode) == (0o604 if older else 0o640)
    assert os.listdir(tmp_path) == ["out"]
    assert open_descriptors() == before


@pytest.mark.usefixtures("nameless")
@pytest.mark.parametrize("call", ["sendfile", "replace"])
def test_a_copy_that_fails_leaves_nothing(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happens where a link may be made is in `tests/faults`."""
    before = open_descriptors()
    output = OutputFile(str(tmp_path / "out"))
    output.write(b"text")
    monkeypatch.setattr(unfinished_file.os, "link", refuse(errno.EPERM))
    monkeypatch.setattr(unfinished_file.os, call, refuse(errno.EIO))
    with pytest.raises(OutputError, match="out: cannot be completed: Input/output error"):
        output.complete()
    assert os.listdir(tmp_path) == []
    assert open_descriptors() == before


def test_a_system_that_forgets_the_umask_is_not_trusted(
    umask: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Linux before 6.0 does for files without a name where there are no access lists."""
    really_open = os.open

    def forget(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
        if flags & os.O_TMPFILE != os.O_TMPFILE:
            return really_open(path, flags, mode, **more)
        descriptor = really_open(path, flags, mode, **more)
        os.fchmod(descriptor, mode)
        return descriptor

    monkeypatch.setattr(os, "open", forget)
    write(tmp_path / "out", b"text")
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640
    os.umask(0)
    write(tmp_path / "open", b"text")
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o666


def test_permissions_are_as_they_are_given(umask: None, way: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    UnfinishedFile(str(path), 0o600).finish()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_permissions_that_cannot_be_set_are_an_error(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out"
    path.write_text("older")
    before = open_descriptors()
    monkeypatch.setattr(unfinished_file.os, "fchmod", refuse(errno.EPERM))
    with pytest.raises(OutputError, match="cannot be opened for writing: Operation not permitted"):
        OutputFile(str(path))
    assert os.listdir(tmp_path) == ["out"]
    assert open_descriptors() == before


def watch_calls(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """Return the list that takes the calls of `os` that keep data, with what they concern."""
    told: list[str] = []

    def watch(name: str) -> None:
        really = getattr(os, name)

        def call(*arguments: Any, **more: Any) -> Any:
            concerned = arguments[0]
            if isinstance(concerned, int):
                concerned = os.readlink(f"/proc/self/fd/{concerned}")
            if name in ("link", "replace"):
                concerned = arguments[1]
            kind = "folder" if os.path.realpath(concerned) == str(folder) else "file"
            if name in ("link", "replace"):
                kind = os.path.basename(concerned)[:10]
            told.append(f"{name} {kind}")
            return really(*arguments, **more)

        monkeypatch.setattr(os, name, call)

    for name in ("fsync", "link", "replace"):
        watch(name)
    return told


@pytest.mark.parametrize("older", [True, False])
def test_a_durable_file_is_synced_before_and_its_name_after(
    older: bool, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out"
    if older:
        path.write_text("older")
    told = watch_calls(monkeypatch, tmp_path)
    with OutputFile(str(path), durable=True) as output:
        output.write(b"text")
    naming = ["link out"]
    if way == "named":
        naming = ["replace out"]
    elif older:
        naming = ["link out", "link .mummergpu", "replace out"]
    assert told == ["fsync file", *naming, "fsync folder"]
    told.clear()
    with OutputFile(str(path)) as output:
        output.write(b"text")
    assert not any(call.startswith("fsync") for call in told)


@pytest.mark.usefixtures("nameless")
def test_a_durable_copy_is_synced_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfinished_file.os, "link", refuse(errno.EPERM))
    told = watch_calls(monkeypatch, tmp_path)
    write(tmp_path / "out", b"text", durable=True)
    assert [call for call in told if not call.startswith("link")] == [
        "fsync file",
        "fsync file",
        "replace out",
        "fsync folder",
    ]


@pytest.mark.parametrize(
    ("number", "is_error"),
    [(errno.EINVAL, False), (errno.EOPNOTSUPP, False), (errno.EIO, True), (errno.ENOSPC, True)],
)
def test_a_folder_that_cannot_be_synced_is_no_failure_but_a_failed_disk_is(
    number: int, is_error: bool, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out"
    really_sync = os.fsync

    def sync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        really_sync(descriptor)

    before = open_descriptors()
    monkeypatch.setattr(os, "fsync", sync)
    output = OutputFile(str(path), durable=True)
    output.write(b"text")
    if is_error:
        with pytest.raises(OutputError, match=f"cannot be completed: {os.strerror(number)}"):
            output.complete()
    else:
        output.complete()
    # It is complete, so it stays, and nobody knows whether a crash would take it away.
    assert path.read_bytes() == b"text"
    assert os.listdir(tmp_path) == ["out"]
    assert open_descriptors() == before


@pytest.mark.parametrize("name", ["O_TMPFILE", "O_PATH", "/proc", "/proc/self"])
def test_on_other_systems_an_unfinished_file_has_a_temporary_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "/proc":
        monkeypatch.setattr(unfinished_file, "_path_of", lambda number: f"/none/{number}")
    elif name == "/proc/self":
        # What lies there is another file.
        monkeypatch.setattr(unfinished_file, "_path_of", lambda _number: __file__)
    else:
        monkeypatch.delattr(os, name)
    before = open_descriptors()
    file = UnfinishedFile(str(tmp_path / "made"))
    (path,) = tmp_path.iterdir()
    assert unfinished_file.is_temporary_name(path.name)
    os.write(file.descriptor, b"text")
    file.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    assert (tmp_path / "made").read_bytes() == b"text"
    assert open_descriptors() == before
