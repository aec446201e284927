"""Which library a device is used through, and what to install where there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mummergpu.cuda import requirements
from mummergpu.cuda.device_library import AUTO, CUDA_BINDINGS, PYCUDA, device_opener
from mummergpu.cuda.driver import DeviceFacts, DriverFacts
from mummergpu.cuda.requirements import (
    CompilerFacts,
    CudaFacts,
    can_build_pycuda,
    library_to_use,
    obstacles,
)
from mummergpu.runtime.optional_imports import Library

GIB = 1 << 30
H200 = DeviceFacts(0, "NVIDIA H200", (9, 0), 132, 140 * GIB, 139 * GIB, None)
BOTH = CudaFacts(
    DriverFacts((13, 0), (H200,), None),
    Library("pycuda", "2026.1", None),
    Library("cuda-bindings", "13.0.1", None),
    CompilerFacts((13, 5), (75, 80, 90, 100), None),
)
NO_PYCUDA = Library("pycuda", None, "not installed")
BROKEN_PYCUDA = Library("pycuda", "2026.1", "cannot be imported: why")
NO_BINDINGS = Library("cuda-bindings", None, "not installed")
NO_NVRTC = CompilerFacts(None, (), "cuda-bindings cannot be imported")
NEITHER = replace(BOTH, pycuda=NO_PYCUDA, bindings=NO_BINDINGS, compiler=NO_NVRTC)


@pytest.fixture
def with_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "can_build_pycuda", lambda environment: True)


@pytest.fixture
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "can_build_pycuda", lambda environment: False)


@pytest.mark.parametrize(
    ("facts", "wanted", "found"),
    [
        (BOTH, AUTO, PYCUDA),
        (BOTH, PYCUDA, PYCUDA),
        (BOTH, CUDA_BINDINGS, CUDA_BINDINGS),
        (replace(BOTH, pycuda=NO_PYCUDA), AUTO, CUDA_BINDINGS),
        (replace(BOTH, pycuda=NO_PYCUDA), PYCUDA, None),
        (replace(BOTH, pycuda=BROKEN_PYCUDA), AUTO, CUDA_BINDINGS),
        (replace(BOTH, pycuda=BROKEN_PYCUDA), PYCUDA, None),
        (NEITHER, AUTO, None),
        (NEITHER, CUDA_BINDINGS, None),
    ],
)
def test_pycuda_is_taken_where_it_works(facts: CudaFacts, wanted: str, found: str | None) -> None:
    assert library_to_use(facts, wanted) == found
    # What is missing is told, and nothing else.
    assert bool(obstacles(facts, wanted)) == (found is None)


def told(facts: CudaFacts, wanted: str) -> list[str]:
    return [str(obstacle) for obstacle in obstacles(facts, wanted)]


def test_wheels_are_named_at_once_where_nothing_can_be_compiled(without_compiler: None) -> None:
    for wanted in (AUTO, CUDA_BINDINGS):
        assert told(NEITHER, wanted) == [
            "cuda-bindings: not installed: pip install 'mummergpu[cuda-wheels]' (in a clone: "
            "pip install '.[cuda-wheels]'); it needs no compiler"
        ]


def test_pycuda_is_named_where_it_can_be_compiled(with_compiler: None) -> None:
    assert told(NEITHER, AUTO) == [
        "cuda-bindings: not installed: pip install 'mummergpu[cuda]' (in a clone: "
        "pip install '.[cuda]')"
    ]
    assert "cuda-wheels" in told(NEITHER, CUDA_BINDINGS)[0]
    # PyCUDA is there: what is missing is in the wheels.
    assert "cuda-wheels" in told(replace(NEITHER, pycuda=BOTH.pycuda), AUTO)[0]
    old = replace(NEITHER, driver=DriverFacts((12, 4), (H200,), None))
    assert "pip install 'mummergpu[cuda12]'" in told(old, AUTO)[0]


def test_pycuda_is_named_where_the_user_wants_it(without_compiler: None) -> None:
    lines = told(NEITHER, PYCUDA)
    assert len(lines) == 2
    assert all("pip install 'mummergpu[cuda]'" in line for line in lines)
    assert "needs a C++ compiler and CUDA's headers; or --device-library cuda-bindings" in lines[0]
    assert told(replace(BOTH, pycuda=BROKEN_PYCUDA), PYCUDA) == [
        "PyCUDA cannot be imported: why: pip install --force-reinstall --no-cache-dir pycuda"
    ]
    # Without a driver it cannot be imported; that is not a second thing to mend.
    no_driver = DriverFacts(None, (), "no NVIDIA driver (not found)")
    assert len(told(replace(BOTH, driver=no_driver, pycuda=BROKEN_PYCUDA), PYCUDA)) == 1


def machine_that_builds(folder: Path) -> tuple[dict[str, str], Path]:
    """A machine with a compiler and all headers: its environment, and the folder of Python's."""
    for name in ("bin/g++", "cuda/bin/nvcc", "cuda/include/cuda.h", "python/Python.h"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o700)
    return {"PATH": f"{folder}/bin:{folder}/cuda/bin"}, folder / "python"


def test_pycuda_needs_a_compiler_and_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mummergpu.cuda.requirements._SYSTEM_FOLDERS", ())
    environment, python = machine_that_builds(tmp_path)
    assert can_build_pycuda(environment, str(python))
    for name in ("bin/g++", "cuda/bin/nvcc", "cuda/include/cuda.h", "python/Python.h"):
        path = tmp_path / name
        path.rename(tmp_path / "away")
        assert not can_build_pycuda(environment, str(python)), name
        (tmp_path / "away").rename(path)
    # The compiler may be told of the headers.
    environment["PATH"] = f"{tmp_path}/bin"
    assert not can_build_pycuda(environment, str(python))
    environment["CPATH"] = f"/nowhere:{tmp_path}/cuda/include"
    assert can_build_pycuda(environment, str(python))
    assert not can_build_pycuda({}, str(tmp_path))


def test_each_library_has_a_device(nvrtc: None) -> None:
    assert device_opener(CUDA_BINDINGS).library == CUDA_BINDINGS  # type: ignore[attr-defined]
