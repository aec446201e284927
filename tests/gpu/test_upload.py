"""Large arrays go through pinned pieces to a real device."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mummergpu.cuda import pinned_staging
from mummergpu.cuda.pinned_staging import Uploader
from mummergpu.errors import BackendError
from mummergpu.index.mapped_file import map_file

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

PIECE = 1 << 20
THREADS = 4
BYTES = 33 * PIECE + 77

Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def small_arrays(monkeypatch):
    """Small arrays go through pinned memory, too."""
    monkeypatch.setattr(pinned_staging, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(pinned_staging, "BYTES_PER_THREAD", PIECE)
    monkeypatch.setattr(pinned_staging, "LEAST_BYTES", 1)


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """A mapped file of random bytes."""
    path = tmp_path_factory.mktemp("upload") / "bytes"
    path.write_bytes(np.random.default_rng(5).bytes(BYTES))
    with open(path, "rb") as file:
        return map_file(file.fileno(), BYTES)


def arrives(device, arrays):
    """Copy arrays to one place of a device after the other; tell whether all arrive."""
    with device.current():
        stream = device.new_stream()
        buffer = device.allocate(BYTES)
        uploader = Uploader(device, stream, THREADS)
        equal = []
        for _ in range(2):
            with uploader.prepared(sum(array.nbytes for array in arrays) + PIECE * THREADS):
                for array in arrays:
                    stream.fill_zero(buffer.address, BYTES)
                    uploader.copy_in(buffer.address, array)
                    found = np.full(BYTES, 7, dtype=np.uint8)
                    stream.copy_out(found, buffer.address)
                    stream.synchronize()
                    sent = array.reshape(-1).view(np.uint8)
                    equal.append(np.array_equal(found[: sent.size], sent))
                    equal.append(not found[sent.size :].any())
        buffer.free()
        stream.free()
    return all(equal)


def test_all_bytes_arrive(device, mapped):
    sizes = [0, 1, *(PIECE * n + d for n in (1, 2, THREADS, 2 * THREADS + 1) for d in (-1, 0, 1))]
    arrays = [mapped, mapped[PIECE // 2 + 3 :], *(mapped[5 : 5 + size] for size in sizes)]
    arrays.append(np.arange(2 * PIECE, dtype=np.int64))
    assert arrives(device, arrays)


def test_copies_follow_the_work_before_them(device, mapped):
    """An array takes the place of one that is still being copied away on the device's side."""
    with device.current():
        stream, buffer = device.new_stream(), device.allocate(BYTES)
        uploader = Uploader(device, stream, THREADS)
        halves = [device.pinned(8 * PIECE, np.uint8) for _ in range(2)]
        with uploader.prepared(BYTES):
            for number, half in enumerate(halves):
                begin = 8 * PIECE * number
                uploader.copy_in(buffer.address, mapped[begin : begin + 8 * PIECE])
                stream.copy_out(half, buffer.address)
        assert np.array_equal(np.concatenate(halves), mapped[: 16 * PIECE])
        halves.clear()
        buffer.free()
        stream.free()


def test_an_error_of_the_driver_arrives(device, mapped, monkeypatch):
    with device.current():
        stream = device.new_stream()
        buffer = device.allocate(BYTES)
        # No machine has so much memory to pin.
        monkeypatch.setattr(pinned_staging, "PIECE_BYTES", 1 << 50)
        uploader = Uploader(device, stream, THREADS)
        with pytest.raises(BackendError, match="the device failed"), device.current():
            with uploader.prepared(BYTES):
                uploader.copy_in(buffer.address, mapped)
        buffer.free()
        stream.free()
    monkeypatch.setattr(pinned_staging, "PIECE_BYTES", PIECE)
    assert arrives(device, [mapped])
