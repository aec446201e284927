"""A device through NVIDIA's own bindings, and memory for other libraries, on a played driver.

Tests of a process of their own, which `test_bindings.py` starts: the bindings load the driver once
in a process, and the library path leads to `played_driver.cpp`.
"""

import ctypes
import gc
import os
import pickle
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers.played_driver import OTHERS, PlayedDriver

from mummergpu.cuda.bindings_device import BindingsDevice
from mummergpu.cuda.cuda_device import CallError, PrimaryContextMemory, call
from mummergpu.cuda.device import BlockShape, DeviceMemoryError
from mummergpu.cuda.device_array import DeviceArray
from mummergpu.errors import BackendError

ADDRESS = 1 << 40
WORK_SECONDS = 0.4


@pytest.fixture
def played():
    made = PlayedDriver()
    yield made
    # Each test gives back what it has taken, and leaves no context current.
    gc.collect()
    found = made.owned, made.contexts
    made.forget()
    assert found == ({}, [])


@pytest.fixture
def device(played):
    """A device that is current during the test."""
    made = BindingsDevice(0)
    with made.current():
        yield made
    made.close()


def test_a_device_says_what_it_is(played):
    device = BindingsDevice(1)
    assert (device.name, device.architecture) == ("Played 1", "sm_90")
    assert (device.block_threads, device.resident_blocks) == (256, 132 * 8)
    assert device.library == "cuda-bindings"
    with device.current():
        assert device.memory() == (3 << 30, 4 << 30)
    device.close()


def test_the_primary_context_is_retained_and_released_once(played):
    others = PrimaryContextMemory(0, 8)
    device = BindingsDevice(0)
    assert played.owned["context 0"] == 2
    device.close()
    device.close()
    assert played.owned["context 0"] == 1
    assert not {call for call in played.calls if "Reset" in call or "CtxDestroy" in call}
    others.free()


def test_statements_may_be_nested_and_leave_what_was_current(played):
    one, other = BindingsDevice(0), BindingsDevice(1)
    played.make_others_current()
    with one.current():
        with other.current(), one.current():
            assert played.contexts == [OTHERS, 0, 1, 0]
        with pytest.raises(KeyError), other.current():
            raise KeyError
        assert played.contexts == [OTHERS, 0]
    assert played.contexts == [OTHERS]
    one.close()
    other.close()
    played.forget()


def test_bytes_go_to_the_device_and_back(played, device):
    stream, buffer = device.new_stream(), device.allocate(800)
    assert buffer.size == 800
    sent = np.arange(100, dtype=np.int64)
    stream.copy_in(buffer.address, sent)
    stream.fill_zero(buffer.address + 80, 80)
    received = device.pinned(100, np.int64)
    stream.copy_out(received, buffer.address)
    stream.synchronize()
    sent[10:20] = 0
    assert received.tolist() == sent.tolist()
    stream.copy_on_device(buffer.address + 400, buffer.address, 400)
    stream.copy_out(received, buffer.address)
    assert received.tolist() == 2 * sent[:50].tolist()
    before = len(played.calls)
    for nothing in (sent[:0], np.empty((0, 3))):
        stream.copy_in(buffer.address, nothing)
        stream.copy_out(nothing, buffer.address)
    stream.fill_zero(buffer.address, 0)
    assert len(played.calls) == before
    del received
    buffer.free()
    stream.free()


def test_arguments_are_packed_as_the_kernel_reads_them(played, device):
    stream, program = device.new_stream(), device.load(b"image")
    for turn in range(3):
        arguments = (ADDRESS, np.uint32(turn), np.uint32(7), np.int64(9), np.uint32(3), 11)
        stream.launch(program, "search", 1 + turn, arguments)
        # A number of 64 bits begins at a multiple of eight bytes.
        packed = struct.pack("QIIQI4xQ", ADDRESS, turn, 7, 9, 3, 11).hex()
        assert played.log[-1] == f"cuLaunchKernel {1 + turn},1,1 256,1,1 0 {packed}"
    stream.launch(program, "nothing", 1, ())
    assert played.log[-1] == "cuLaunchKernel 1,1,1 256,1,1 0 "
    assert played.calls.count("cuModuleGetFunction") == 2
    stream.free()


def test_threads_launch_one_kernel_at_once(played):
    device = BindingsDevice(0)
    meeting = threading.Barrier(4, timeout=60)
    with device.current():
        program = device.load(b"image")

    def work(number):
        with device.current():
            stream = device.new_stream()
            meeting.wait()
            for turn in range(200):
                stream.launch(program, "search", 1, (number, turn))
                stream.mark()
            stream.free()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    expected = {struct.pack("QQ", number, turn) for number in range(4) for turn in range(200)}
    launches = [line.split(" ")[-1] for line in played.log if line.startswith("cuLaunchKernel")]
    assert len(launches) == 800 and set(map(bytes.fromhex, launches)) == expected
    device.close()


