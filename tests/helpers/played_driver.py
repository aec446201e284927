"""The driver of CUDA, played behind NVIDIA's bindings: two devices whose memory is the host's.

`PlayedDriver` has the functions of ``cuda.bindings.driver`` that the device calls. It writes
down each call, knows what has not been given back, and lets any function fail.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections import Counter
from typing import Any

import pytest
from cuda.bindings import driver

RESULT = driver.CUresult
SUCCESS = RESULT.CUDA_SUCCESS
DEVICES = 2
ATTRIBUTES = {
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
    "MULTIPROCESSOR_COUNT": 132,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536,
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
}
OF_KERNELS = {"NUM_REGS": 40, "LOCAL_SIZE_BYTES": 8, "SHARED_SIZE_BYTES": 1024}


class PlayedDriver:
    """The functions of a driver; `fail` lets some of them fail.

    `owned` counts what has not been given back; `contexts` are those that are current in the
    calling thread, the last one on top.
    """

    def __init__(self) -> None:
        self.failing: dict[str, Any] = {}
        self.calls: list[str] = []
        self.owned: Counter[str] = Counter()
        self.packed: list[bytes] = []
        self._memory: dict[int, Any] = {}
        self._last = 1000
        self._of_thread = threading.local()

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Take the place of the driver's functions."""
        for name in dir(self):
            if name.startswith("cu"):
                patch.setattr(driver, name, self._watched(name))

    def fail(self, error: str, *names: str) -> None:
        """Let functions return an error, such as ``OUT_OF_MEMORY``."""
        self.failing |= dict.fromkeys(names, getattr(RESULT, f"CUDA_ERROR_{error}"))

    @property
    def contexts(self) -> list[int]:
        if not hasattr(self._of_thread, "stack"):
            self._of_thread.stack = []
        found: list[int] = self._of_thread.stack
        return found

    def _watched(self, name: str) -> Any:
        function = getattr(self, name)

        def watched(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append(name)
            if name in self.failing:
                return (self.failing[name], *(None for _ in range(3)))
            answer = function(*arguments)
            return (SUCCESS, *(answer if isinstance(answer, tuple) else (answer,)))

        watched.__name__ = name
        return watched

    def _take(self, kind: str, handle: int | None = None) -> int:
        # Whoever takes something has made its device current.
        assert self.contexts, kind
        self.owned[kind] += 1
        self._last += 1
        return self._last if handle is None else handle

    def _give_back(self, kind: str) -> None:
        assert self.contexts, kind
        self.owned[kind] -= 1
        assert self.owned[kind] >= 0, kind

    def _new_memory(self, kind: str, size: int) -> int:
        memory = ctypes.create_string_buffer(b"\xa5" * size, size)
        address = ctypes.addressof(memory)
        self._memory[address] = memory
        return self._take(kind, address)

    def cuGetErrorString(self, error: Any) -> bytes:  # noqa: N802
        return f"what {int(error)} means".encode()

    def cuInit(self, flags: int) -> None:  # noqa: N802
        assert flags == 0

    def cuDeviceGetCount(self) -> int:  # noqa: N802
        return DEVICES

    def cuDeviceGet(self, number: int) -> int:  # noqa: N802
        return 70 + number

    def cuDeviceGetName(self, size: int, device: int) -> bytes:  # noqa: N802
        return f"Played {device}".encode().ljust(size, b"\0")

    def cuDeviceGetAttribute(self, attribute: Any, device: int) -> int:  # noqa: N802
        return ATTRIBUTES[attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")]

    def cuDevicePrimaryCtxRetain(self, device: int) -> int:  # noqa: N802
        self.owned[f"context {device}"] += 1
        return device

    def cuDevicePrimaryCtxRelease(self, device: int) -> None:  # noqa: N802
        self.owned[f"context {device}"] -= 1

    def cuCtxPushCurrent(self, context: int) -> None:  # noqa: N802
        assert self.owned[f"context {context}"] > 0
        self.contexts.append(context)

    def cuCtxPopCurrent(self) -> int:  # noqa: N802
        return self.contexts.pop()

    def cuMemGetInfo(self) -> tuple[int, int]:  # noqa: N802
        return 3 << 30, 4 << 30

    def cuMemAlloc(self, size: int) -> int:  # noqa: N802
        return self._new_memory("memory", size)

    def cuMemFree(self, address: int) -> None:  # noqa: N802
        self._give_back("memory")
        del self._memory[address]

    def cuMemHostAlloc(self, size: int, flags: int) -> int:  # noqa: N802
        assert size > 0 and flags == 0
        return self._new_memory("pinned", size)

    def cuMemFreeHost(self, address: int) -> None:  # noqa: N802
        self._give_back("pinned")
        del self._memory[address]

    def cuStreamCreate(self, flags: int) -> int:  # noqa: N802
        return self._take("streams")

    def cuStreamDestroy(self, stream: int) -> None:  # noqa: N802
        self._give_back("streams")

    def cuStreamSynchronize(self, stream: int) -> None:  # noqa: N802
        assert self.contexts

    def cuEventCreate(self, flags: int) -> int:  # noqa: N802
        return self._take("events")

    def cuEventDestroy(self, event: int) -> None:  # noqa: N802
        self._give_back("events")

    def cuEventRecord(self, event: int, stream: int) -> None:  # noqa: N802
        assert self.contexts

    def cuEventSynchronize(self, event: int) -> None:  # noqa: N802
        assert self.contexts

    def cuEventElapsedTime(self, start: int, end: int) -> float:  # noqa: N802
        return float(end - start)

    def cuMemcpyHtoDAsync(self, to: int, start: int, size: int, stream: int) -> None:  # noqa: N802
        ctypes.memmove(to, start, size)

    def cuMemcpyDtoHAsync(self, to: int, start: int, size: int, stream: int) -> None:  # noqa: N802
        ctypes.memmove(to, start, size)

    def cuMemcpyDtoDAsync(self, to: int, start: int, size: int, stream: int) -> None:  # noqa: N802
        ctypes.memmove(to, start, size)

    def cuMemcpyDtoH(self, to: int, start: int, size: int) -> None:  # noqa: N802
        assert self.contexts
        ctypes.memmove(to, start, size)

    def cuMemsetD8Async(self, to: int, value: int, size: int, stream: int) -> None:  # noqa: N802
        ctypes.memset(to, value, size)

    def cuModuleLoadData(self, image: bytes) -> int:  # noqa: N802
        return self._take("modules")

    def cuModuleUnload(self, module: int) -> None:  # noqa: N802
        self._give_back("modules")

    def cuModuleGetFunction(self, module: int, name: bytes) -> str:  # noqa: N802
        return name.decode()

    def cuFuncGetAttribute(self, attribute: Any, function: str) -> int:  # noqa: N802
        return OF_KERNELS[attribute.name.removeprefix("CU_FUNC_ATTRIBUTE_")]

    def cuLaunchKernel(self, function: str, *given: Any) -> None:  # noqa: N802
        *shape, shared, _stream, parameters, further = given
        assert shape[1:] == [1, 1, 256, 1, 1] and (shared, parameters) == (0, 0)
        # The driver lets other threads of Python work.
        time.sleep(1e-5)
        told = (ctypes.c_void_p * 5).from_address(further)
        assert (told[0], told[2], told[4]) == (1, 2, None)
        size = ctypes.c_size_t.from_address(told[3] or 0).value
        self.packed.append(ctypes.string_at(told[1] or 0, size))
