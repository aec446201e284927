"""Both libraries share a device with others of the same process, and fail in the same words."""

import gc

import numpy as np
import pytest

from mummergpu.cuda import pinned_staging
from mummergpu.cuda.device import DeviceMemoryError
from mummergpu.cuda.device_library import DEVICE_LIBRARIES, device_opener
from mummergpu.cuda.pinned_staging import Uploader
from mummergpu.cuda.requirements import cuda_facts, obstacles
from mummergpu.errors import BackendError
from mummergpu.index.mapped_file import map_file
from mummergpu.studies.gathers import device_gathers

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

LENT_BYTES = 64 << 20


class Neighbour:
    """A user of the runtime library, as torch and cupy are: it uses the primary context."""

    def __init__(self):
        self._sent = np.random.default_rng(1).integers(0, 255, LENT_BYTES, dtype=np.uint8)
        self._address = self._call("cudaMalloc", LENT_BYTES)
        self._copy(self._address, self._sent.ctypes.data, "cudaMemcpyHostToDevice")

    def works(self):
        """Tell whether the memory is as it was, and more can be had."""
        found = np.zeros_like(self._sent)
        self._copy(found.ctypes.data, self._address, "cudaMemcpyDeviceToHost")
        self._call("cudaFree", self._call("cudaMalloc", LENT_BYTES))
        return bool(np.array_equal(found, self._sent))

    def free(self):
        self._call("cudaFree", self._address)

    def _copy(self, to, start, way):
        from cuda.bindings import runtime

        self._call("cudaMemcpy", to, start, LENT_BYTES, getattr(runtime.cudaMemcpyKind, way))

    @staticmethod
    def _call(name, *arguments):
        from cuda.bindings import runtime

        error, *values = getattr(runtime, name)(*arguments)
        assert error == runtime.cudaError_t.cudaSuccess, (name, error)
        return values[0] if values else None


@pytest.fixture
def neighbour(cuda_device):
    found = Neighbour()
    yield found
    found.free()


def use(device, cache):
    """Use all parts of a device, and leave a loaded program behind."""
    assert device_gathers(device, cache, 1 << 20, 1)["merged"] > 0
    with device.current():
        stream, buffer = device.new_stream(), device.allocate(1 << 20)
        sent, received = device.pinned(1 << 17, np.int64), device.pinned(1 << 17, np.int64)
        sent[:] = np.arange(1 << 17)
        before = stream.mark()
        stream.copy_in(buffer.address, sent)
        textures = [
            device.linear_texture(buffer.address, 1 << 16, 16),
            device.array_texture(np.arange(1 << 12, dtype=np.uint32), 64, 16),
        ]
        stream.copy_out(received, buffer.address)
        after = stream.mark()
        stream.synchronize()
        assert np.array_equal(sent, received) and after.milliseconds_since(before) > 0
        for texture in textures:
            texture.free()
        buffer.free()
        stream.free()


def test_a_neighbour_keeps_its_context(neighbour, device_library, cache):
    for _ in range(2):
        device = device_opener(device_library)(0)
        with device.current():
            # It works in the same context, which stays current for it.
            assert neighbour.works()
        use(device, cache)
        assert neighbour.works()
        device.close()
        assert neighbour.works()