def test_marks_that_are_gone_leave_their_events_to_others(played, device):
    stream = device.new_stream()
    before, after = stream.mark(), stream.mark()
    assert after.milliseconds_since(before) == 1.0
    del before, after
    for _ in range(10):
        before, after = stream.mark(), stream.mark()
        assert after.milliseconds_since(before) == -before.milliseconds_since(after)
        after.wait()
    # Two are held while two are made.
    assert played.owned["events"] == 4
    del after
    stream.free()
    assert played.owned["events"] == 1
    del before
    assert "events" not in played.owned


def test_pinned_memory_lives_as_long_as_its_last_array(played):
    device = BindingsDevice(0)
    with device.current():
        numbers = device.pinned(6, np.int32)
        numbers[:] = range(6)
        part = numbers[2:].view(np.uint8)[4:]
        assert device.pinned(0, np.int64).size == 0
    del numbers
    assert part.view(np.int32).tolist() == [3, 4, 5] and played.owned["pinned"] == 1
    # Nobody has made the device current where the array ends.
    del part
    assert "pinned" not in played.owned
    device.close()


def test_programs_go_with_their_last_user_or_with_the_device(played):
    device = BindingsDevice(0)
    with device.current():
        kept, dropped = device.load(b"one"), device.load(b"other")
    del dropped
    assert played.owned["modules"] == 1
    # The context may stay, because another library uses it.
    device.close()
    assert "modules" not in played.owned
    assert played.calls[-4:] == [
        *("cuCtxPushCurrent", "cuModuleUnload", "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease")
    ]
    kept.unload()
    assert played.calls[-1] == "cuDevicePrimaryCtxRelease"


def test_memory_is_kept_by_whoever_can_free_it(played, device):
    free = device.allocate(100).free
    gc.collect()
    assert played.owned["memory"] == 1
    free()
    assert "memory" not in played.owned


def test_everything_is_given_back_in_the_end_whatever_is_forgotten(played):
    device = BindingsDevice(0)
    with device.current():
        stream, buffer = device.new_stream(), device.allocate(10)
        mark = stream.mark()
    del buffer
    assert "memory" not in played.owned
    del mark, stream
    gc.collect()
    assert "streams" not in played.owned
    device.close()
    # Its event goes with the context.
    assert played.owned == {"events": 1}
    played.forget()


def test_what_outlives_the_device_is_not_given_back(played):
    """Its address may be somebody else's by then."""
    device = BindingsDevice(0)
    with device.current():
        array, buffer, stream = device.pinned(1, np.int64), device.allocate(1), device.new_stream()
        mark = stream.mark()
    device.close()
    before = len(played.calls)
    stream.free()
    buffer.free()
    del array, mark
    assert len(played.calls) == before
    played.forget()


def test_resources_are_those_that_the_driver_tells(played, device):
    found = device.load(b"image").resources("search")
    assert (found.registers, found.local_bytes, found.shared_bytes) == (44, 43, 41)
    # 65536 registers are enough for 5 of 8 blocks of 256 threads.
    assert found.occupancy == 5 / 8


@pytest.mark.parametrize(
    ("threads", "dynamic", "blocks"),
    [
        # Shared memory, of which each block has 41 and 1,024 bytes more, is enough for 3 and for 2.
        *[(256, 75_000, 3), (256, 77_000, 2)],
        # No more than 32 blocks are resident, of which registers would allow 42.
        (32, 0, 32),
        # Of 512 threads each, registers allow 2, and threads 4.
        (512, 0, 2),
    ],
)
def test_occupancy_is_that_of_the_blocks_that_are_launched(device, threads, dynamic, blocks):
    found = device.load(b"image").resources("search", BlockShape(threads, dynamic))
    assert found.occupancy == blocks * threads / 2048 and found.shared_bytes == 41 + dynamic


def test_shared_memory_is_asked_for_once(played, device):
    assert device.shared_bytes == 227 << 10
    stream, program = device.new_stream(), device.load(b"image")
    for shared in (48 << 10, 100_000, 100_000, 60_000):
        stream.launch(program, "search", 1, (), BlockShape(32, shared))
        assert played.log[-1].startswith(f"cuLaunchKernel 1,1,1 32,1,1 {shared} ")
    asked = [line for line in played.log if line.startswith("cuFuncSetAttribute")]
    assert asked == ["cuFuncSetAttribute 8 100000"]
    stream.free()


