"""Checks the requirements of the cuda backend, and says how to install missing ones."""

from __future__ import annotations

from typing import Final

from mummergpu.cuda.device_library import AUTO, CUDA_BINDINGS, PYCUDA
from mummergpu.cuda.driver import DeviceFacts, DriverFacts, ask_driver, driver_facts
from mummergpu.cuda.nvrtc import (
    INSTALL_FOR_CUDA_12,
    choose_architecture,
    known_architectures,
    nvrtc_version,
)
from mummergpu.errors import BackendError
from mummergpu.runtime import optional_imports
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.optional_imports import Library

_CUDA_13: Final = (13, 0)

_NOT_LOOKED_FOR: Final = Library("pycuda", None, "not looked for")


@frozen
class CompilerFacts:
    """NVRTC's version, None if it is missing, and the architectures that it compiles for.

    90 is compute capability 9.0; `problem` says why NVRTC cannot be used.
    """

    version: tuple[int, int] | None
    architectures: tuple[int, ...]
    problem: str | None


@frozen
class CudaFacts:
    """The state of everything that the backend needs.

    A device can be used through either library; `bindings` also compile the kernels.
    """

    driver: DriverFacts
    pycuda: Library
    bindings: Library
    compiler: CompilerFacts


@frozen
class Obstacle:
    """Something that keeps the backend from working, and a remedy: a command, where one helps."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.remedy}"


def cuda_facts(measure_memory: bool, library: str = AUTO) -> CudaFacts:
    """Check everything that the backend needs; nothing is raised.

    Without free memory (`ask_driver`), the process queries the driver only once. The library is the
    one that the user wants, as in ``--device-library``: PyCUDA, which takes some time to import, is
    not looked for if it is another.
    """
    return CudaFacts(
        ask_driver(True) if measure_memory else driver_facts(),
        _NOT_LOOKED_FOR
        if library == CUDA_BINDINGS
        else optional_imports.find("pycuda", "pycuda.driver"),
        optional_imports.find("cuda-bindings", "cuda.bindings.driver"),
        compiler_facts(),
    )


def compiler_facts() -> CompilerFacts:
    """Look for NVRTC."""
    try:
        return CompilerFacts(nvrtc_version(), tuple(known_architectures()), None)
    except BackendError as error:
        return CompilerFacts(None, (), error.message)


def library_to_use(facts: CudaFacts, library: str = AUTO) -> str | None:
    """Return the one of `DEVICE_LIBRARIES` through which a device is used.

    None if the one that the user wants, as in ``--device-library``, is missing, or every one.
    """
    problems = {PYCUDA: facts.pycuda.problem, CUDA_BINDINGS: facts.bindings.problem}
    wanted = (PYCUDA, CUDA_BINDINGS) if library == AUTO else (library,)
    return next((name for name in wanted if problems[name] is None), None)


def obstacles(facts: CudaFacts, library: str = AUTO) -> list[Obstacle]:
    """Return the obstacles to the cuda backend, in the order in which to remove them.

    The facts are those of `cuda_facts` for the same library.
    """
    found = [*_obstacles_of_the_driver(facts.driver)]
    if library == PYCUDA and (obstacle := _obstacle_of_pycuda(facts)):
        found.append(obstacle)
    if facts.bindings.problem:
        found.append(_obstacle_of_the_bindings(facts, library))
    elif facts.compiler.problem:
        remedy = _install("cuda-wheels", facts.driver)
        found.append(Obstacle("NVRTC cannot be loaded", remedy))
    return found + _obstacles_of_the_compiler(facts)


def _install(extra: str, driver: DriverFacts) -> str:
    """Return the command that installs an extra, in the version that the driver can use."""
    if driver.cuda_version is not None and driver.cuda_version < _CUDA_13:
        extra = extra.replace("cuda", "cuda12")
    return f"pip install 'mummergpu[{extra}]' (in a clone: pip install '.[{extra}]')"


def _obstacle_of_pycuda(facts: CudaFacts) -> Obstacle | None:
    """Return the fault of PyCUDA, where the user wants no other library."""
    pycuda = facts.pycuda
    if pycuda.version is None and pycuda.problem:
        needs = "it is compiled for this machine and needs a C++ compiler and CUDA's headers"
        remedy = f"{_install('cuda', facts.driver)}; {needs}; or --device-library {CUDA_BINDINGS}"
        return Obstacle(f"PyCUDA is {pycuda.problem}", remedy)
    # Without a driver PyCUDA cannot be imported; that is not a second thing to mend.
    if pycuda.problem and facts.driver.cuda_version is not None:
        remedy = "pip install --force-reinstall --no-cache-dir pycuda"
        return Obstacle(f"PyCUDA {pycuda.problem}", remedy)
    return None


def _obstacle_of_the_bindings(facts: CudaFacts, library: str) -> Obstacle:
    """Return the remedy where ``cuda-bindings``, which all need, do not work."""
    what = f"cuda-bindings: {facts.bindings.problem}"
    if facts.bindings.version is not None:
        return Obstacle(what, "pip install --force-reinstall --no-cache-dir cuda-bindings")
    if library == PYCUDA:
        return Obstacle(what, _install("cuda", facts.driver))
    return Obstacle(what, f"{_install('cuda-wheels', facts.driver)}; it needs no compiler")


def _obstacles_of_the_driver(driver: DriverFacts) -> list[Obstacle]:
    if driver.cuda_version is None:
        return [
            Obstacle(driver.problem or "no driver", "install NVIDIA's driver, if there is a GPU")
        ]
    if driver.problem:
        return [Obstacle(driver.problem, "see what nvidia-smi and CUDA_VISIBLE_DEVICES say")]
    if all(device.problem for device in driver.devices):
        problem = driver.devices[0].problem
        return [Obstacle(f"device 0: {problem}", "see what nvidia-smi says")]
    return []


def _obstacles_of_the_compiler(facts: CudaFacts) -> list[Obstacle]:
    compiler, driver = facts.compiler, facts.driver
    if compiler.version is None or driver.cuda_version is None:
        return []
    # Within one major version the driver loads the output of a later compiler.
    if compiler.version[0] > driver.cuda_version[0]:
        versions = f"NVRTC is of CUDA {dotted(compiler.version)}, the driver for CUDA "
        what = f"{versions}{dotted(driver.cuda_version)}"
        # Python would find the newer NVRTC first.
        remedy = f"pip uninstall nvidia-cuda-nvrtc && {INSTALL_FOR_CUDA_12}"
        return [Obstacle(what, f"{remedy}, or a newer driver")]
    if driver.devices and all(target(device, compiler) is None for device in driver.devices):
        what = f"NVRTC {dotted(compiler.version)} does not compile for so old a device"
        return [Obstacle(what, INSTALL_FOR_CUDA_12)]
    return []


def target(device: DeviceFacts, compiler: CompilerFacts) -> str | None:
    """Return the architecture that the kernels are compiled for on a device."""
    try:
        return choose_architecture(device.capability, compiler.architectures)
    except BackendError:
        return None


def dotted(version: tuple[int, int]) -> str:
    """Return a version as text, with a dot."""
    return f"{version[0]}.{version[1]}"
