"""What the cuda backend needs, and which library it uses; all of them are played."""

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from helpers.played_machine import H200, SOUND

from mummergpu.cuda import driver as driver_module
from mummergpu.cuda import requirements
from mummergpu.cuda.device_library import AUTO, CUDA_BINDINGS, PYCUDA, device_opener
from mummergpu.cuda.driver import LIBRARY, DriverFacts, ask_driver, ask_for_context, driver_facts
from mummergpu.cuda.requirements import CompilerFacts, cuda_facts, obstacles
from mummergpu.errors import BackendError
from mummergpu.runtime import optional_imports
from mummergpu.runtime.optional_imports import Library


@pytest.fixture
def asked(monkeypatch):
    """Counts how often the driver is asked: whether for memory, each time."""
    told = []

    def ask_it(measure_memory):
        told.append(measure_memory)
        # Long enough for others to ask in the meantime.
        time.sleep(0.02)
        return DriverFacts((12, 9), (), f"answer {len(told)}")

    monkeypatch.setattr(driver_module, "ask_driver", ask_it)
    monkeypatch.setattr(requirements, "ask_driver", ask_it)
    driver_module._kept_facts.cache_clear()
    yield told
    driver_module._kept_facts.cache_clear()


def test_the_driver_is_asked_once_in_a_process(asked):
    with ThreadPoolExecutor(8) as pool:
        facts = list(pool.map(lambda _: driver_facts(), range(8)))
    assert {one.problem for one in facts} == {"answer 1"}
    assert cuda_facts(measure_memory=False).driver == facts[0] and asked == [False]


def test_memory_is_measured_anew_each_time(asked):
    answers = [cuda_facts(measure_memory=True).driver.problem for _ in range(2)]
    assert answers == ["answer 1", "answer 2"] and asked == [True, True]
    assert driver_facts().problem == "answer 3"


def test_no_driver_is_a_problem_and_no_error():
    def load(name):
        raise OSError(f"{name}: cannot open shared object file")

    facts = ask_driver(True, load)
    assert facts == DriverFacts(
        None, (), "no NVIDIA driver (libcuda.so.1: cannot open shared object file)"
    )


