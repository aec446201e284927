"""The program that makes blocks of bgzf on a device, and the constants of its kernels."""

from __future__ import annotations

import struct
from typing import Final

from mummergpu.cuda.program import ProgramSource
from mummergpu.output.bytes.bgzf_blocks import HEAD_BYTES, TAIL_BYTES
from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES, BGZF_END

STORED_HEAD_BYTES: Final = 5
"""What precedes a text that is stored in a deflated one as it is."""

_CRC32: Final = 0xEDB8_8320
"""The polynomial of the checksum of gzip, its bits reflected."""

_MAGIC, _TIME, _SYSTEM_AND_EXTRA, _SUBFIELD = struct.unpack_from("<4I", BGZF_END)

BGZF_PROGRAM: Final = ProgramSource(
    "bgzf",
    "bgzf/program.cu",
    constants=(
        ("BGZF_BLOCK_BYTES", BGZF_BLOCK_BYTES),
        ("BGZF_HEAD_BYTES", HEAD_BYTES),
        ("BGZF_TAIL_BYTES", TAIL_BYTES),
        ("STORED_HEAD_BYTES", STORED_HEAD_BYTES),
        ("BGZF_MAGIC", _MAGIC),
        ("BGZF_TIME", _TIME),
        ("BGZF_SYSTEM_AND_EXTRA", _SYSTEM_AND_EXTRA),
        ("BGZF_SUBFIELD", _SUBFIELD),
        ("CRC32_POLYNOMIAL", _CRC32),
    ),
)
"""The same program for every run; all blocks have the same head but for their size."""
