"""What is asked of PyCUDA, which is played: no installation for tests has it."""

import importlib
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from mummergpu.cuda.device import BlockShape

pytest.importorskip("cuda.bindings")


class PlayedFunction:
    def __init__(self, log):
        self._log = log
        self.num_regs, self.local_size_bytes, self.shared_size_bytes = 40, 8, 16

    def prepare(self, codes):
        self._log.append(("prepare", codes))

    def set_attribute(self, attribute, value):
        self._log.append((attribute, value))

    def prepared_async_call(self, grid, block, _stream, *values, shared_size):
        self._log.append(("launch", grid, block, values, shared_size))


@pytest.fixture
def log():
    return []


@pytest.fixture
def pycuda_device(log, monkeypatch):
    """The module, with a played PyCUDA."""
    played: dict[str, object] = {
        "module_from_buffer": lambda cubin: SimpleNamespace(
            get_function=lambda name: PlayedFunction(log)
        ),
        "Stream": lambda: SimpleNamespace(handle=3),
        "function_attribute": SimpleNamespace(MAX_DYNAMIC_SHARED_SIZE_BYTES="most shared"),
    }
    driver = ModuleType("pycuda.driver")
    vars(driver).update(played)
    package = ModuleType("pycuda")
    vars(package)["driver"] = driver
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    monkeypatch.delitem(sys.modules, "mummergpu.cuda.pycuda_device", raising=False)
    yield importlib.import_module("mummergpu.cuda.pycuda_device")
    sys.modules.pop("mummergpu.cuda.pycuda_device")


def test_shared_memory_is_asked_for_once(pycuda_device, log):
    device = SimpleNamespace(resources_of=lambda *of: of)
    program, stream = pycuda_device._Program(b"image", device), pycuda_device._Stream(256)
    for shared in (48 << 10, 100_000, 100_000, 60_000):
        stream.launch(program, "search", 7, (1, np.uint32(2)), BlockShape(64, shared))
        assert log[-1] == ("launch", (7, 1), (64, 1, 1), (1, 2), shared)
    stream.launch(program, "search", 1, (1, np.uint32(2)))
    assert log[-1] == ("launch", (1, 1), (256, 1, 1), (1, 2), 0)
    asked = [each for each in log if each[0] != "launch"]
    assert asked == [("prepare", "QI"), ("most shared", 100_000)]


def test_resources_are_those_of_the_blocks_that_are_launched(pycuda_device):
    device = SimpleNamespace(resources_of=lambda *of: of)
    program, shape = pycuda_device._Program(b"image", device), BlockShape(64, 100)
    assert program.resources("search", shape) == (40, 8, 16, shape)
