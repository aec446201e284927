"""Capsules of DLPack: numpy consumes them here, from a device whose memory is the host's."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers.host_device import HostDevice, HostSharedMemory

from mummergpu.cuda import dlpack
from mummergpu.cuda.device_array import DeviceArray
from mummergpu.errors import ExportError, MummergpuError

HERE = Path(__file__).resolve()

TYPES = (np.uint32, np.int64, np.bool_, np.uint8, np.float32)

VALID = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
POINTER = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
RENAME = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)


@pytest.fixture
def device() -> Iterator[HostDevice]:
    """A device of which nothing may be left, and no capsule either."""
    made = HostDevice()
    before = dlpack.export_count()
    yield made
    gc.collect()
    assert dlpack.export_count() == before
    assert not made.shared


def filled(device: HostDevice, values: np.ndarray) -> DeviceArray:
    memory = device.allocate_shared(max(1, values.nbytes))
    ctypes.memmove(memory.address, values.ctypes.data, values.nbytes)
    return DeviceArray(memory, values.dtype.type, values.size)


class Unversioned:
    """An exporter from before DLPack 1.0."""

    def __init__(self, array: DeviceArray) -> None:
        self._array = array

    def __dlpack__(self, stream: int | None = None) -> object:
        return self._array.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("wrap", [lambda array: array, Unversioned], ids=["1.0", "before"])
def test_a_consumer_has_the_same_memory(
    device: HostDevice, kind: type, wrap: Callable[[DeviceArray], object]
) -> None:
    values = np.arange(1000).astype(kind)
    array = filled(device, values)
    taken = np.from_dlpack(wrap(array))
    assert taken.dtype == values.dtype and taken.shape == values.shape
    assert taken.ctypes.data == array.address
    assert np.array_equal(taken, values) and np.array_equal(array.to_host(), values)


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_libraries_take_it_as_it_is(device: HostDevice, name: str) -> None:
    """Those that take arrays of the host's memory as well as of a GPU's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pytest.importorskip(name, reason=f"{name} is not installed")
    if name == "jax":
        library.config.update("jax_enable_x64", True)
        library = library.dlpack
    for kind in (np.uint32, np.int64, np.bool_):
        values = np.arange(100).astype(kind)
        array = filled(device, values)
        taken = library.from_dlpack(array)
        assert taken.__dlpack_device__() == (dlpack.CPU, 0)
        assert np.from_dlpack(taken).ctypes.data == array.address, "copied"
        assert np.array_equal(np.asarray(taken), values)
        del array
        assert len(device.shared) == 1
        del taken
        gc.collect()
        assert not device.shared


def test_the_memory_stays_until_nobody_has_it(device: HostDevice) -> None:
    values = np.arange(50)
    array = filled(device, values)
    first, second = np.from_dlpack(array), np.from_dlpack(Unversioned(array))
    del array
    assert len(device.shared) == 1
    part = first[10:20]
    del first
    assert len(device.shared) == 1 and np.array_equal(second, values)
    del second
    assert len(device.shared) == 1 and np.array_equal(part, values[10:20])
    del part
    assert not device.shared


def test_another_thread_may_be_the_last(device: HostDevice) -> None:
    array = filled(device, np.arange(50))
    held = [np.from_dlpack(array)]
    del array
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert not device.shared


def test_a_deleter_is_called_without_the_lock_of_the_interpreter(device: HostDevice) -> None:
    """As a thread of another library does, which knows nothing of Python."""
    array = filled(device, np.arange(50))
    capsule = array.__dlpack__()
    address = POINTER(capsule, b"dltensor")
    taken = b"used_dltensor"
    assert RENAME(capsule, taken) == 0
    # The structure begins with the tensor of 48 bytes and the manager.
    deleter = ctypes.c_void_p.from_address(address + 56).value
    del array, capsule
    assert len(device.shared) == 1 and deleter
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(address)
    assert not device.shared


def test_a_capsule_that_nobody_takes_keeps_nothing(device: HostDevice) -> None:
    array = filled(device, np.arange(50))
    before = dlpack.export_count()
    capsule = array.__dlpack__()
    assert dlpack.export_count() == before + 1
    del capsule
    assert dlpack.export_count() == before
    kept = array.__dlpack__(max_version=(1, 1))
    del array
    assert len(device.shared) == 1
    del kept
    assert dlpack.export_count() == before and not device.shared


def test_the_end_of_an_array_ends_its_refused_capsules(device: HostDevice) -> None:
    array = filled(device, np.arange(50))
    for _ in range(3):
        array.__dlpack__()
    del array
    assert not device.shared