def test_a_library_has_its_version_or_is_not_installed():
    assert optional_imports.find("pytest", "pytest") == Library("pytest", pytest.__version__, None)
    missing = optional_imports.find("nobodys-library", "nobodys_library")
    assert missing == Library("nobodys-library", None, "not installed")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("raise RuntimeError('broken\\nin two lines')", "broken"),
        ("raise OSError", "OSError"),
        ("import nobodys_library", "No module named 'nobodys_library'"),
    ],
)
def test_a_library_that_is_broken_is_no_error(text, problem, tmp_path, monkeypatch):
    (tmp_path / "broken_library.py").write_text(text)
    (tmp_path / "broken_library-1.5.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: broken-library\nVersion: 1.5\n"
    (tmp_path / "broken_library-1.5.dist-info" / "METADATA").write_text(metadata)
    monkeypatch.syspath_prepend(tmp_path)
    found = optional_imports.find("broken-library", "broken_library")
    assert found == Library("broken-library", "1.5", f"cannot be imported: {problem}")


NO_DRIVER = DriverFacts(None, (), "no NVIDIA driver (not found)")
NO_PYCUDA = Library("pycuda", None, "not installed")
BROKEN_PYCUDA = Library("pycuda", "2026.1", "cannot be imported: no libcuda.so.1")
NO_BINDINGS = Library("cuda-bindings", None, "not installed")
BROKEN_BINDINGS = Library("cuda-bindings", "13.0.1", "cannot be imported: why")
NO_NVRTC = CompilerFacts(None, (), "NVRTC cannot be loaded (not found)")
INSTALL = "pip install 'mummergpu[cuda-wheels]' (in a clone: pip install '.[cuda-wheels]')"
INSTALL_12 = "pip install 'mummergpu[cuda12-wheels]'"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"driver": NO_DRIVER}, ["no NVIDIA driver (not found): install NVIDIA's driver"]),
        # Without a driver PyCUDA cannot be imported; that is not a second thing to mend.
        ({"driver": NO_DRIVER, "pycuda": BROKEN_PYCUDA}, ["no NVIDIA driver (not found): install"]),
        (
            {"driver": DriverFacts((13, 0), (), "the driver has no device")},
            ["the driver has no device: see what nvidia-smi"],
        ),
        (
            {"driver": DriverFacts((13, 0), (replace(H200, problem="busy"),), None)},
            ["device 0: busy: see what nvidia-smi says"],
        ),
        # The other library takes its place.
        ({"pycuda": NO_PYCUDA}, []),
        ({"pycuda": BROKEN_PYCUDA}, []),
        (
            {"bindings": NO_BINDINGS, "compiler": NO_NVRTC},
            [f"cuda-bindings: not installed: {INSTALL}"],
        ),
        ({"compiler": NO_NVRTC}, [f"NVRTC cannot be loaded: {INSTALL}"]),
        (
            {"driver": NO_DRIVER, "pycuda": NO_PYCUDA, "bindings": NO_BINDINGS},
            ["no NVIDIA driver", f"cuda-bindings: not installed: {INSTALL}; it needs no compiler"],
        ),
        (
            {"bindings": BROKEN_BINDINGS},
            ["cuda-bindings: cannot be imported: why: pip install --force-reinstall"],
        ),
        (
            {"driver": DriverFacts((12, 4), (H200,), None)},
            ["NVRTC is of CUDA 13.5, the driver for CUDA 12.4: pip uninstall"],
        ),
        (
            {
                "driver": DriverFacts((12, 4), (H200,), None),
                "bindings": NO_BINDINGS,
                "compiler": NO_NVRTC,
            },
            [f"cuda-bindings: not installed: {INSTALL_12} (in a clone: pip install '.[cuda12-wh"],
        ),
        (
            {"driver": DriverFacts((13, 0), (replace(H200, capability=(6, 1)),), None)},
            [f"NVRTC 13.5 does not compile for so old a device: {INSTALL_12}"],
        ),
    ],
)
def test_what_is_missing_comes_with_what_to_do(changes, expected):
    found = [str(obstacle) for obstacle in obstacles(replace(SOUND, **changes))]
    assert len(found) == len(expected)
    for line, start in zip(found, expected, strict=True):
        assert line.startswith(start)


def test_one_device_that_works_is_enough():
    busy, old = replace(H200, number=1, problem="busy"), replace(H200, capability=(5, 0))
    assert obstacles(replace(SOUND, driver=DriverFacts((13, 0), (old, H200, busy), None))) == []
    targets = [requirements.target(one, SOUND.compiler) for one in (H200, old)]
    assert targets == ["sm_90", None]


def test_a_compiler_that_is_missing_is_a_problem(monkeypatch):
    def refuse():
        raise BackendError("cuda", "NVRTC cannot be loaded")

    monkeypatch.setattr(requirements, "nvrtc_version", refuse)
    assert requirements.compiler_facts() == CompilerFacts(None, (), "NVRTC cannot be loaded")


def test_this_machine_can_be_looked_at():
    facts = cuda_facts(measure_memory=False)
    assert facts.pycuda.name == "pycuda"
    assert (facts.compiler.problem is None) == (facts.compiler.version is not None)
    assert (facts.driver.problem is None) == bool(facts.driver.devices)
    assert bool(obstacles(facts)) or facts.driver.devices
    # Nothing but the driver is asked for a library that is not wanted.
    facts = cuda_facts(measure_memory=False, library="cuda-bindings")
    assert facts.pycuda == Library("pycuda", None, "not looked for")


NEITHER = replace(SOUND, pycuda=NO_PYCUDA, bindings=NO_BINDINGS, compiler=NO_NVRTC)


