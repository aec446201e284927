"""The report of ``mummergpu doctor``: what this machine has for mummergpu, and what is missing.

Nothing here may fail, because users ask for this report when something is broken. So each library
is tried on its own, and the backends are examined after the libraries that they need.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.libraries import Library, in_one_line, look_for
from mummergpu.runtime.processors import processor_count
from mummergpu.version import __version__

if TYPE_CHECKING:
    from mummergpu.cuda.driver import DeviceFacts
    from mummergpu.cuda.requirements import CudaFacts, Obstacle

REQUIRED: Final = {
    "numba": "numba",
    "numpy": "numpy",
    "pysam": "pysam",
    "isal": "isal.igzip",
}
"""The libraries that every backend needs: from the name for pip to the module to import."""

OPTIONAL: Final = {
    "matplotlib": ("matplotlib.figure", "plot"),
    "jinja2": ("jinja2", "report"),
    "scipy": ("scipy.special", "report"),
}
"""The libraries of single options and commands: the module to import, and the extra for pip."""

if sys.version_info < (3, 14):  # Later versions have zstd of their own.
    OPTIONAL["zstandard"] = ("zstandard", "zstd")

_LABEL_WIDTH: Final = 16


@frozen
class FolderFacts:
    """A folder that keeps compiled code.

    Attributes
    ----------
    folder : str or None
        Its path, even if it does not exist yet; None if there is no possible folder.
    writable : bool
        Whether files can be written into it, or it can be made.
    entries : int
        The number of files in it.
    bytes : int
        The total size of these files.
    """

    folder: str | None
    writable: bool
    entries: int
    bytes: int


@frozen
class Report:
    """All facts of the report.

    Attributes
    ----------
    python, system : str
        The version of Python, and the operating system.
    processors : int
        The number of processors that this process may use.
    libraries : tuple of Library
        The libraries that every backend needs; the last is this package itself.
    optional : tuple of Library
        The libraries of single options and commands.
    compiled_code : FolderFacts
        The folder that keeps code for this processor.
    cuda : CudaFacts or None
        The libraries and devices of the cuda backend; None if they cannot be examined.
    kernels : FolderFacts
        The folder that keeps compiled kernels.
    obstacles : tuple of Obstacle
        The reasons why the cuda backend does not work.
    problem : str or None
        Why the cuda backend cannot be examined.
    device_library : str or None
        The library through which GPUs are used unless the user names one; None if the cuda
        backend does not work.
    auto_backend : str or None
        The backend that ``--backend auto`` uses; None if no backend works.
    """

    python: str
    system: str
    processors: int
    libraries: tuple[Library, ...]
    optional: tuple[Library, ...]
    compiled_code: FolderFacts
    cuda: CudaFacts | None
    kernels: FolderFacts
    obstacles: tuple[Obstacle, ...]
    problem: str | None
    device_library: str | None
    auto_backend: str | None

    def as_json(self) -> str:
        """Return the report as JSON; the keys are the names of the attributes."""
        return json.dumps(asdict(self), indent=2)


def examine(
    compiled_code: Path, kernels: Path | None, can_be_written: Callable[[str], bool]
) -> Report:
    """Return the facts and the problems of this machine; no exception is raised."""
    required = [look_for(name, module) for name, module in REQUIRED.items()]
    # This package comes last: if a library is broken, the package that imports it is broken, too.
    own = replace(look_for("mummergpu", "mummergpu.pipeline.match"), version=__version__)
    libraries = (*required, own)
    cuda, found, library, problem = None, [], None, None
    try:
        from mummergpu.cuda.requirements import cuda_facts, library_to_use, obstacles

        cuda = cuda_facts(measure_memory=True)
        found = obstacles(cuda)
        library = None if found else library_to_use(cuda)
    except Exception as error:
        problem = in_one_line(error)
    backend = "cpu" if library is None else "cuda"
    return Report(
        python=platform.python_version(),
        system=platform.platform(),
        processors=processor_count(),
        libraries=libraries,
        optional=tuple(look_for(name, module) for name, (module, _) in OPTIONAL.items()),
        compiled_code=_folder_facts(compiled_code, "**/*.code", can_be_written),
        cuda=cuda,
        kernels=_folder_facts(kernels, "*.kernel", can_be_written),
        obstacles=tuple(found),
        problem=problem,
        device_library=library,
        auto_backend=None if any(library.problem for library in libraries) else backend,
    )


def _folder_facts(
    folder: Path | None, pattern: str, can_be_written: Callable[[str], bool]
) -> FolderFacts:
    if folder is None:
        return FolderFacts(None, False, 0, 0)
    sizes = []
    with suppress(OSError):
        for path in folder.glob(pattern):
            # Another process may remove the file between `glob` and `lstat`.
            with suppress(OSError):
                sizes.append(path.lstat().st_size)
    return FolderFacts(str(folder), can_be_written(str(folder)), len(sizes), sum(sizes))


def render(report: Report) -> str:
    """Return a report as text for people."""
    rows = [
        ("Python", f"{report.python} on {report.system}, {report.processors} processors"),
        *((library.name, _library(library)) for library in report.libraries),
        *((library.name, _optional(library)) for library in report.optional),
        ("compiled code", _folder(report.compiled_code)),
        *_cuda_rows(report),
        ("kernels", _folder(report.kernels)),
        *(("missing for cuda", str(obstacle)) for obstacle in report.obstacles),
        ("backend", _backend(report)),
    ]
    return "\n".join(f"{label:<{_LABEL_WIDTH}}  {text}" for label, text in rows)


def _cuda_rows(report: Report) -> Iterator[tuple[str, str]]:
    cuda = report.cuda
    if cuda is None:
        yield "cuda", f"cannot be looked at: {report.problem}"
        return
    driver, compiler = cuda.driver, cuda.compiler
    if driver.cuda_version is None:
        yield "driver", driver.problem or "none"
    else:
        problem = f"; {driver.problem}" if driver.problem else ""
        yield "driver", f"for CUDA {_dotted(driver.cuda_version)}{problem}"
    for device in driver.devices:
        yield f"device {device.number}", _device(device)
    yield "PyCUDA", _library(cuda.pycuda)
    yield "cuda-bindings", _library(cuda.bindings)
    if compiler.version is None:
        yield "NVRTC", compiler.problem or "none"
    else:
        architectures = " ".join(f"sm_{number}" for number in compiler.architectures)
        yield "NVRTC", f"{_dotted(compiler.version)}, compiles for {architectures}"
    if report.device_library is not None:
        yield "device library", f"--device-library auto takes {report.device_library}"


def _library(library: Library) -> str:
    return ", ".join(text for text in (library.version, library.problem) if text) or "there"


def _optional(library: Library) -> str:
    """Return the state of a library that is not always needed, and how to install it."""
    if library.version is not None:
        return _library(library)
    return f"{_library(library)} (pip install 'mummergpu[{OPTIONAL[library.name][1]}]')"


def _folder(facts: FolderFacts) -> str:
    if facts.folder is None:
        return "no place for them: there is no home folder"
    writable = "writable" if facts.writable else "NOT writable"
    return f"{facts.folder}: {writable}, {facts.entries} files, {_size(facts.bytes)}"


def _device(device: DeviceFacts) -> str:
    parts = [
        device.name,
        f"compute capability {_dotted(device.capability)}",
        f"{device.multiprocessors} multiprocessors",
        _size(device.total_bytes),
    ]
    if device.free_bytes is not None:
        parts.append(f"{_size(device.free_bytes)} free")
    if device.problem:
        parts.append(device.problem)
    return ", ".join(parts)


def _backend(report: Report) -> str:
    if report.auto_backend is None:
        broken = next(library.name for library in report.libraries if library.problem)
        return f"none works; pip install --force-reinstall {broken}"
    return f"--backend auto takes {report.auto_backend}"


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _size(count: int) -> str:
    """Return a number of bytes with a unit that suits it."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >> shift:
            return f"{count / (1 << shift):,.1f} {unit}"
    return f"{count} bytes"