@pytest.mark.parametrize("asleep", [False, True])
def test_a_thread_that_waits_for_the_device_lets_others_work(played, device, asleep):
    stream, ends = device.new_stream(), []
    played.work_for(int(1000 * WORK_SECONDS))

    def wait():
        with device.current():
            stream.sleep_until_done() if asleep else stream.synchronize()
        ends.append(time.perf_counter())

    waiting = threading.Thread(target=wait)
    waiting.start()
    counted = 0
    while not ends:
        counted += 1
        time.sleep(WORK_SECONDS / 40)
    waiting.join()
    played.work_for(0)
    # Without turns it would be one; a busy machine does not reach 40.
    assert counted > 3
    if asleep:
        # Blocking, and without times.
        waits = [line for line in played.log if line.startswith("cuEvent")]
        assert waits[:3] == ["cuEventCreate 3", "cuEventRecord", "cuEventSynchronize"]
    stream.free()


CALLS = {
    "cuStreamCreate": lambda device, stream: device.new_stream(),
    "cuMemHostAlloc": lambda device, stream: device.pinned(1, np.uint8),
    "cuModuleLoadData": lambda device, stream: device.load(b"image"),
    "cuMemGetInfo": lambda device, stream: device.memory(),
    "cuMemcpyHtoDAsync": lambda device, stream: stream.copy_in(0, np.zeros(1)),
    "cuMemcpyDtoHAsync": lambda device, stream: stream.copy_out(np.zeros(1), 0),
    "cuMemsetD8Async": lambda device, stream: stream.fill_zero(0, 1),
    "cuEventCreate": lambda device, stream: stream.mark(),
    "cuEventRecord": lambda device, stream: stream.mark(),
    "cuEventSynchronize": lambda device, stream: stream.mark().wait(),
    "cuStreamSynchronize": lambda device, stream: stream.synchronize(),
    "cuMemAlloc": lambda device, stream: device.allocate(1),
    "cuModuleGetFunction": lambda device, stream: stream.launch(device.load(b""), "x", 1, ()),
    "cuLaunchKernel": lambda device, stream: stream.launch(device.load(b""), "x", 1, ()),
    "cuFuncGetAttribute": lambda device, stream: device.load(b"").resources("x"),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_error_of_the_driver_is_an_error_of_the_backend(played, device, name):
    stream = device.new_stream()
    played.fail("ILLEGAL_ADDRESS", name)
    expected = f"the device failed: {name} failed: what 700 means"
    with pytest.raises(BackendError) as caught:
        CALLS[name](device, stream)
    assert caught.value.message == expected
    assert pickle.loads(pickle.dumps(caught.value)).message == expected
    del caught
    stream.free()


def test_too_little_memory_is_no_failure(played, device):
    played.fail("OUT_OF_MEMORY", "cuMemAlloc", "cuMemHostAlloc")
    with pytest.raises(DeviceMemoryError, match="77 bytes"):
        device.allocate(77)
    for name in ("cuTexObjectCreate", "cuArrayCreate", "cuMemcpy2D"):
        played.fail("OUT_OF_MEMORY", name)
        with pytest.raises(DeviceMemoryError):
            device.array_texture(np.zeros(64, dtype=np.uint8), 2, 16)
        played.fail("SUCCESS", name)
    # Pinned memory is the host's: to split the work in two is in vain.
    with pytest.raises(BackendError, match="cuMemHostAlloc failed: what 2 means"):
        device.pinned(1, np.uint8)


def test_a_device_that_fails_lets_everything_else_be_given_back(played):
    device = BindingsDevice(0)
    with pytest.raises(BackendError, match="what 700 means"):
        with device.current():
            stream, buffer = device.new_stream(), device.allocate(1)
            played.fail("ILLEGAL_ADDRESS", "cuMemFree", "cuStreamSynchronize")
            try:
                stream.synchronize()
            finally:
                buffer.free()
                stream.free()
    device.close()
    assert played.owned == {"memory": 1}
    played.forget()


def test_a_context_that_cannot_be_made_current_is_an_error(played):
    device = BindingsDevice(0)
    with device.current():
        buffer = device.allocate(1)
    played.fail("ILLEGAL_ADDRESS", "cuCtxPushCurrent")
    with pytest.raises(BackendError, match="cuCtxPushCurrent failed"), device.current():
        raise AssertionError("the statement has begun")
    buffer.free()
    assert played.contexts == []
    played.fail("SUCCESS", "cuCtxPushCurrent")
    device.close()
    assert played.owned == {"memory": 1}
    played.forget()


@pytest.mark.parametrize("name", ["cuInit", "cuDeviceGetCount", "cuDevicePrimaryCtxRetain"])
def test_a_device_that_cannot_be_opened_is_an_error(played, name):
    played.fail("NO_DEVICE", name)
    with pytest.raises(BackendError) as caught:
        BindingsDevice(0)
    assert caught.value.message == f"device 0: the driver answers: {name} failed: what 100 means"


def test_a_number_of_no_device_is_an_error(played):
    for number in (-1, 2):
        with pytest.raises(BackendError, match=f"there is no device {number}; the driver finds 2"):
            BindingsDevice(number)


def test_a_device_that_no_kernel_runs_on_is_released(played, monkeypatch):
    def refuse(capability):
        raise BackendError("cuda", "too old")

    monkeypatch.setattr("mummergpu.cuda.cuda_device.choose_architecture", refuse)
    with pytest.raises(BackendError, match="too old"):
        BindingsDevice(0)


def test_errors_that_the_bindings_do_not_know(played):
    """The driver may be newer than the bindings, and have a code or lack a function."""

    def fail():
        return (7777,)

    def missing():
        raise RuntimeError('Function "cuMissing" not found\nand more')

    played.fail("INVALID_VALUE", "cuGetErrorString")
    with pytest.raises(CallError, match="fail failed: 7777"):
        call(fail)
    with pytest.raises(CallError, match=r'missing failed: Function "cuMissing" not found$'):
        call(missing)


@pytest.fixture
def others(played):
    """The driver, while a context of somebody else is current, and stays so."""
    played.make_others_current()
    yield played
    gc.collect()
    assert (played.owned, played.contexts) == ({}, [OTHERS])
    played.forget()


def test_exported_memory_retains_the_context_until_it_is_freed(others):
    one, other = PrimaryContextMemory(0, 80), PrimaryContextMemory(1, 8)
    assert (one.size, one.device_number, other.device_number) == (80, 0, 1)
    assert others.owned["memory"] == 2
    assert others.owned["context 0"] == others.owned["context 1"] == 1
    del one
    assert others.owned == {"memory": 1, "context 1": 1}
    other.free()
    other.free()
    assert others.owned == {}
    assert not {call for call in others.calls if "Reset" in call or "CtxDestroy" in call}


def test_exported_memory_is_copied_out_from_any_thread(others):
    memory = PrimaryContextMemory(0, 80)
    ctypes.memmove(memory.address, np.arange(10).ctypes.data, 80)
    found = np.zeros(10, dtype=np.int64)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(memory.copy_out, found).result()
    assert found.tolist() == list(range(10))
    before = len(others.calls)
    memory.copy_out(found[:0])
    assert len(others.calls) == before
    array = DeviceArray(memory, np.int64, 10)
    assert array.to_host().tolist() == list(range(10))
    assert repr(array).endswith("of 10 int64 on GPU 0>")


def test_exported_memory_outlives_the_device(others):
    device = BindingsDevice(1)
    with device.current():
        memory = device.allocate_exported(80)
    device.close()
    assert others.owned == {"memory": 1, "context 1": 1}
    memory.copy_out(np.empty(10))
    array = DeviceArray(memory, np.int64, 10)
    del memory
    assert others.owned["memory"] == 1
    del array


@pytest.mark.parametrize(
    ("code", "name", "kind"),
    [
        ("OUT_OF_MEMORY", "cuMemAlloc", DeviceMemoryError),
        ("LAUNCH_FAILED", "cuMemAlloc", BackendError),
        ("NO_DEVICE", "cuInit", BackendError),
    ],
)
def test_exported_memory_that_cannot_be_had_leaves_nothing(others, code, name, kind):
    others.fail(code, name)
    with pytest.raises(kind):
        PrimaryContextMemory(0, 80)
    assert others.owned == {}


def test_a_device_that_has_failed_raises_no_error_when_memory_goes(others):
    memory = PrimaryContextMemory(0, 80)
    others.fail("LAUNCH_FAILED", "cuMemFree", "cuDevicePrimaryCtxRelease")
    del memory
    assert {"cuMemFree", "cuDevicePrimaryCtxRelease"} <= set(others.calls)
    others.forget()
    others.make_others_current()


def test_a_forked_process_leaves_the_memory_to_its_parent(others, monkeypatch):
    memory = PrimaryContextMemory(0, 80)
    before = list(others.calls)
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    del memory
    assert others.calls == before
    others.forget()
    others.make_others_current()
