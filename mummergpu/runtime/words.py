"""Messages to users: numbers with their nouns, and nobody who reads them."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number and its noun; for the plural an s is added unless it is given."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def say_nothing(_line: str) -> None:
    """Take a line that nobody reads."""
