"""Use a device through NVIDIA's own bindings, which call a driver that is played.

A program of its own, because the bindings load the driver once in a process. The library path
leads to the driver (`played_driver.cpp`).
"""

from __future__ import annotations

import ctypes
import struct
import threading
import time

import numpy as np

from mummergpu.cuda.bindings_device import BindingsDevice
from mummergpu.cuda.device import DeviceMemoryError
from mummergpu.errors import BackendError

PLAYED = ctypes.CDLL("libcuda.so.1")
PLAYED.play_log.restype = ctypes.c_char_p
KINDS = ("memory", "pinned", "streams", "events", "modules", "textures", "arrays")
WORK_SECONDS = 0.4


def calls() -> list[str]:
    """Return the calls since the last time."""
    written: bytes = PLAYED.play_log()
    return written.decode().splitlines()


def check_values(device: BindingsDevice) -> None:
    """All values arrive as they were given, in both directions."""
    assert (device.name, device.architecture) == ("Played 1", "sm_90")
    assert device.resident_blocks == 132 * 8
    stream, buffer = device.new_stream(), device.allocate(1000)
    sent, received = np.arange(100, dtype=np.int64), device.pinned(100, np.int64)
    sent.flags.writeable = False
    stream.copy_in(buffer.address, sent)
    stream.copy_out(received, buffer.address)
    assert np.array_equal(sent, received)
    stream.fill_zero(buffer.address + 8, 80)
    stream.copy_out(received, buffer.address)
    assert received[1:11].tolist() == [0] * 10 and received[11:].tolist() == list(range(11, 100))
    assert device.memory() == (3 << 30, 4 << 30)
    before, after = stream.mark(), stream.mark()
    assert after.milliseconds_since(before) == 1.0
    program = device.load(b"cubin\0")
    calls()
    stream.launch(program, "search", 7, (1 << 40, np.uint32(3), np.uint32(4), np.int64(5)))
    packed = struct.pack("QIIQ", 1 << 40, 3, 4, 5).hex()
    assert calls() == ["cuModuleGetFunction search", f"cuLaunchKernel 7,1,1 256,1,1 0 {packed}"]
    found = program.resources("search")
    assert (found.registers, found.local_bytes, found.shared_bytes) == (44, 43, 41)
    stream.sleep_until_done()
    # Blocking, and without times.
    assert calls()[-3:] == ["cuEventCreate 3", "cuEventRecord", "cuEventSynchronize"]
    buffer.free()
    stream.free()


def check_shared_memory(device: BindingsDevice) -> None:
    """Memory for other libraries has a context of its own, and none has to be current."""
    with device.current():
        stream, memory = device.new_stream(), device.allocate_shared(800)
        sent = np.arange(100, dtype=np.int64)
        stream.copy_in(memory.address, sent)
        stream.copy_on_device(memory.address + 400, memory.address, 400)
        stream.free()
    calls()
    found = np.empty_like(sent)
    memory.copy_out(found)
    assert calls() == ["cuCtxPushCurrent 1", "cuMemcpyDtoH 800", "cuCtxPopCurrent"]
    assert found.tolist() == 2 * list(range(50))
    assert memory.place == (2, 1) and PLAYED.play_retained(1) == 2
    del memory
    assert PLAYED.play_retained(1) == 1 and PLAYED.play_contexts() == 0


def check_that_others_work_meanwhile(device: BindingsDevice, asleep: bool) -> None:
    """A thread that waits for the device lets the other threads of Python work."""
    stream = device.new_stream()
    PLAYED.play_milliseconds(int(1000 * WORK_SECONDS))
    ends: list[float] = []

    def wait() -> None:
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
    PLAYED.play_milliseconds(0)
    # Without turns it would be one; a busy machine does not reach 40.
    assert counted > 3, counted
    stream.free()


def check_errors(device: BindingsDevice) -> None:
    """An error arrives in the words of the driver."""
    stream = device.new_stream()
    for name, work in (
        ("cuStreamSynchronize", stream.synchronize),
        ("cuEventSynchronize", stream.sleep_until_done),
        ("cuModuleLoadData", lambda: device.load(b"cubin\0")),
        ("cuMemHostAlloc", lambda: device.pinned(1, np.uint8)),
    ):
        PLAYED.play_failure(name.encode(), 700)
        try:
            work()
        except BackendError as error:
            assert error.message == f"the device failed: {name} failed: what 700 means"
        else:
            raise AssertionError(name)
        PLAYED.play_failure(name.encode(), 0)
    for name in ("cuMemAlloc", "cuTexObjectCreate", "cuArrayCreate", "cuMemcpy2D"):
        PLAYED.play_failure(name.encode(), 2)
        try:
            if name == "cuMemAlloc":
                device.allocate(1)
            else:
                device.array_texture(np.zeros(64, dtype=np.uint8), 2, 16)
        except DeviceMemoryError:
            pass
        else:
            raise AssertionError(name)
        PLAYED.play_failure(name.encode(), 0)
    stream.free()
    for number, error, expected in (
        (5, 0, "there is no device 5; the driver finds 2"),
        (0, 100, "device 0: the driver answers: cuInit failed: what 100 means"),
    ):
        PLAYED.play_failure(b"cuInit", error)
        try:
            BindingsDevice(number)
        except BackendError as found:
            assert found.message == expected
        else:
            raise AssertionError(expected)


def main() -> None:
    device = BindingsDevice(1)
    assert PLAYED.play_retained(1) == 1
    check_shared_memory(device)
    with device.current():
        check_values(device)
        check_that_others_work_meanwhile(device, False)
        check_that_others_work_meanwhile(device, True)
        check_errors(device)
    assert PLAYED.play_contexts() == 0
    device.close()
    left = {kind: PLAYED.play_owned(kind.encode()) for kind in KINDS}
    assert left == dict.fromkeys(KINDS, 0), left
    assert PLAYED.play_retained(1) == 0
    print("all calls are right")


if __name__ == "__main__":
    main()
