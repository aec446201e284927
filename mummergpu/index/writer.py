"""Writes the sections of an index file."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mummergpu.index.format import (
    ALIGNMENT,
    PIECE_BYTES,
    START_BYTES,
    IndexHeader,
    Section,
    checksum_of,
    start_of,
)
from mummergpu.runtime.output_file import OutputFile

_NOTHING: Final = bytes(ALIGNMENT)


class SectionWriter:
    """Writes arrays one after the other to an empty file; each begins at a multiple of `ALIGNMENT`.

    `sections` describes those written so far.
    """

    def __init__(self, output: OutputFile) -> None:
        self.sections: list[Section] = []
        self._output = output
        output.write(bytes(START_BYTES))
        self._end = START_BYTES
        self._under_way: Future[None] | None = None

    def write_beside(
        self, executor: Executor, arrays: Sequence[tuple[str, npt.NDArray[Any]]]
    ) -> None:
        """Write named arrays in another thread; whatever is written later waits for them."""

        def write_all() -> None:
            for name, array in arrays:
                self._write(name, array)

        self._under_way = executor.submit(write_all)

    def wait(self) -> None:
        """Wait until the other thread has written its arrays; raise its error if it failed."""
        if self._under_way is not None:
            under_way, self._under_way = self._under_way, None
            under_way.result()

    def write(self, name: str, array: npt.NDArray[Any]) -> None:
        """Write a contiguous array of uint8, uint32 or int64 as a section."""
        self.wait()
        self._write(name, array)

    def _write(self, name: str, array: npt.NDArray[Any]) -> None:
        gap = -self._end % ALIGNMENT
        self._output.write(_NOTHING[:gap])
        data = array.view(np.uint8)
        for begin in range(0, data.size, PIECE_BYTES):
            self._output.write(data[begin : begin + PIECE_BYTES])
        dtype = array.dtype.newbyteorder("<").str.replace("|", "<")
        offset = self._end + gap
        self.sections.append(Section(name, dtype, offset, array.size, checksum_of(array)))
        self._end = offset + data.size

    def finish(self, header: IndexHeader) -> None:
        """Write the header, which lists all `sections`, and then the start of the file."""
        self.wait()
        text = header.as_json()
        self._output.write(text)
        self._output.write_start(start_of(text, self._end))
