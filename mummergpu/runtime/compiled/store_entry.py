"""What folders of compiled code share: a header that reveals damage, and the removal of old code.

Files are not flushed to the disk: what a crash has damaged does not match its header, and counts as
missing.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from mummergpu.runtime.blake2 import blake2b

ABANDONED_SECONDS: Final = 3600
"""What was not touched for so long belongs to no running process."""

# Other users may read the code: a container image can contain code that root has compiled.
FOLDER_MODE: Final = 0o755
FILE_MODE: Final = 0o644

_MAGIC: Final = b"mummergpu code 2"
_DIGEST_BYTES: Final = 32
_HEADER: Final = struct.Struct(f"<16sQ{_DIGEST_BYTES}s")
"""Magic, length of the content, BLAKE2 digest of the content under the key."""


class StoreEntry(NamedTuple):
    """A file or folder of a store, in the order of their last uses."""

    last_use: float
    """As `time.time` returns it."""
    size: int
    """In bytes, of all that is in a folder."""
    path: str


def pack(content: bytes, key: bytes) -> bytes:
    """Return the bytes of the file for content under a key of 64 bytes at most."""
    return _HEADER.pack(_MAGIC, len(content), _digest(content, key)) + content


def unpack(stored: bytes, key: bytes) -> bytes | None:
    """Return the content of a file; None if it is damaged, of another kind or under another key."""
    if len(stored) < _HEADER.size:
        return None
    content = stored[_HEADER.size :]
    header = (_MAGIC, len(content), _digest(content, key))
    return content if _HEADER.unpack_from(stored) == header else None


def is_abandoned(touched: float) -> bool:
    """Return whether what was last touched at a time belongs to no running process."""
    return touched < time.time() - ABANDONED_SECONDS


def remove_least_used(
    entries: Iterable[StoreEntry], maximum_bytes: int, remove: Callable[[str], bool]
) -> None:
    """Remove the least recently used entries until the rest has at most `maximum_bytes`.

    `remove` removes a path and returns true, or returns false where it must stay. Another process
    may have removed it first: an error of the system is ignored.
    """
    entries = sorted(entries)
    total = sum(entry.size for entry in entries)
    for entry in entries:
        if total <= maximum_bytes:
            break
        with suppress(OSError):
            if remove(entry.path):
                total -= entry.size


def _digest(content: bytes, key: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST_BYTES, key=key).digest()