def test_a_consumer_that_refuses_keeps_its_error(
    device: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numpy drops the capsule of a GPU while its exception is set."""
    monkeypatch.setattr(HostSharedMemory, "place", (dlpack.CUDA, 0))
    array = filled(device, np.arange(50))
    for exporter in (array, Unversioned(array)):
        with pytest.raises((RuntimeError, BufferError), match=r"(?i)device|dltensor"):
            np.from_dlpack(exporter)
    del exporter
    with pytest.raises(ExportError, match="to_host"):
        np.asarray(array)


def test_names_say_whether_there_is_a_version(device: HostDevice) -> None:
    array = filled(device, np.arange(3))
    for version, name in (
        (None, b"dltensor"),
        ((0, 8), b"dltensor"),
        ((1, 0), b"dltensor_versioned"),
        ((2, 3), b"dltensor_versioned"),
    ):
        assert VALID(array.__dlpack__(max_version=version), name)
    address = POINTER(capsule := array.__dlpack__(max_version=(1, 3)), b"dltensor_versioned")
    assert list((ctypes.c_uint32 * 2).from_address(address)) == list(dlpack.VERSION)
    # Nobody is told that it must not be written, or is a copy.
    assert ctypes.c_uint64.from_address(address + 24).value == 0
    del capsule


def test_streams_copies_and_places(device: HostDevice) -> None:
    array = filled(device, np.arange(3))
    for stream in (None, -1, 1, 2, 3, 0x7F0012345678):
        assert VALID(array.__dlpack__(stream=stream), b"dltensor")
    for copy in (None, False):
        array.__dlpack__(copy=copy, dl_device=(dlpack.CPU, 0))
    for wrong, text in (
        ({"stream": 0}, "stream 0 has no meaning"),
        ({"stream": -2}, "stream -2 has no meaning"),
        ({"copy": True}, "never copied"),
        ({"dl_device": (2, 1)}, r"on device \(1, 0\), and \(2, 1\) is asked for"),
    ):
        with pytest.raises(ExportError, match=text) as caught:
            array.__dlpack__(**wrong)
        assert isinstance(caught.value, BufferError) and isinstance(caught.value, MummergpuError)
    with pytest.raises(BufferError, match="never copied"):
        np.from_dlpack(array, copy=True)


def test_the_interface_of_cuda_arrays(device: HostDevice) -> None:
    array = filled(device, np.arange(3, dtype=np.uint32))
    assert array.__cuda_array_interface__ == {
        "shape": (3,),
        "typestr": "<u4",
        "data": (array.address, False),
        "strides": None,
        "stream": None,
        "version": 3,
    }
    nothing = filled(device, np.arange(0))
    assert nothing.__cuda_array_interface__["data"] == (0, False)
    assert np.from_dlpack(nothing).tolist() == nothing.to_host().tolist() == []


def test_an_array_says_what_it_is(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    array = filled(device, np.arange(3000, dtype=np.uint32))
    assert (len(array), array.size, array.ndim, array.nbytes) == (3000, 3000, 1, 12_000)
    assert (array.shape, array.dtype) == ((3000,), np.dtype(np.uint32))
    assert array.__dlpack_device__() == (dlpack.CPU, 0)
    assert repr(array) == "<mummergpu.DeviceArray of 3,000 uint32 on device 1:0>"
    monkeypatch.setattr(HostSharedMemory, "place", (dlpack.CUDA, 1))
    assert repr(array) == "<mummergpu.DeviceArray of 3,000 uint32 on GPU 1>"


def test_shapes_of_several_dimensions_have_their_strides(device: HostDevice) -> None:
    memory = device.allocate_shared(24 * 8)
    ctypes.memmove(memory.address, (values := np.arange(24)).ctypes.data, 24 * 8)

    class Exporter:
        def __dlpack__(self, **given: object) -> object:
            return dlpack.new_capsule(
                memory, memory.address, (2, 3, 4), np.int64, memory.place, is_versioned=False
            )

        def __dlpack_device__(self) -> tuple[int, int]:
            return memory.place

    taken = np.from_dlpack(Exporter())
    assert np.array_equal(taken, values.reshape(2, 3, 4))


def test_arrays_may_be_left_when_the_interpreter_ends() -> None:
    """By a module that ends after this package, in a global name, and in a circle."""
    program = textwrap.dedent("""
        import sys, types
        import numpy as np
        from helpers.host_device import HostDevice
        from mummergpu.cuda.device_array import DeviceArray

        device = HostDevice()
        array = DeviceArray(device.allocate_shared(80), np.int64, 10)
        taken, refused = np.from_dlpack(array), array.__dlpack__()
        late = types.ModuleType("late")
        late.taken = np.from_dlpack(array)
        circle = [np.from_dlpack(array)]
        circle.append(circle)
        sys.kept = np.from_dlpack(array)
        sys.modules["late"] = late
        print("well")
    """)
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", program]
    folders = [HERE.parents[3], HERE.parents[2], os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "well\n", "")
