"""Where matches are written, in which format, and whether they are compressed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from mummergpu.errors import OptionError
from mummergpu.runtime.output_file import STANDARD_OUTPUT

DEFAULT_FORMAT: Final = "mummer"

FORMATS: Final = (
    *("mummer", "paf", "bed", "tsv", "sam", "bam"),
    *("cram", "parquet", "arrow", "delta"),
    "plot",
)
"""The names of the formats of matches."""

PICTURES: Final = (".png", ".svg", ".pdf", ".html")
"""How the names of pictures end, which are of the format ``plot``."""

_SUFFIXES: Final = (
    {f".{name}": name for name in FORMATS[1:-1]}
    | {".feather": "arrow"}
    | dict.fromkeys(PICTURES, "plot")
)

_PICTURE_LIST: Final = f"{', '.join(PICTURES[:-1])} or {PICTURES[-1]}"

BGZF: Final = "bgzf"

COMPRESSIONS: Final = {".gz": BGZF, ".bgz": BGZF, ".zst": "zstd"}
"""The compression that a suffix stands for. Gzip is written in the blocks of bgzf, which every
program that reads gzip can read, and others can read from the middle."""

COMPRESSED_FORMATS: Final = frozenset({"bam", "cram", "parquet", "arrow", "plot"})
"""Formats that hold compressed data, or that cannot be read if the file is compressed as a whole.
"""


@dataclass(frozen=True)
class OutputTarget:
    """A file for matches.

    Attributes
    ----------
    path : str
        The file; "-" is standard output.
    format : str
        One of `FORMATS`.
    compression : str or None
        ``bgzf``, ``zstd``, or None for no compression of the whole file.
    """

    path: str = STANDARD_OUTPUT
    format: str = DEFAULT_FORMAT
    compression: str | None = None

    @property
    def has_bgzf(self) -> bool:
        """Whether the file is made of blocks of bgzf, as BAM always is."""
        return self.format == "bam" or self.compression == BGZF


def target_of(path: str, format_name: str | None = None, option: str = "--output") -> OutputTarget:
    """Return the target that a path stands for.

    Parameters
    ----------
    path : str
        The file; "-" is standard output.
    format_name : str or None
        One of `FORMATS`; None for the one that the name of the file ends with, or else
        `DEFAULT_FORMAT`.
    option : str
        The option that names the file, for errors.

    Returns
    -------
    OutputTarget
        The target; the name of the file decides on the compression.

    Raises
    ------
    OptionError
        If the name asks to compress a format that is compressed already, or is to be a picture and
        does not say of which kind.
    """
    compression = COMPRESSIONS.get(os.path.splitext(path)[1].lower())
    suffix = suffix_of(path)
    found = format_name or _SUFFIXES.get(suffix, DEFAULT_FORMAT)
    if compression is not None and found in COMPRESSED_FORMATS:
        raise OptionError(option, f"'{path}' would compress {found} once more; leave the end out")
    if found == "plot" and suffix not in PICTURES:
        raise OptionError(option, f"'{path}' names no picture: let it end in {_PICTURE_LIST}")
    return OutputTarget(path, found, compression)


def suffix_of(path: str) -> str:
    """Return how the name of a file ends, in small letters and without the end of a compression.

    Examples
    --------
    >>> suffix_of("x.VCF.gz")
    '.vcf'
    """
    stem, suffix = os.path.splitext(path)
    if suffix.lower() in COMPRESSIONS:
        suffix = os.path.splitext(stem)[1]
    return suffix.lower()
