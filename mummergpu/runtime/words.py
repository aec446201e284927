"""Messages to users: numbers with their nouns, and nobody who reads them."""

from __future__ import annotations

from collections.abc import Sequence

NAMES_SHOWN = 3


def shorter(names: Sequence[str]) -> str:
    """Return a few of some names."""
    return ", ".join(names[:NAMES_SHOWN]) + (", ..." if len(names) > NAMES_SHOWN else "")


def pluralize(count: int, noun: str, plural: str = "") -> str:
    """Return a number and its noun; for the plural an s is added unless it is given."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def say_nothing(_line: str) -> None:
    """Take a line that nobody reads."""
