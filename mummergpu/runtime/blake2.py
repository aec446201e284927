"""BLAKE2 without the rest of `hashlib`, which loads OpenSSL: 3.5 MB, and 4 ms of each start."""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # The module is not part of Python's documented library.
    from hashlib import blake2b

__all__ = ["blake2b"]
