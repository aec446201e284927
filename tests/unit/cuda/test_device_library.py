"""Which library a device is used through, and what to install where there is none."""

from dataclasses import replace

import pytest

from mummergpu.cuda.device_library import AUTO, CUDA_BINDINGS, PYCUDA, device_opener
from mummergpu.cuda.driver import DeviceFacts, DriverFacts
from mummergpu.cuda.requirements import CompilerFacts, CudaFacts, library_to_use, obstacles
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
def test_pycuda_is_taken_where_it_works(facts, wanted, found):
    assert library_to_use(facts, wanted) == found
    # What is missing is told, and nothing else.
    assert bool(obstacles(facts, wanted)) == (found is None)


def told(facts, wanted):
    return [str(obstacle) for obstacle in obstacles(facts, wanted)]


def test_wheels_are_named():
    old = replace(NEITHER, driver=DriverFacts((12, 4), (H200,), None))
    assert "pip install 'mummergpu[cuda12-wheels]'" in told(old, AUTO)[0]
    # PyCUDA is there: what is missing is in the wheels.
    assert "cuda-wheels" in told(replace(NEITHER, pycuda=BOTH.pycuda), AUTO)[0]
    for wanted in (AUTO, CUDA_BINDINGS):
        assert told(NEITHER, wanted) == [
            "cuda-bindings: not installed: pip install 'mummergpu[cuda-wheels]' (in a clone: "
            "pip install '.[cuda-wheels]'); it needs no compiler"
        ]


def test_pycuda_is_named_where_the_user_wants_it():
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


def test_each_library_has_a_device(nvrtc):
    assert device_opener(CUDA_BINDINGS).library == CUDA_BINDINGS  # type: ignore[attr-defined]
