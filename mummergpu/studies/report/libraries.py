"""The libraries that only reports need."""

from __future__ import annotations

from typing import Final

from mummergpu.errors import LibraryError
from mummergpu.runtime.libraries import look_for

_LIBRARIES: Final = (
    ("matplotlib", "matplotlib.figure"),
    ("jinja2", "jinja2"),
    ("scipy", "scipy.special"),
)
"""Their names for pip, and a module of each."""


def require_libraries() -> None:
    """Raise `LibraryError` if a library that reports need is not installed or does not work."""
    for name, module in _LIBRARIES:
        library = look_for(name, module)
        if library.problem:
            raise LibraryError("mummergpu report", name, "report", library.problem)
