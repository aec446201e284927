"""pyhmmer, which is imported when it is first needed, and the words that it reads."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from mummergpu.errors import LibraryError
from mummergpu.runtime import optional_imports
from mummergpu.runtime.optional_imports import in_one_line


@cache
def pyhmmer_module(name: str) -> Any:
    """Return a module of pyhmmer; LibraryError if it is not installed, or does not work."""
    module = f"pyhmmer.{name}"
    try:
        return importlib.import_module(module)
    except Exception as error:
        # To find the cause imports more than the module does.
        problem = optional_imports.find("pyhmmer", module).problem or in_one_line(error)
        raise LibraryError("a search with profiles", "pyhmmer", "hmm", problem) from None


def text_of(owner: Any, name: str) -> str:
    """Return a text of an object of pyhmmer, "" for none; any bytes can be made of it again."""
    try:
        return getattr(owner, name) or ""
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Return the bytes that `text_of` has read."""
    return text.encode("utf-8", "surrogateescape")