def test_both_libraries_share_a_device(cuda_device, cache):
    for library in DEVICE_LIBRARIES:
        if missing := obstacles(cuda_facts(False, library), library):
            pytest.skip(str(missing[0]))
    for one, other in (DEVICE_LIBRARIES, DEVICE_LIBRARIES[::-1]):
        stays = device_opener(one)(0)
        with stays.current():
            stream, buffer = stays.new_stream(), stays.allocate(LENT_BYTES)
            numbers = stays.pinned(LENT_BYTES // 8, np.int64)
            numbers[:] = np.arange(LENT_BYTES // 8)
            stream.copy_in(buffer.address, numbers)
            goes = device_opener(other)(0)
            use(goes, cache)
            goes.close()
            found = np.zeros_like(numbers)
            stream.copy_out(found, buffer.address)
            stream.synchronize()
            assert np.array_equal(found, np.arange(LENT_BYTES // 8))
            del numbers
            buffer.free()
            stream.free()
        use(stays, cache)
        stays.close()


def test_a_device_is_opened_again_after_it_was_closed(device_library, cache):
    for _ in range(3):
        device = device_opener(device_library)(0)
        use(device, cache)
        device.close()


@pytest.mark.usefixtures("whole_device")
def test_memory_that_is_forgotten_comes_back(device):
    with device.current():
        before = device.memory()[0]
        buffer = device.allocate(1 << 30)
        assert device.memory()[0] < before - (1 << 29)
        buffer.free()
        for _ in range(3):
            device.allocate(1 << 30)
        gc.collect()
        assert device.memory()[0] > before - (1 << 29)


def test_errors_are_those_of_the_driver(device):
    with device.current():
        free, total = device.memory()
        assert 0 < free <= total
        with pytest.raises(DeviceMemoryError):
            device.allocate(2 * total)
    with pytest.raises(BackendError, match="the device failed: cuModuleLoadData"):
        with device.current():
            device.load(b"no program")
    with pytest.raises(BackendError, match="the device failed: cuMemHostAlloc failed"):
        with device.current():
            device.pinned(1 << 50, np.uint8)
    with pytest.raises(BackendError, match="there is no device 99; the driver finds"):
        device_opener(device.library)(99)
    # None of these has harmed it.
    with device.current():
        buffer, stream = device.allocate(1 << 20), device.new_stream()
        stream.fill_zero(buffer.address, 1 << 20)
        stream.synchronize()
        buffer.free()
        stream.free()


def test_kernels_use_what_they_were_compiled_to(device, cache):
    from mummergpu.cuda.program import read_sources
    from mummergpu.studies.gathers import GATHER_PROGRAM

    with device.current():
        cubin = cache.cubin(read_sources(), GATHER_PROGRAM, device.architecture)
        found = device.load(cubin).resources("read_merged")
    assert 0 < found.registers < 256 and found.local_bytes == 0
    assert 0 < found.occupancy <= 1


PIECE = 1 << 20
THREADS = 4
SENT_BYTES = 33 * PIECE + 77


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
    path.write_bytes(np.random.default_rng(5).bytes(SENT_BYTES))
    with open(path, "rb") as file:
        return map_file(file.fileno(), SENT_BYTES)


def arrives(device, arrays):
    """Copy arrays to one place of a device after the other; tell whether all arrive."""
    with device.current():
        stream = device.new_stream()
        buffer = device.allocate(SENT_BYTES)
        uploader = Uploader(device, stream, THREADS)
        equal = []
        for _ in range(2):
            with uploader.prepared(sum(array.nbytes for array in arrays) + PIECE * THREADS):
                for array in arrays:
                    stream.fill_zero(buffer.address, SENT_BYTES)
                    uploader.copy_in(buffer.address, array)
                    found = np.full(SENT_BYTES, 7, dtype=np.uint8)
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
        stream, buffer = device.new_stream(), device.allocate(SENT_BYTES)
        uploader = Uploader(device, stream, THREADS)
        halves = [device.pinned(8 * PIECE, np.uint8) for _ in range(2)]
        with uploader.prepared(SENT_BYTES):
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
        buffer = device.allocate(SENT_BYTES)
        # No machine has so much memory to pin.
        monkeypatch.setattr(pinned_staging, "PIECE_BYTES", 1 << 50)
        uploader = Uploader(device, stream, THREADS)
        with pytest.raises(BackendError, match="the device failed"), device.current():
            with uploader.prepared(SENT_BYTES):
                uploader.copy_in(buffer.address, mapped)
        buffer.free()
        stream.free()
    monkeypatch.setattr(pinned_staging, "PIECE_BYTES", PIECE)
    assert arrives(device, [mapped])
