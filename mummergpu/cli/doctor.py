"""The command ``doctor``: report the libraries, devices and folders that mummergpu can use.

Nothing here may fail: users ask for this report when something is broken. So each library is tried
separately, and the backends after the libraries that they need.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.option_types import HELP_OPTIONS
from mummergpu.runtime import optional_imports
from mummergpu.runtime.cache_dir import cache_folder, can_be_written, folder_of_compiled_code
from mummergpu.runtime.optional_imports import Library, in_one_line
from mummergpu.runtime.processors import processor_count
from mummergpu.version import __version__

if TYPE_CHECKING:
    from mummergpu.cuda.driver import DeviceFacts

REQUIRED: Final = {
    "numba": "numba",
    "numpy": "numpy",
    "pysam": "pysam",
    "isal": "isal.igzip",
    "tqdm": "tqdm",
}
"""The libraries that every backend needs: from the pip name to the module to import."""

OPTIONAL: Final = {
    "matplotlib": ("matplotlib.figure", "plot"),
    "jinja2": ("jinja2", "report"),
    "scipy": ("scipy.special", "report"),
}
"""The libraries of single options and commands: the module to import, and the pip extra."""

if sys.version_info < (3, 14):  # Later versions have zstd of their own.
    OPTIONAL["zstandard"] = ("zstandard", "zstd")

Report = Mapping[str, Any]
"""The content of ``--json``; libraries and devices are the classes that describe them."""


@click.command("doctor", context_settings=HELP_OPTIONS)
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON.")
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Show what mummergpu can use on this machine, and what is missing.

    Exit code: 0 if a backend works, else 1.
    """
    report = _examine()
    if as_json:
        click.echo(json.dumps(report, indent=2, default=asdict))
    else:
        click.echo("\n".join(f"{label:<16}  {text}" for label, text in _rows(report)))
    context.exit(0 if report["auto_backend"] else 1)


def _examine() -> Report:
    required = [optional_imports.find(name, module) for name, module in REQUIRED.items()]
    # This package comes last: if a library is broken, the package that imports it is broken, too.
    own = replace(
        optional_imports.find("mummergpu", "mummergpu.pipeline.match"), version=__version__
    )
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
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processors": processor_count(),
        "libraries": libraries,
        "optional": [optional_imports.find(name, module) for name, (module, _) in OPTIONAL.items()],
        "compiled_code": _folder_facts(folder_of_compiled_code(os.environ), "**/*.code"),
        "cuda": cuda,
        "kernels": _folder_facts(cache_folder(os.environ), "*.kernel"),
        "obstacles": found,
        "problem": problem,
        "device_library": library,
        "auto_backend": None if any(one.problem for one in libraries) else backend,
    }


def _folder_facts(folder: Path | None, pattern: str) -> Report:
    """Return the facts of a folder of compiled code, which need not exist yet."""
    if folder is None:
        return {"folder": None, "writable": False, "entries": 0, "bytes": 0}
    sizes = []
    with suppress(OSError):
        for path in folder.glob(pattern):
            # Another process may remove the file between `glob` and `lstat`.
            with suppress(OSError):
                sizes.append(path.lstat().st_size)
    writable = can_be_written(str(folder))
    return {"folder": str(folder), "writable": writable, "entries": len(sizes), "bytes": sum(sizes)}


def _rows(report: Report) -> Iterator[tuple[str, str]]:
    yield "Python", "{python} on {system}, {processors} processors".format_map(report)
    for one in report["libraries"]:
        yield one.name, _library(one)
    for one in report["optional"]:
        install = f" (pip install 'mummergpu[{OPTIONAL[one.name][1]}]')"
        yield one.name, _library(one) + install * (one.version is None)
    yield "compiled code", _folder(report["compiled_code"])
    yield from _cuda_rows(report)
    yield "kernels", _folder(report["kernels"])
    for obstacle in report["obstacles"]:
        yield "missing for cuda", str(obstacle)
    if report["auto_backend"] is None:
        broken = next(one.name for one in report["libraries"] if one.problem)
        yield "backend", f"none works; pip install --force-reinstall {broken}"
    else:
        yield "backend", f"--backend auto takes {report['auto_backend']}"


def _cuda_rows(report: Report) -> Iterator[tuple[str, str]]:
    cuda = report["cuda"]
    if cuda is None:
        yield "cuda", f"cannot be looked at: {report['problem']}"
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
    if report["device_library"] is not None:
        yield "device library", f"--device-library auto takes {report['device_library']}"


def _library(library: Library) -> str:
    return ", ".join(text for text in (library.version, library.problem) if text) or "there"


def _folder(facts: Report) -> str:
    if facts["folder"] is None:
        return "no place for them: there is no home folder"
    writable = "writable" if facts["writable"] else "NOT writable"
    return f"{facts['folder']}: {writable}, {facts['entries']} files, {_size(facts['bytes'])}"


def _device(device: DeviceFacts) -> str:
    parts = [
        device.name,
        f"compute capability {_dotted(device.capability)}",
        f"{device.multiprocessors} multiprocessors",
        _size(device.total_bytes),
    ]
    if device.free_bytes is not None:
        parts.append(f"{_size(device.free_bytes)} free")
    return ", ".join([*parts, *([device.problem] if device.problem else [])])


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _size(count: int) -> str:
    """Return a number of bytes with a unit that suits it."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >> shift:
            return f"{count / (1 << shift):,.1f} {unit}"
    return f"{count} bytes"
