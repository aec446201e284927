"""What the parsers of records need of a file."""

from __future__ import annotations

from typing import Protocol

from mummergpu.input.bytes.source import Readable


class CountedBytes(Protocol):
    """Where the bytes of a file come from."""

    @property
    def bytes_read(self) -> int: ...  # noqa: D102


class ParsedFile(Protocol):
    """What a parser needs of a file: `files.Input` has it."""

    @property
    def path(self) -> str: ...  # noqa: D102

    @property
    def text(self) -> Readable: ...  # noqa: D102

    @property
    def source(self) -> CountedBytes: ...  # noqa: D102
