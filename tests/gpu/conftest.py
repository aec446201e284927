"""Tests of this folder need a CUDA device, and skip with the reason where there is none."""

import os

import pytest
from helpers.gpu_turns import in_turn
from helpers.requirements import do_without

from mummergpu.cuda.device_library import DEVICE_LIBRARIES, device_opener
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.requirements import cuda_facts, obstacles


@pytest.fixture(scope="session", autouse=True)
def cuda_device():
    missing = obstacles(cuda_facts(False))
    if missing:
        do_without(f"no CUDA device to test on: {missing[0]}", "GPU")


@pytest.fixture(scope="module", params=DEVICE_LIBRARIES)
def device_library(cuda_device, request):
    """Each of the libraries that a device can be used through."""
    library = request.param
    missing = obstacles(cuda_facts(False, library), library)
    if missing:
        do_without(str(missing[0]), "DEVICE_LIBRARIES")
    return library


@pytest.fixture
def on_device(device_library):
    """The words of the command that let it search on a device."""
    return ["--backend", "cuda", "--device-library", device_library]


@pytest.fixture(scope="module")
def device(device_library):
    """The first device; who measures what it has meets no context that begins meanwhile."""
    with in_turn(False):
        found = device_opener(device_library)(0)
    yield found
    found.close()


@pytest.fixture
def devices(device):
    """What `helpers.device_cases` tries."""
    return [device]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Kernels that each run of the tests compiles anew, in whichever process comes first."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return KernelCache(folder / "kernels", print)


@pytest.fixture
def whole_device():
    """For tests that measure what a device has: no other one is there at the same time."""


@pytest.fixture(autouse=True)
def turn(request):
    """Have each test wait for its turn."""
    with in_turn("whole_device" in request.fixturenames):
        yield
