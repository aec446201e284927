"""Files that get their name when they are complete."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mummergpu.errors import OutputError
from mummergpu.runtime import unfinished_file
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.unfinished_file import UnfinishedFile


def write(path, text, durable=False):
    file = UnfinishedFile(str(path))
    os.write(file.descriptor, text)
    file.finish(durable)


def refuse(number):
    def fail(*_arguments, **_more):
        raise OSError(number, os.strerror(number))

    return fail


def open_descriptors():
    return set(os.listdir("/proc/self/fd"))


def test_descriptors_are_closed(tmp_path):
    before = open_descriptors()
    write(tmp_path / "out", b"new")
    write(tmp_path / "out", b"again")
    UnfinishedFile(str(tmp_path / "out")).abandon()
    with pytest.raises(FileNotFoundError):
        UnfinishedFile(str(tmp_path / "missing" / "out"))
    assert open_descriptors() == before
    assert (tmp_path / "out").read_bytes() == b"again"
    assert os.listdir(tmp_path) == ["out"]


def test_the_last_of_two_that_are_written_at_once_stays(tmp_path):
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

sys.stdin.read()
for turn in range(300):
    with OutputFile(sys.argv[1]) as output:
        for piece in range(5):
            output.write(sys.argv[2].encode() * 1000)
    if turn % 3 == 0 and sys.argv[2] == "A":
        os.unlink(sys.argv[1])
"""


def test_processes_that_write_the_same_file_leave_a_whole_one(tmp_path):
    path = tmp_path / "out"
    words = [sys.executable, "-c", MANY, str(path)]
    processes = [
        subprocess.Popen([*words, letter], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
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


def test_permissions_are_as_they_are_given(umask, tmp_path):
    path = tmp_path / "out"
    UnfinishedFile(str(path), 0o600).finish()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_permissions_that_cannot_be_set_are_an_error(tmp_path, monkeypatch):
    path = tmp_path / "out"
    path.write_text("older")
    before = open_descriptors()
    monkeypatch.setattr(unfinished_file.os, "fchmod", refuse(errno.EPERM))
    with pytest.raises(OutputError, match="cannot be opened for writing: Operation not permitted"):
        OutputFile(str(path))
    assert os.listdir(tmp_path) == ["out"]
    assert open_descriptors() == before


def watch_calls(monkeypatch):
    """Return the list that takes the calls of `os` that keep data, with what they concern."""
    told = []
    really_sync, really_replace = os.fsync, os.replace

    def sync(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        told.append("fsync folder" if is_folder else "fsync file")
        really_sync(descriptor)

    def replace(path, target):
        told.append(f"replace {os.path.basename(target)}")
        really_replace(path, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    return told


@pytest.mark.parametrize("older", [True, False])
def test_a_durable_file_is_synced_before_and_its_name_after(older, tmp_path, monkeypatch):
    path = tmp_path / "out"
    if older:
        path.write_text("older")
    told = watch_calls(monkeypatch)
    with OutputFile(str(path), durable=True) as output:
        output.write(b"text")
    assert told == ["fsync file", "replace out", "fsync folder"]
    told.clear()
    with OutputFile(str(path)) as output:
        output.write(b"text")
    assert not any(call.startswith("fsync") for call in told)


@pytest.mark.parametrize(
    ("number", "is_error"),
    [(errno.EINVAL, False), (errno.EOPNOTSUPP, False), (errno.EIO, True), (errno.ENOSPC, True)],
)
def test_a_folder_that_cannot_be_synced_is_no_failure_but_a_failed_disk_is(
    number, is_error, tmp_path, monkeypatch
):
    path = tmp_path / "out"
    really_sync = os.fsync

    def sync(descriptor):
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


def test_an_unfinished_file_has_a_temporary_name(tmp_path):
    before = open_descriptors()
    file = UnfinishedFile(str(tmp_path / "made"))
    (path,) = tmp_path.iterdir()
    assert unfinished_file.is_temporary_name(path.name)
    os.write(file.descriptor, b"text")
    file.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    assert (tmp_path / "made").read_bytes() == b"text"
    assert open_descriptors() == before
