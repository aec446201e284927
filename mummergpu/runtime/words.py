"""Numbers with their nouns, for messages to users."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number and its noun; for the plural an s is added unless it is given."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
