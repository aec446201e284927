"""What a program for a device is made of: an entry file, and macros."""

from __future__ import annotations

from typing import Protocol


class ProgramSource(Protocol):
    """What NVRTC is given besides the text of the files.

    Attributes
    ----------
    name : str
        For people, when the program does not compile.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    def definitions(self) -> list[str]:
        """Return the compiler's options that define the macros, such as ``-DWIDE=1``."""
        ...
