"""Memory for other libraries, whose driver is played."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

from mummergpu.cuda import dlpack
from mummergpu.cuda.device import DeviceMemoryError
from mummergpu.cuda.device_array import DeviceArray
from mummergpu.errors import BackendError

if TYPE_CHECKING:
    from helpers.played_driver import PlayedDriver


@pytest.fixture
def played(nvrtc: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedDriver]:
    """The driver behind the bindings, which come with the wheels of NVRTC."""
    from helpers.played_driver import PlayedDriver

    made = PlayedDriver()
    made.install(monkeypatch)
    # Somebody else's context is current, and stays so.
    made.contexts.append(5)
    yield made
    gc.collect()
    assert +made.owned == {}
    assert made.contexts == [5]


def test_it_retains_the_primary_context_until_it_is_freed(played: PlayedDriver) -> None:
    from mummergpu.cuda.shared_memory import PrimaryContextMemory

    one, other = PrimaryContextMemory(0, 80), PrimaryContextMemory(1, 8)
    assert (one.size, one.place, other.place) == (80, (2, 0), (2, 1))
    assert played.owned["memory"] == 2
    assert played.owned["context 70"] == played.owned["context 71"] == 1
    del one
    assert +played.owned == {"memory": 1, "context 71": 1}
    other.free()
    other.free()
    assert +played.owned == {}
    assert not {call for call in played.calls if "Reset" in call or "CtxDestroy" in call}


def test_it_is_copied_out_from_any_thread(played: PlayedDriver) -> None:
    import ctypes

    from mummergpu.cuda.shared_memory import PrimaryContextMemory

    memory = PrimaryContextMemory(0, 80)
    ctypes.memmove(memory.address, np.arange(10).ctypes.data, 80)
    found = np.zeros(10, dtype=np.int64)
    thread = threading.Thread(target=memory.copy_out, args=(found,))
    thread.start()
    thread.join()
    assert found.tolist() == list(range(10))
    before = len(played.calls)
    memory.copy_out(found[:0])
    assert len(played.calls) == before
    array = DeviceArray(memory, np.int64, 10)
    assert array.to_host().tolist() == list(range(10))
    assert repr(array).endswith("of 10 int64 on GPU 0>") and array.__dlpack_device__() == (2, 0)


def test_it_outlives_the_device(played: PlayedDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    from mummergpu.cuda import bindings_device

    monkeypatch.setattr(bindings_device, "choose_architecture", lambda capability: "sm_90")
    device = bindings_device.BindingsDevice(1)
    with device.current():
        memory = device.allocate_shared(80)
    device.close()
    assert +played.owned == {"memory": 1, "context 71": 1}
    memory.copy_out(np.empty(10))
    capsule = DeviceArray(memory, np.int64, 10).__dlpack__(stream=1)
    del memory
    assert played.owned["memory"] == 1
    del capsule
    dlpack.drop_refused()


@pytest.mark.parametrize(
    ("code", "name", "kind"),
    [
        ("OUT_OF_MEMORY", "cuMemAlloc", DeviceMemoryError),
        ("LAUNCH_FAILED", "cuMemAlloc", BackendError),
        ("NO_DEVICE", "cuInit", BackendError),
    ],
)
def test_what_fails_leaves_nothing(
    played: PlayedDriver, code: str, name: str, kind: type[Exception]
) -> None:
    from mummergpu.cuda.shared_memory import PrimaryContextMemory

    played.fail(code, name)
    with pytest.raises(kind):
        PrimaryContextMemory(0, 80)
    assert +played.owned == {}


def test_a_device_that_has_failed_raises_no_error_when_memory_goes(played: PlayedDriver) -> None:
    from mummergpu.cuda.shared_memory import PrimaryContextMemory

    memory = PrimaryContextMemory(0, 80)
    played.fail("LAUNCH_FAILED", "cuMemFree", "cuDevicePrimaryCtxRelease")
    del memory
    assert {"cuMemFree", "cuDevicePrimaryCtxRelease"} <= set(played.calls)
    played.owned.clear()


def test_a_forked_process_leaves_the_memory_to_its_parent(
    played: PlayedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mummergpu.cuda.shared_memory import PrimaryContextMemory

    memory = PrimaryContextMemory(0, 80)
    before = list(played.calls)
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    del memory
    assert played.calls == before
    played.owned.clear()
