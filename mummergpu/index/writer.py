"""Writes the sections of an index file."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mummergpu.index.checksums import PIECE_BYTES, checksum_of
from mummergpu.index.format import ALIGNMENT, START_BYTES, IndexHeader, Section, start_of
from mummergpu.runtime.output_file import OutputFile

_NOTHING: Final = bytes(ALIGNMENT)


class SectionWriter:
    """Writes arrays one after the other; each begins at a multiple of `ALIGNMENT`.

    Parameters
    ----------
    output : OutputFile
        A file that is still empty.

    Attributes
    ----------
    sections : list of Section
        The sections written so far.
    """

    def __init__(self, output: OutputFile) -> None:
        self.sections: list[Section] = []
        self._output = output
        output.write(bytes(START_BYTES))
        self._end = START_BYTES

    def write(self, name: str, array: npt.NDArray[Any]) -> None:
        """Write an array as a section.

        Parameters
        ----------
        name : str
            The name of the section.
        array : ndarray, dtype=uint8, uint32 or int64
            One-dimensional and contiguous.
        """
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
        """Write the header, and then the start of the file.

        Parameters
        ----------
        header : IndexHeader
            The header, which lists all `sections`.
        """
        text = header.as_json()
        self._output.write(text)
        self._output.write_start(start_of(text, self._end))
