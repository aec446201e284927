"""The command line of MUMmer 3.23's ``mummer``: what it means, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from mummergpu.errors import MummerUsageError
from mummergpu.index.options import DEFAULT_MINIMUM_LENGTH
from mummergpu.runtime.frozen import frozen

DEFAULT_MODE: Final = "-mumreference"

_MODES: Final = {
    "-mum": "-mum",
    "-mumcand": "-mumreference",
    "-mumreference": "-mumreference",
    "-maxmatch": "-maxmatch",
}
"""The mode that each spelling stands for."""

_FLAGS: Final = ("-n", "-b", "-r", "-s", "-c", "-F", "-L")
_HELP: Final = ("-h", "-help")
_LENGTH: Final = "-l"

_C_INTEGER: Final = r"\s*\+?([0-9]+)"
"""What C's functions read as a number: they leave out what follows the digits."""

_LONGEST: Final = 1 << 40
"""Longer than any sequence; mummer takes larger numbers too, and then finds nothing."""


@frozen
class MummerCommand:
    """A command line of ``mummer``.

    Attributes
    ----------
    reference : str
        The file of the reference.
    queries : tuple of str
        The files of the queries, at least one.
    minimum_length : int
        The fewest letters of a match.
    mode : str
        ``-mum``, ``-mumreference`` or ``-maxmatch``.
    flags : tuple of str
        The other options, as ``-b`` and ``-n``.
    """

    reference: str
    queries: tuple[str, ...]
    minimum_length: int = DEFAULT_MINIMUM_LENGTH
    mode: str = DEFAULT_MODE
    flags: tuple[str, ...] = ()

    @property
    def acgt_only(self) -> bool:
        """Whether letters other than A, C, G and T match nothing (``-n``)."""
        return "-n" in self.flags


def parse_mummer_words(words: Sequence[str]) -> MummerCommand | None:
    """Return what a command line of ``mummer`` asks for, None for its help.

    Options come before the files; from the first word without a dash on, all words are files.
    """
    if not words:
        return None
    modes: list[str] = []
    flags: list[str] = []
    length = None
    waiting = list(words)
    while waiting and waiting[0].startswith("-"):
        word = waiting.pop(0)
        if word in _HELP:
            return None
        if word in modes or word in flags or (word == _LENGTH and length is not None):
            raise MummerUsageError(f'option "{word}" already set')
        if word in _MODES:
            modes.append(word)
        elif word in _FLAGS:
            flags.append(word)
        elif word == _LENGTH:
            # A length and no file is missing its value, as mummer sees it.
            if len(waiting) < 2:
                raise MummerUsageError(f"missing argument for option {_LENGTH}")
            length = _positive(waiting.pop(0))
        else:
            raise MummerUsageError(f'illegal option "{word}"')
    _refuse_combinations(modes, flags)
    if len(waiting) < 2:
        raise MummerUsageError("missing file arguments")
    return MummerCommand(
        waiting[0],
        tuple(waiting[1:]),
        DEFAULT_MINIMUM_LENGTH if length is None else length,
        _MODES[modes[0]] if modes else DEFAULT_MODE,
        tuple(flags),
    )


def _positive(text: str) -> int:
    found = re.match(_C_INTEGER, text)
    number = int(found[1][:32]) if found else 0
    if number == 0:
        raise MummerUsageError(f"argument {text} for option {_LENGTH} is not a positive integer")
    return min(number, _LONGEST)


def _refuse_combinations(modes: Sequence[str], flags: Sequence[str]) -> None:
    if len({_MODES[mode] for mode in modes}) > 1:
        raise MummerUsageError(f"option {modes[0]} and option {modes[1]} exclude each other")
    if "-b" in flags and "-r" in flags:
        raise MummerUsageError("option -b and option -r exclude each other")
    if "-c" in flags and "-b" not in flags and "-r" not in flags:
        raise MummerUsageError("option -c requires either option -b or -r")
