"""Compiles the kernels at run time with NVIDIA's NVRTC, which needs no GPU.

NVRTC is a separate library, called through NVIDIA's ``cuda-bindings``. It compiles for the
architectures that it knows; `choose_architecture` picks one of them for a device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from mummergpu.cuda.program import ProgramSource
from mummergpu.errors import BackendError

INSTALL: Final = "pip install 'mummergpu[cuda-wheels]'"
"""The command that installs the libraries of the backend, without a compiler."""

INSTALL_FOR_CUDA_12: Final = "pip install 'mummergpu[cuda12-wheels]'"
"""The same command for drivers and devices that CUDA 13 no longer supports."""

OPTIONS: Final = ("--std=c++17", "--extra-device-vectorization", "--generate-line-info")
"""The options of every compilation. Line information does not slow the kernels, and profilers
need it to show the source."""

INTEGRATED: Final = frozenset({53, 62, 72, 87, 101, 110})
"""Architectures of systems on a chip. Their machine code runs on no other device, even where
the first digit is the same."""


class CompilationError(BackendError):
    """NVRTC failed to compile the kernels."""

    def __init__(self, program: str, architecture: str, log: str) -> None:
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line] or lines or ["no reason is given"]
        message = f"the kernels '{program}' do not compile for {architecture}: {errors[0]}"
        super().__init__("cuda", message)
        self.program = program
        self.architecture = architecture
        self.log = log
        if len(lines) > 1:
            self.add_note(log.rstrip())

    def __reduce__(self) -> tuple[type[CompilationError], tuple[str, str, str]]:
        return type(self), (self.program, self.architecture, self.log)


def compiler_options(program: ProgramSource, architecture: str) -> list[str]:
    """Return the options of NVRTC for a program."""
    return [f"--gpu-architecture={architecture}", *OPTIONS, *program.definitions()]


def compile_program(sources: Mapping[str, str], program: ProgramSource, architecture: str) -> bytes:
    """Return the compiled kernels: a cubin, or PTX with its closing zero byte.

    Raises
    ------
    CompilationError
        With NVRTC's log, if it refuses.
    BackendError
        If there is no NVRTC, or the program's entry is not among the sources.
    """
    return compile_with_log(sources, program, architecture)[0]


def compile_with_log(
    sources: Mapping[str, str], program: ProgramSource, architecture: str
) -> tuple[bytes, str]:
    """Return the compiled kernels, and NVRTC's warnings (`compile_program`)."""
    nvrtc = _nvrtc()
    headers = program.files(sources)
    text = headers.pop(program.entry)
    (handle,) = _checked(
        nvrtc.nvrtcCreateProgram(
            text.encode(),
            program.entry.encode(),
            len(headers),
            [text.encode() for text in headers.values()],
            [name.encode() for name in headers],
        )
    )
    try:
        options = [option.encode() for option in compiler_options(program, architecture)]
        (result,) = nvrtc.nvrtcCompileProgram(handle, len(options), options)
        written = _bytes_of(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, handle)
        log = written.rstrip(b"\0").decode(errors="replace")
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompilationError(program.name, architecture, log or result.name)
        if architecture.startswith("compute_"):
            image = _bytes_of(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, handle)
        else:
            image = _bytes_of(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, handle)
        return image, log
    finally:
        nvrtc.nvrtcDestroyProgram(handle)


def nvrtc_version() -> tuple[int, int]:
    """Return the version of NVRTC; without one, `BackendError` says what to install."""
    major, minor = _checked(_nvrtc().nvrtcVersion())
    return major, minor


def known_architectures() -> list[int]:
    """Return the architectures that NVRTC compiles for, ascending: 90 is compute capability 9.0.

    `BackendError` says that there is no NVRTC.
    """
    (architectures,) = _checked(_nvrtc().nvrtcGetSupportedArchs())
    return sorted(architectures)


def choose_architecture(capability: tuple[int, int], known: Sequence[int] | None = None) -> str:
    """Return the architecture to compile for, so that a device can run the kernels.

    It is the device's own one (``sm_90``) where it is known, else the nearest lower one whose
    machine code runs on it, else the highest known below it as PTX (``compute_90``), which the
    driver compiles for the device. `BackendError` is raised if the device is older than every
    architecture that the compiler knows.
    """
    major, minor = capability
    wanted = 10 * major + minor
    known = known_architectures() if known is None else known
    below = sorted(number for number in known if number <= wanted)
    if not below:
        raise BackendError(
            "cuda",
            f"this NVRTC does not compile for compute capability {major}.{minor}; "
            f"an older one may: {INSTALL_FOR_CUDA_12}",
        )
    if below[-1] == wanted:
        return f"sm_{wanted}"
    related = [number for number in below if number // 10 == major and number not in INTEGRATED]
    if related and wanted not in INTEGRATED:
        return f"sm_{related[-1]}"
    return f"compute_{below[-1]}"


@cache
def _nvrtc() -> Any:
    """Return the module of NVRTC's calls, after a check that the library can be loaded."""
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        message = f"cuda-bindings cannot be imported ({error}); install it: {INSTALL}"
        raise BackendError("cuda", message) from error
    try:
        nvrtc.nvrtcVersion()
    except Exception as error:
        # Each version of cuda-bindings has its own exception for a library it cannot find.
        reason = str(error).partition("\n")[0]
        raise BackendError("cuda", f"NVRTC cannot be loaded ({reason}); {INSTALL}") from error
    return nvrtc


def _checked(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the results of a call without its error code, or raise the error."""
    result, *values = answer
    if result != type(result).NVRTC_SUCCESS:
        raise BackendError("cuda", f"NVRTC fails: {result.name}")
    return tuple(values)


def _bytes_of(size_of: Callable[..., Any], fill: Callable[..., Any], program: object) -> bytes:
    """Return bytes from NVRTC, which first reports their number and then writes them."""
    (size,) = _checked(size_of(program))
    buffer = bytearray(size)
    _checked(fill(program, buffer))
    return bytes(buffer)
