"""The parts of a device program: an entry file, macros and constants.

Each engine that searches, aligns or decodes on a device has a folder of kernels. Constants that
kernels share with the host are defined on the host only. They are written into a header that
every program includes, so that the two sides cannot differ.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mummergpu.errors import BackendError
from mummergpu.runtime.frozen import frozen

BLOCK_THREADS: Final = 256
"""The number of threads per block, in every launch."""

WARP_LANES: Final = 32
"""The number of threads per warp."""

COUNTS_PER_THREAD: Final = 8
"""The number of counts that a thread adds up when a scan turns counts into offsets."""

COMMON_FOLDER: Final = "common"
"""The folder of the source files that all programs can include."""

CONSTANTS_HEADER: Final = "constants.cuh"
"""The name of the generated header with the constants of a program."""

_COMMON_CONSTANTS: Final = {
    "BLOCK_THREADS": BLOCK_THREADS,
    "WARP_LANES": WARP_LANES,
    "COUNTS_PER_THREAD": COUNTS_PER_THREAD,
}
_LARGEST_INT: Final = (1 << 32) - 1


@frozen
class ProgramSource:
    """A set of kernels that are compiled together.

    Attributes
    ----------
    name : str
        The name shown to users when the program does not compile; it is unique.
    entry : str
        The file that is compiled, relative to the folder of all kernels, such as
        ``tree/program.cu``. It can include the files of its own folder and of
        `COMMON_FOLDER`, by paths relative to the folder of all kernels.
    macros : tuple of (str, int)
        The macros that the compiler defines.
    constants : tuple of (str, int)
        The constants that only this program shares with the host, besides those of all programs:
        numbers that are not negative, by their names in the kernels.
    generated : str
        CUDA C++ that the host makes, such as the recurrence of a model; it follows the constants.
    """

    name: str
    entry: str
    macros: tuple[tuple[str, int], ...] = ()
    constants: tuple[tuple[str, int], ...] = ()
    generated: str = ""

    def definitions(self) -> list[str]:
        """Return the compiler's options that define the macros, such as ``-DWIDE=1``."""
        return [f"-D{name}={value}" for name, value in self.macros]

    def constants_header(self) -> str:
        """Return the text of the header `CONSTANTS_HEADER`, and what was generated.

        It has one constant per number, of 32 bits, or of 64 bits for larger numbers.
        """
        lines = ["// Generated: what the kernels share with the host.", "#pragma once"]
        for name, value in {**_COMMON_CONSTANTS, **dict(self.constants)}.items():
            kind, suffix = ("int", "u") if value <= _LARGEST_INT else ("long long", "ull")
            lines.append(f"constexpr unsigned {kind} {name} = {value}{suffix};")
        return "\n".join(lines) + "\n" + self.generated

    def files(self, sources: Mapping[str, str]) -> dict[str, str]:
        """Return the entry, all files that it may include and the generated header, by name.

        The sources are texts by their path relative to the folder of all kernels. `BackendError`
        says that the entry is not among them.
        """
        if self.entry not in sources:
            raise BackendError("cuda", f"the kernels' source is not complete: no {self.entry}")
        folders = (self.entry.rpartition("/")[0], COMMON_FOLDER)
        found = {name: text for name, text in sources.items() if name.rpartition("/")[0] in folders}
        return {**found, CONSTANTS_HEADER: self.constants_header()}


def source_folder() -> Path:
    """Return the folder of the kernels' source, in the installed package or next to it."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "kernels"
    return installed if installed.is_dir() else package.parent / "kernels"


def read_sources(folder: Path | None = None) -> dict[str, str]:
    """Return the text of every source file of the kernels by its path, in alphabetical order.

    The folder has one for each engine; by default it is `source_folder`. `BackendError` says that
    they cannot be read.
    """
    folder = source_folder() if folder is None else folder

    def refuse(error: OSError) -> None:
        raise error

    try:
        paths = [
            Path(parent, name)
            for parent, _, names in os.walk(folder, onerror=refuse)
            for name in names
            if name.endswith((".cu", ".cuh"))
        ]
        found = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}
    except OSError as error:
        message = f"the kernels' source cannot be read: {folder}: {error.strerror}"
        raise BackendError("cuda", message) from error
    return dict(sorted(found.items()))