@pytest.mark.parametrize(
    ("facts", "wanted", "found"),
    [
        (SOUND, AUTO, PYCUDA),
        (SOUND, PYCUDA, PYCUDA),
        (SOUND, CUDA_BINDINGS, CUDA_BINDINGS),
        (replace(SOUND, pycuda=NO_PYCUDA), AUTO, CUDA_BINDINGS),
        (replace(SOUND, pycuda=NO_PYCUDA), PYCUDA, None),
        (replace(SOUND, pycuda=BROKEN_PYCUDA), AUTO, CUDA_BINDINGS),
        (replace(SOUND, pycuda=BROKEN_PYCUDA), PYCUDA, None),
        (NEITHER, AUTO, None),
        (NEITHER, CUDA_BINDINGS, None),
    ],
)
def test_pycuda_is_taken_where_it_works(facts, wanted, found):
    assert requirements.library_to_use(facts, wanted) == found
    # What is missing is told, and nothing else.
    assert bool(obstacles(facts, wanted)) == (found is None)


def told(facts, wanted):
    return [str(obstacle) for obstacle in obstacles(facts, wanted)]


def test_wheels_are_named():
    old = replace(NEITHER, driver=DriverFacts((12, 4), (H200,), None))
    assert "pip install 'mummergpu[cuda12-wheels]'" in told(old, AUTO)[0]
    # PyCUDA is there: what is missing is in the wheels.
    assert "cuda-wheels" in told(replace(NEITHER, pycuda=SOUND.pycuda), AUTO)[0]
    for wanted in (AUTO, CUDA_BINDINGS):
        assert told(NEITHER, wanted) == [
            "cuda-bindings: not installed: pip install 'mummergpu[cuda-wheels]' (in a clone: "
            "pip install '.[cuda-wheels]'); it needs no compiler"
        ]


def test_pycuda_is_named_where_the_user_wants_it():
    lines = told(NEITHER, PYCUDA)
    assert len(lines) == 2 and all("pip install 'mummergpu[cuda]'" in line for line in lines)
    assert "needs a C++ compiler and CUDA's headers; or --device-library cuda-bindings" in lines[0]
    (line,) = told(replace(SOUND, pycuda=BROKEN_PYCUDA), PYCUDA)
    assert line.startswith("PyCUDA cannot be imported: no libcuda.so.1: pip install --force-reins")
    assert line.endswith("tall --no-cache-dir pycuda")
    # Without a driver it cannot be imported; that is not a second thing to mend.
    assert len(told(replace(SOUND, driver=NO_DRIVER, pycuda=BROKEN_PYCUDA), PYCUDA)) == 1


def test_each_library_has_a_device(nvrtc):
    assert device_opener(CUDA_BINDINGS).library == CUDA_BINDINGS


class Driver:
    """Stands in for the driver's library; answers every call with a code."""

    def __init__(self, answers):
        self.answers = answers
        self.calls = []
        self.devices = set()

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            if name == "cuDeviceGet":
                self.devices.add(arguments[1])
            return self.answers.get(name, 0)

        return call


@pytest.mark.parametrize(
    ("answers", "calls"),
    [
        ({}, ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]),
        # Nothing more is asked of a driver that fails.
        ({"cuInit": 100}, ["cuInit"]),
        ({"cuDeviceGet": 101}, ["cuInit", "cuDeviceGet"]),
    ],
)
def test_the_primary_context_is_retained(answers, calls, monkeypatch):
    driver = Driver(answers)
    loaded = []

    def load(name):
        loaded.append(name)
        return driver

    monkeypatch.setattr(ctypes, "CDLL", load)
    ask_for_context(2).join(10)
    assert loaded == [LIBRARY] and driver.devices <= {2}
    assert driver.calls == calls


def test_no_driver_is_no_error(monkeypatch):
    def load(name):
        raise OSError(f"{name}: not found")

    monkeypatch.setattr(ctypes, "CDLL", load)
    thread = ask_for_context(0)
    thread.join(10)
    assert not thread.is_alive()
