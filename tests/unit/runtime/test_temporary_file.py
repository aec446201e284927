"""Temporary files: what goes wrong with them is told of their folder."""

import errno
import tempfile

import pytest

from mummergpu.errors import InputError, OutputError
from mummergpu.runtime.temporary_file import open_temporary_file, temporary_data


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
