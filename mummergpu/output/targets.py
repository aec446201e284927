"""Where rows are written, in which format, and whether they are compressed."""

from __future__ import annotations

from typing import Final

from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.output_file import STANDARD_OUTPUT

DEFAULT_FORMAT: Final = "mummer"

BGZF: Final = "bgzf"


@frozen
class OutputTarget:
    """A file for rows.

    `format` is one of `formats.FORMATS`; `compression` is ``bgzf``, ``zstd``, or None for no
    compression of the whole file.
    """

    path: str = STANDARD_OUTPUT
    format: str = DEFAULT_FORMAT
    compression: str | None = None

    @property
    def has_bgzf(self) -> bool:
        """Whether the file is made of blocks of bgzf, as BAM always is."""
        return self.format == "bam" or self.compression == BGZF
