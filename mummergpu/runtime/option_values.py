"""The values of options: what users and programs give, as plain Python values, or `OptionError`.

The classes of options check themselves with these functions when they are made. Errors name an
option by its parameter in Python; the command writes it as its own option.
"""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from numbers import Integral
from operator import index
from typing import Final, TypeVar

from mummergpu.errors import OptionError

Choice = TypeVar("Choice")

PathLike = str | os.PathLike[str]

LARGEST_NUMBER: Final = (1 << 53) - 1
"""No number that is asked for is larger, so that all of them can be calculated with."""

LARGEST_FACTOR: Final = 1e9


def keep_values(options: object, **values: object) -> None:
    """Set fields of a frozen dataclass that is being made to their checked values."""
    for name, value in values.items():
        object.__setattr__(options, name, value)


def choice(option: str, word: object, meanings: Mapping[str, Choice]) -> Choice:
    """Return the value of a word; refuse an unknown word."""
    if not isinstance(word, str) or word not in meanings:
        raise OptionError(option, f"{shown(word)} is not one of {', '.join(map(repr, meanings))}")
    return meanings[word]


def one_of(option: str, word: object, words: Collection[str]) -> str:
    """Return a word; refuse one that is none of `words`."""
    return choice(option, word, {known: known for known in words})


def check_int(option: str, number: object, least: int = 0, most: int | None = None) -> int:
    """Return a number as a plain integer; refuse one that is not from `least` to `most`."""
    try:
        found = index(number)  # type: ignore[arg-type]
    except TypeError:
        raise OptionError(option, f"{shown(number)} is not an integer") from None
    if abs(found) > LARGEST_NUMBER:
        raise OptionError(option, f"{shown(found)} is not between 0 and {LARGEST_NUMBER:,}")
    if found < least:
        raise OptionError(
            option, f"{found} is {'not positive' if least == 1 else f'less than {least}'}"
        )
    if most is not None and found > most:
        raise OptionError(option, f"{found} is more than {most}")
    return found


def between(option: str, number: object, least: int, most: int) -> int:
    """Return a number as a plain integer; refuse one that is not from `least` to `most`."""
    found = check_int(option, number)
    if not least <= found <= most:
        raise OptionError(option, f"{found} is not between {least} and {most}")
    return found


def positive(option: str, number: object) -> int:
    """Return a number as a plain integer; refuse one that is not positive."""
    return check_int(option, number, 1)


def optional_positive(option: str, number: object) -> int | None:
    """Return a positive number as a plain integer, or None."""
    return None if number is None else positive(option, number)


def _is_bool(value: object) -> bool:
    """Return whether a value is a truth value, of numpy or not; the help starts without numpy."""
    kind = type(value)
    return kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"))


def _float(option: str, given: object) -> float:
    with suppress(TypeError, ValueError, OverflowError):
        # A truth value would be 0 or 1.
        if not _is_bool(given):
            return float(given)  # type: ignore[arg-type]
    raise OptionError(option, f"{shown(given)} is not a number")


def check_factor(option: str, given: object, most: float = LARGEST_FACTOR) -> float:
    """Return a number as a plain float; refuse one that is negative, or too large."""
    found = _float(option, given)
    if not found >= 0:
        raise OptionError(option, f"{found} is not at least 0")
    if found > most:
        hint = ": it is a share, and no percentage" if most == 1 else ""
        raise OptionError(option, f"{found:g} is more than {most:g}{hint}")
    return found


def check_float(option: str, given: object, is_positive: bool) -> float:
    """Return a number as a plain float, also an infinite one; it may have to be positive."""
    found = _float(option, given)
    if math.isnan(found):
        raise OptionError(option, f"{shown(given)} is not a number")
    if is_positive and found <= 0:
        raise OptionError(option, f"{found:g} is not positive")
    return found


def check_bool(option: str, value: object) -> bool:
    """Return a truth value as a plain one: also one of numpy, or 0 or 1."""
    # Integers of numpy are integers to the module numbers, too.
    if (_is_bool(value) or isinstance(value, Integral)) and value in (0, 1):
        return bool(value)
    raise OptionError(option, f"{shown(value)} is neither True nor False")


def path(option: str, name: object) -> str:
    """Return the name of a file as text; refuse what names none."""
    if isinstance(name, str | bytes | os.PathLike):
        with suppress(UnicodeError, TypeError):
            found = os.fsdecode(name)
            if os.fsencode(found) and "\0" not in found:
                return found
    raise OptionError(option, f"{shown(name)} is not the name of a file")


def paths(option: str, names: object) -> tuple[str, ...]:
    """Return the names of one file or of several, at least one."""
    if isinstance(names, str | bytes | os.PathLike):
        return (path(option, names),)
    if not isinstance(names, Iterable):
        raise OptionError(option, f"{shown(names)} is neither a file nor a list of files")
    found = tuple(path(option, name) for name in names)
    if not found:
        raise OptionError(option, "name at least one file")
    return found


def text(option: str, given: object) -> str:
    """Return a text; refuse any other type."""
    if not isinstance(given, str):
        raise OptionError(option, f"{shown(given)} is not a text")
    return given


def texts(option: str, given: object) -> tuple[str, ...]:
    """Return one text or several."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise OptionError(option, f"{shown(given)} is no list of texts")
    return tuple(text(option, one) for one in given)


def instance(option: str, value: object, kind: type[Choice]) -> Choice:
    """Return a value; refuse one of another class."""
    if not isinstance(value, kind):
        raise OptionError(option, f"{shown(value)} is not of the class {kind.__name__}")
    return value


def shown(value: object) -> str:
    """Return a value of a user in a few words, for an error."""
    return reprlib.repr(value)
