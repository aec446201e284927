"""What a program for a device is made of: an entry file, macros, and constants.

The engines that search, align or decode on a device each have a folder of kernels. What their
kernels share with the host is defined on the host's side only, and written into a header that
every compilation is given, so that the two sides cannot differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mummergpu.errors import BackendError

BLOCK_THREADS: Final = 256
"""The threads of a block, in every launch."""

WARP_LANES: Final = 32
"""The threads of a warp."""

COUNTS_PER_THREAD: Final = 8
"""The counts that a thread adds up when counts are turned into offsets."""

COMMON_FOLDER: Final = "common"
"""The folder of the source files that all programs can include."""

CONSTANTS_HEADER: Final = "constants.cuh"
"""The name by which a program includes its generated constants."""

_COMMON_CONSTANTS: Final = {
    "BLOCK_THREADS": BLOCK_THREADS,
    "WARP_LANES": WARP_LANES,
    "COUNTS_PER_THREAD": COUNTS_PER_THREAD,
}
_LARGEST_INT: Final = (1 << 32) - 1


@dataclass(frozen=True)
class ProgramSource:
    """A set of kernels that are compiled together.

    Attributes
    ----------
    name : str
        For people, when the program does not compile; no other program has it.
    entry : str
        The file that is compiled, relative to the folder of all kernels, such as
        ``tree/program.cu``. It can include the files of its own folder and of
        `COMMON_FOLDER`, by paths relative to the folder of all kernels.
    macros : tuple of (str, int)
        The macros that the compiler defines.
    constants : tuple of (str, int)
        What the kernels share with the host besides what all programs share: numbers, not
        negative, by the names that they have in the kernels.
    """

    name: str
    entry: str
    macros: tuple[tuple[str, int], ...] = ()
    constants: tuple[tuple[str, int], ...] = ()

    def definitions(self) -> list[str]:
        """Return the compiler's options that define the macros, such as ``-DWIDE=1``."""
        return [f"-D{name}={value}" for name, value in self.macros]

    def constants_header(self) -> str:
        """Return the text of the header `CONSTANTS_HEADER`.

        Returns
        -------
        str
            CUDA C++: a constant of 32 bits for each number, of 64 bits for larger ones.
        """
        lines = ["// Generated: what the kernels share with the host.", "#pragma once"]
        for name, value in {**_COMMON_CONSTANTS, **dict(self.constants)}.items():
            kind, suffix = ("int", "u") if value <= _LARGEST_INT else ("long long", "ull")
            lines.append(f"constexpr unsigned {kind} {name} = {value}{suffix};")
        return "\n".join(lines) + "\n"

    def files(self, sources: Mapping[str, str]) -> dict[str, str]:
        """Return everything that the program can be made of.

        Parameters
        ----------
        sources : mapping of str to str
            The text of every source file, by its path relative to the folder of all kernels.

        Returns
        -------
        dict of str to str
            The entry, the files that it can include, and the generated header, by name.

        Raises
        ------
        BackendError
            If the entry is not among the sources.
        """
        if self.entry not in sources:
            raise BackendError("cuda", f"the kernels' source is not complete: no {self.entry}")
        folders = (self.entry.rpartition("/")[0], COMMON_FOLDER)
        found = {name: text for name, text in sources.items() if name.rpartition("/")[0] in folders}
        return {**found, CONSTANTS_HEADER: self.constants_header()}
