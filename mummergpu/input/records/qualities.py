"""The qualities of bases: numbers from 0 to 93 on Phred's scale.

FASTQ writes a quality as the character whose code is larger by 33. Before 2011, Illumina's programs
added 64 instead. No field of the file shows this, and the file is read like all others;
`looks_like_old_illumina` detects it for a warning.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.runtime.arrays import ByteArray, Int64Array

LOWEST_CHARACTER: Final = 33
"""The character of quality 0, '!'."""

MOST_QUALITY: Final = 93
"""The quality of the last character that can be printed, '~'."""

NO_QUALITY: Final = 0xFF
"""The value in place of the qualities of a read without any, as in BAM."""

_OLD_DIFFERENCE: Final = 64 - LOWEST_CHARACTER
_LEAST_OLD: Final = _OLD_DIFFERENCE - 5
"""The least quality of old programs was -5."""
_MOST_NEW: Final = 45
"""Short reads with higher qualities on today's scale always have some low ones."""
_MOST_OLD: Final = _OLD_DIFFERENCE + 41


def check_qualities(qualities: ByteArray, offsets: Int64Array, path: str) -> None:
    """Refuse a quality above `MOST_QUALITY` in a read whose qualities are not all `NO_QUALITY`."""
    if qualities.size == 0 or qualities.max() <= MOST_QUALITY:
        return
    too_high = qualities > MOST_QUALITY
    lengths = np.diff(offsets)
    begins = offsets[:-1][lengths > 0]
    missing = np.minimum.reduceat(qualities, begins) == NO_QUALITY
    if (too_high & ~np.repeat(missing, lengths[lengths > 0])).any():
        raise InputError(f"a base quality is higher than {MOST_QUALITY}", path)


def looks_like_old_illumina(qualities: ByteArray) -> bool:
    """Return whether the qualities of many reads were probably written as characters from 64 on.

    They are numbers here, read as characters from 33 on: none is below 26, and the highest is
    between 46 and 72.
    """
    if qualities.size == 0:
        return False
    least, most = int(qualities.min()), int(qualities.max())
    return _LEAST_OLD <= least and _MOST_NEW < most <= _MOST_OLD
