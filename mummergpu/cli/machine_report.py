"""What this machine has for mummergpu, and what is missing.

Nothing here may fail: what is broken is what one asks this for. So every library is tried
on its own, and the backends are looked at after it is known what they stand on.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mummergpu import __version__
from mummergpu.runtime.libraries import Library, in_one_line, look_for

if TYPE_CHECKING:
    from mummergpu.cuda.driver import DeviceFacts
    from mummergpu.cuda.requirements import CudaFacts, Obstacle

REQUIRED: Final = {"numba": "numba", "numpy": "numpy", "pysam": "pysam", "isal": "isal.igzip"}
"""What every backend needs: the module to import, by pip's name."""

_LABEL_WIDTH: Final = 16


@dataclass(frozen=True)
class FolderFacts:
    """A folder that keeps compiled code.

    Attributes
    ----------
    folder : str or None
        Where it is, or would be; None if there is no place for it.
    writable : bool
        Whether files can be made in it, or it can be made.
    entries : int
        The number of files kept.
    bytes : int
        Their size together.
    """

    folder: str | None
    writable: bool
    entries: int
    bytes: int


@dataclass(frozen=True)
class Report:
    """All that was found.

    Attributes
    ----------
    python, system : str
        What it runs on.
    processors : int
        Those that this process may use.
    libraries : tuple of Library
        What every backend needs, and last this package itself.
    compiled_code : FolderFacts
        Where code for this processor is kept.
    cuda : CudaFacts or None
        What the cuda backend needs; None if it cannot be looked at.
    kernels : FolderFacts
        Where compiled kernels are kept.
    obstacles : tuple of Obstacle
        What keeps the cuda backend from working.
    problem : str or None
        Why the cuda backend cannot be looked at.
    auto_backend : str or None
        What ``--backend auto`` takes; None if no backend works.
    """

    python: str
    system: str
    processors: int
    libraries: tuple[Library, ...]
    compiled_code: FolderFacts
    cuda: CudaFacts | None
    kernels: FolderFacts
    obstacles: tuple[Obstacle, ...]
    problem: str | None
    auto_backend: str | None

    def as_json(self) -> str:
        """Return the report as JSON with the names of the attributes."""
        return json.dumps(asdict(self), indent=2)


def examine(
    compiled_code: Path, kernels: Path | None, can_be_written: Callable[[str], bool]
) -> Report:
    """Look at this machine.

    Parameters
    ----------
    compiled_code : Path
        Where code for this processor is kept.
    kernels : Path or None
        Where compiled kernels are kept.
    can_be_written : callable
        Tells whether files can be made in a folder.

    Returns
    -------
    Report
        Nothing is raised; problems are in it.
    """
    required = [look_for(name, module) for name, module in REQUIRED.items()]
    # This package stands last: where a library is broken, so is what imports it.
    own = replace(look_for("mummergpu", "mummergpu.pipeline.match"), version=__version__)
    libraries = (*required, own)
    cuda, found, problem = None, [], None
    try:
        from mummergpu.cuda.requirements import cuda_facts, obstacles

        cuda = cuda_facts(measure_memory=True)
        found = obstacles(cuda)
    except Exception as error:
        problem = in_one_line(error)
    cuda_works = cuda is not None and not found
    backend = "cuda" if cuda_works else "cpu"
    return Report(
        python=platform.python_version(),
        system=platform.platform(),
        processors=len(os.sched_getaffinity(0)),
        libraries=libraries,
        compiled_code=_folder_facts(compiled_code, "**/*.code", can_be_written),
        cuda=cuda,
        kernels=_folder_facts(kernels, "*.kernel", can_be_written),
        obstacles=tuple(found),
        problem=problem,
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
            # Another process may remove it between the two looks.
            with suppress(OSError):
                sizes.append(path.lstat().st_size)
    return FolderFacts(str(folder), can_be_written(str(folder)), len(sizes), sum(sizes))


def render(report: Report) -> str:
    """Return a report as people read it.

    Parameters
    ----------
    report : Report
        What was found.

    Returns
    -------
    str
        A line for each thing, without a newline after the last.
    """
    rows = [
        ("Python", f"{report.python} on {report.system}, {report.processors} processors"),
        *((library.name, _library(library)) for library in report.libraries),
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


def _library(library: Library) -> str:
    return ", ".join(text for text in (library.version, library.problem) if text) or "there"


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
    """Return a number of bytes as people read it."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >> shift:
            return f"{count / (1 << shift):,.1f} {unit}"
    return f"{count} bytes"
