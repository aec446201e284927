"""Columns in the memory of a device, which is the host's here, and what others make of them."""

import ctypes
import gc
import threading

import numpy as np
import pytest
from helpers.device_columns import taken
from helpers.host_device import HostDevice, HostExportedMemory

from mummergpu.cuda.device_array import DeviceArray
from mummergpu.errors import ExportError

TYPES = (np.uint32, np.int64, np.bool_)


@pytest.fixture
def device():
    """A device of which nothing may be left."""
    made = HostDevice()
    yield made
    gc.collect()
    assert not made.shared


def filled(device, values):
    memory = device.allocate_exported(max(1, values.nbytes))
    ctypes.memmove(memory.address, values.ctypes.data, values.nbytes)
    return DeviceArray(memory, values.dtype.type, values.size)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_a_consumer_has_the_same_memory(device, kind):
    values = np.arange(1000).astype(kind)
    array = filled(device, values)
    other = taken(array)
    assert other.dtype == values.dtype and other.shape == values.shape
    assert other.ctypes.data == array.address
    assert np.array_equal(other, values) and np.array_equal(array.to_host(), values)


def test_the_memory_stays_until_nobody_has_it(device):
    array = filled(device, np.arange(50))
    held = [taken(array)[10:20]]
    del array
    assert len(device.shared) == 1 and np.array_equal(held[0], np.arange(10, 20))
    # The last owner may be another thread.
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert not device.shared


def test_the_interface_of_cuda_arrays(device):
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
    assert nothing.to_host().tolist() == []


def test_numpy_gets_no_copy_unasked(device):
    with pytest.raises(ExportError, match="to_host"):
        np.asarray(filled(device, np.arange(3)))


def test_an_array_says_what_it_is(device, monkeypatch):
    array = filled(device, np.arange(3000, dtype=np.uint32))
    assert (len(array), array.size, array.ndim, array.nbytes) == (3000, 3000, 1, 12_000)
    assert (array.shape, array.dtype) == ((3000,), np.dtype(np.uint32))
    monkeypatch.setattr(HostExportedMemory, "device_number", 1)
    assert repr(array) == "<mummergpu.DeviceArray of 3,000 uint32 on GPU 1>"
