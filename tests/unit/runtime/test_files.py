"""Output files, temporary ones and unfinished ones: whole under their name, or not there."""

import errno
import os
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from helpers.children import printed_by

from mummergpu.errors import InputError, OutputError
from mummergpu.runtime import output_file as files
from mummergpu.runtime import unfinished_file
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.temporary_file import open_temporary_file, temporary_data
from mummergpu.runtime.unfinished_file import UnfinishedFile, remove_unfinished


@pytest.mark.parametrize("older", [[], ["out"]], ids=["new", "older"])
def test_file_appears_when_complete(tmp_path, older):
    path = tmp_path / "out"
    for name in older:
        (tmp_path / name).write_text("old")
    with OutputFile(str(path)) as output:
        output.write(b"first ")
        output.write(np.frombuffer(b"second", dtype=np.uint8))
        output.write(np.empty(0, dtype=np.uint8))
        assert [name for name in os.listdir(tmp_path) if name == "out"] == older
        assert not older or path.read_text() == "old"
        assert len(os.listdir(tmp_path)) == 1 + len(older)
        assert output.is_file
    assert path.read_bytes() == b"first second"
    assert os.listdir(tmp_path) == ["out"]


def test_error_leaves_everything_as_it_was(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(RuntimeError), OutputFile(str(path)) as output:
        output.write(b"half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]


def test_unfinished_files_are_removed_from_outside(tmp_path):
    output = OutputFile(str(tmp_path / "out"))
    output.write(b"half")
    assert len(os.listdir(tmp_path)) == 1
    remove_unfinished()
    assert os.listdir(tmp_path) == []
    output.abandon()


def test_new_file_has_the_mode_of_the_umask(tmp_path, umask):
    path = tmp_path / "out"
    OutputFile(str(path)).complete()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_replaced_file_keeps_its_mode(tmp_path, umask):
    path = tmp_path / "out"
    path.touch()
    path.chmod(0o606)
    OutputFile(str(path)).complete()
    assert stat.S_IMODE(path.stat().st_mode) == 0o606


@pytest.mark.parametrize("exists", [True, False])
def test_link_stays_a_link(tmp_path, exists):
    target = tmp_path / "folder" / "target"
    target.parent.mkdir()
    if exists:
        target.touch()
    link = tmp_path / "link"
    link.symlink_to(target)
    with OutputFile(str(link)) as output:
        output.write(b"text")
    assert link.is_symlink()
    assert target.read_bytes() == b"text"


NO_PLACES = {"missing/out": "No such file or directory", "new/": "No such file or directory"}
NO_PLACES |= {".": "Is a directory", "file/out": "Not a directory"}


@pytest.mark.parametrize(("name", "reason"), NO_PLACES.items())
def test_unwritable_places_are_named(tmp_path, name, reason):
    (tmp_path / "file").touch()
    path = f"{tmp_path}/{name}"
    with pytest.raises(OutputError) as failure:
        OutputFile(path)
    assert str(failure.value) == f"{path}: cannot be opened for writing: {reason}"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_folder_and_file_without_permission(tmp_path):
    path = tmp_path / "out"
    path.touch()
    path.chmod(0o444)
    with pytest.raises(OutputError, match="Permission denied"):
        OutputFile(str(path))
    path.unlink()
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(OutputError, match="Permission denied"):
            OutputFile(str(path))
    finally:
        tmp_path.chmod(0o755)


def test_devices_stay_devices_and_a_full_one_is_an_error():
    with OutputFile("/dev/null") as output:
        output.write(b"text")
    with pytest.raises(OutputError, match=r"^/dev/full: cannot be written: No space left"):
        with OutputFile("/dev/full") as output:
            output.write(b"text")
    for name in ("null", "full"):
        assert stat.S_ISCHR(os.stat(f"/dev/{name}").st_mode)


OUTGROWN = """
import resource, signal, sys
from mummergpu.errors import OutputError
from mummergpu.runtime.output_file import OutputFile
limit, piece = map(int, sys.argv[2:])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    with OutputFile(sys.argv[1]) as output:
        for written in range(0, limit, piece):
            print(written)
            output.write(bytes(piece))
except OutputError as error:
    print(error.message)
"""


@pytest.mark.parametrize(("limit", "piece"), [(1000, 4000), (11 << 20, 3 << 20)])
def test_file_that_outgrows_its_limit_is_removed(tmp_path, limit, piece):
    *written, message = printed_by("-c", OUTGROWN, tmp_path / "out", limit, piece).splitlines()
    assert message == "cannot be written: File too large"
    # Room that is reserved beyond the limit does no harm before it is needed.
    assert int(written[-1]) == limit // piece * piece
    assert os.listdir(tmp_path) == []


def test_named_pipe_is_written_directly(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    with OutputFile(str(path)) as output:
        output.write(b"text")
    reader.join()
    assert got == [b"text"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_closed_pipe_is_not_an_output_error():
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError), OutputFile(f"/dev/fd/{writing}") as output:
        output.write(b"text")
    os.close(writing)


def test_pipe_that_does_not_block_gets_everything():
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    text = bytes(1 << 20)
    got = []
    with os.fdopen(reading, "rb") as stream:
        reader = threading.Thread(target=lambda: got.append(stream.read()))
        reader.start()
        with OutputFile(f"/dev/fd/{writing}") as output:
            output.write(text)
        os.close(writing)
        reader.join()
    assert got == [text]


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1"])
def test_standard_output_goes_where_it_was_sent(name, tmp_path):
    """A shell's ``>> file`` is added to, neither replaced nor overwritten."""
    path = tmp_path / "out"
    path.write_text("before ")
    program = "import sys; from mummergpu.runtime.output_file import OutputFile\n"
    program += "with OutputFile(sys.argv[1]) as output: output.write(b'text')"
    with path.open("ab") as stream:
        subprocess.run([sys.executable, "-c", program, name], stdout=stream, check=True)
    assert path.read_text() == "before text"


def pieces_of_a_large_file():
    """Return pieces that add up to several steps of reserving."""
    return [bytes([65 + number]) * (3 << 20) for number in range(12)]


def test_an_interrupt_at_the_rename_leaves_nothing(tmp_path, monkeypatch):
    (tmp_path / "out").write_bytes(b"older")

    def interrupt(*_given):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt), OutputFile(str(tmp_path / "out")) as output:
        output.write(b"new")
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"older"


def test_large_file_holds_no_room_that_it_does_not_need(tmp_path, monkeypatch):
    reserved = []

    def allocate(descriptor, begin, end):
        reserved.append((begin, end))
        return allocate_room(descriptor, begin, end)

    allocate_room = files._allocate
    monkeypatch.setattr(files, "_allocate", allocate)
    path = tmp_path / "out"
    pieces = pieces_of_a_large_file()
    with OutputFile(str(path)) as output:
        for piece in pieces:
            output.write(piece)
            assert os.fstat(output._descriptor).st_size == output._written
    assert path.read_bytes() == b"".join(pieces)
    assert path.stat().st_blocks * 512 <= path.stat().st_size + (1 << 20)
    # Each step begins where the one before has ended, and none is wasted on small files.
    assert 2 <= len(reserved) <= 5
    assert [begin for begin, _ in reserved] == [0] + [end for _, end in reserved[:-1]]


def test_large_file_on_a_system_that_cannot_reserve(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(files, "_allocate", lambda *stretch: asked.append(stretch))
    path = tmp_path / "out"
    pieces = pieces_of_a_large_file()
    with OutputFile(str(path)) as output:
        for piece in pieces:
            output.write(piece)
    assert path.read_bytes() == b"".join(pieces)
    assert len(asked) == 1


def test_room_cannot_be_reserved_in_a_pipe():
    reading, writing = os.pipe()
    assert not files._allocate(writing, 0, 4096)
    os.close(reading)
    os.close(writing)


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
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [subprocess.Popen([*words, letter], **pipes) for letter in "AB"]
    for process in processes:
        process.stdin.close()
    contents = set()
    while any(process.poll() is None for process in processes):
        with suppress(FileNotFoundError):
            contents.add(path.read_bytes())
    for process in processes:
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


def test_what_is_written_can_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary_data(), open_temporary_file() as file:
        file.write(b"ACGT")
        file.seek(0)
        assert file.read() == b"ACGT"
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(OutputError) as caught, temporary_data():
        raise OSError(errno.ENOSPC, "whatever")
    assert caught.value.path == str(tmp_path)
    expected = "temporary data cannot be kept: no space left on device (see TMPDIR)"
    assert caught.value.message == expected


def test_no_folder_at_all_is_told(monkeypatch):
    def refuse():
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in [...]")

    monkeypatch.setattr(tempfile, "gettempdir", refuse)
    monkeypatch.setenv("TMPDIR", "/wanted")
    with pytest.raises(OutputError, match=r"^/wanted: temporary data cannot be kept: no such file"):
        with temporary_data():
            open_temporary_file()


def test_other_faults_pass():
    with pytest.raises(InputError, match="reads: bad"), temporary_data():
        raise InputError("bad", "reads")


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)
