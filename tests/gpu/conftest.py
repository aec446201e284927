"""Tests of this folder need a CUDA device, and skip with the reason where there is none."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mummergpu.cuda.device import Device
from mummergpu.cuda.driver import driver_facts
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.requirements import cuda_facts, obstacles

REQUIRE_GPU = "MUMMERGPU_REQUIRE_GPU"
"""Set to 1 where a missing device must fail the tests."""

REQUIRE_TWO_GPUS = "MUMMERGPU_REQUIRE_TWO_GPUS"
"""Set to 1 where a missing second device must fail the tests of several."""


@pytest.fixture(scope="session", autouse=True)
def cuda_device() -> None:
    missing = obstacles(cuda_facts(False))
    if not missing:
        return
    reason = f"no CUDA device to test on: {missing[0]}"
    if os.environ.get(REQUIRE_GPU) == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def device_numbers(cuda_device: None) -> tuple[int, ...]:
    """The numbers of all devices, of which there are at least two."""
    numbers = tuple(device.number for device in driver_facts().devices)
    if len(numbers) >= 2:
        return numbers
    reason = f"two CUDA devices are needed, and there is {len(numbers)}"
    if os.environ.get(REQUIRE_TWO_GPUS) == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def device(cuda_device: None) -> Iterator[Device]:
    """The first device."""
    from mummergpu.cuda.pycuda_device import PycudaDevice

    found = PycudaDevice(0)
    yield found
    found.close()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> KernelCache:
    """Kernels that are compiled anew for each module."""
    folder: Path = tmp_path_factory.mktemp("kernels")
    return KernelCache(folder, print)


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Let the processes that share the tests take turns on the device, as they share its memory."""
    with open(Path(tempfile.gettempdir()) / f"mummergpu-gpu-tests-{os.getuid()}", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
