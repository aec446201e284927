"""A mapped file, and the zeros around it."""

import gc
import mmap
import os
import sys

import numpy as np
import pytest

from mummergpu.index import mapped_file
from mummergpu.index.mapped_file import bring_in, give_up, map_file

PAGE = 4096


def mapped(path, before=0, behind=0):
    with open(path, "rb", buffering=0) as file:
        return map_file(file.fileno(), path.stat().st_size, before, behind)


def is_mapped(address):
    with open("/proc/self/maps") as maps:
        ranges = [[int(end, 16) for end in line.split()[0].split("-")] for line in maps]
    return any(begin <= address < end for begin, end in ranges)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(1, 251)) * 40)
    return path


@pytest.mark.parametrize(("before", "behind"), [(0, 0), (1, 1), (PAGE, 1 << 38)])
def test_a_file_is_an_array(path, before, behind):
    array = mapped(path, before, behind)
    assert type(array) is np.ndarray
    assert (array.dtype, array.flags.writeable, array.flags.c_contiguous) == (np.uint8, True, True)
    assert array.tobytes() == path.read_bytes()
    array[0] = 0
    assert path.read_bytes()[0] == 1


def test_zeros_lie_around_the_file(path):
    array = mapped(path, 10 * PAGE, 1 << 38)
    around = np.lib.stride_tricks.as_strided(array[:1], shape=(10 * PAGE,), strides=(-1,))
    assert not around[1:].any()
    for distance in (array.size, PAGE * 100, (1 << 38) + array.size):
        assert np.lib.stride_tricks.as_strided(array, shape=(2,), strides=(distance,))[1] == 0


def test_memory_is_given_back_with_the_last_array(path):
    array = mapped(path, PAGE, PAGE)
    part = array[5:].view(np.uint8)
    begin = array.ctypes.data
    del array
    gc.collect()
    assert is_mapped(begin) and part[0] == 6
    del part
    gc.collect()
    assert not is_mapped(begin)


def test_bringing_in_changes_nothing(path):
    array = mapped(path)
    bring_in([array, array[PAGE:]])
    assert array.tobytes() == path.read_bytes()


def test_what_cannot_be_mapped_is_an_error(path):
    with open(path, "rb") as file:
        descriptor = file.fileno()
    with pytest.raises(OSError, match="Bad file descriptor"):
        map_file(descriptor, 100)
    with pytest.raises(OSError, match="Bad file descriptor"):
        map_file(descriptor, 100, PAGE, PAGE)


def test_room_that_the_system_refuses_is_an_error(path):
    with pytest.raises(OSError, match="Cannot allocate memory"):
        mapped(path, 1 << 32, 1 << 60)


def test_room_takes_no_memory(path):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    array = mapped(path, 1 << 32, 1 << 38)
    assert array[9] == 10
    assert resident() - before < 1 << 24


@pytest.mark.parametrize(
    ("system", "page_bytes", "is_lost"),
    [("linux", PAGE, True), ("linux", 4 * PAGE, False), ("darwin", PAGE, False)],
)
def test_what_is_written_to_an_array_that_is_given_up_is_lost_wholly_or_not_at_all(
    system, page_bytes, is_lost, path, monkeypatch
):
    if mmap.PAGESIZE != PAGE or sys.platform != "linux":
        pytest.skip("only Linux with pages of 4 KiB loses what is written")
    # A mapping that is made with another size of pages would take its neighbours along at its end.
    array, written = mapped(path), mapped(path)
    array[: 2 * PAGE] = 255
    monkeypatch.setattr(mapped_file, "_IS_LINUX", system == "linux")
    monkeypatch.setattr(mmap, "PAGESIZE", page_bytes)
    give_up([array[:PAGE]])
    assert (array[:PAGE] == 255).all() == (not is_lost)
    assert np.array_equal(array[:PAGE], written[:PAGE]) == is_lost
    assert (array[PAGE : 2 * PAGE] == 255).all()


def test_arrays_are_brought_in_on_a_system_without_the_call_of_linux(path, monkeypatch):
    calls = []
    array = mapped(path)
    monkeypatch.setattr(mapped_file, "_BRING_IN", mapped_file._WILL_NEED)
    monkeypatch.setattr(mmap, "PAGESIZE", 4 * PAGE)
    library = mapped_file._library()

    class Watched:
        @staticmethod
        def madvise(begin, size, advice):
            calls.append((begin, size, advice))
            return int(library.madvise(begin, size, advice))

    monkeypatch.setattr(mapped_file, "_library", Watched)
    mapped_file._populate([array[PAGE:]])
    ((begin, size, advice),) = calls
    assert begin % (4 * PAGE) == 0 and begin <= array.ctypes.data + PAGE
    assert begin + size == array.ctypes.data + array.size
    assert advice == 3 and array.tobytes() == path.read_bytes()
