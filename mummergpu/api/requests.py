"""The words of the Python interface, and what they mean for a search."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from operator import index
from typing import Final, TypeVar

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.matching.options import STRANDS, DeviceOptions, SearchOptions, Uniqueness
from mummergpu.output.formats import Rows, names_of, target_of
from mummergpu.output.targets import OutputTarget
from mummergpu.runtime.cache_places import cache_folder
from mummergpu.runtime.processors import processor_count

Meaning = TypeVar("Meaning")

PathLike = str | os.PathLike[str]

MODES: Final = {
    "all": Uniqueness.ALL,
    "maxmatch": Uniqueness.ALL,
    "mumreference": Uniqueness.IN_REFERENCE,
    "mum": Uniqueness.IN_BOTH,
}

LARGEST_NUMBER: Final = (1 << 53) - 1
"""No number that is asked for is larger, so that all of them can be calculated with."""

LARGEST_FACTOR: Final = 1e9

BACKENDS: Final = ("auto", "cpu", "cuda")


def search_options(minimum_length: int, strands: str, mode: str) -> SearchOptions:
    """Return the options of a search."""
    return SearchOptions(
        positive("min_length", minimum_length),
        meaning("strands", strands, STRANDS),
        meaning("mode", mode, MODES),
    )


def device_options(backend: str, threads: int | None) -> DeviceOptions:
    """Return the options of the first GPU, or of the processor, with the kernels of the command."""
    folder = cache_folder(os.environ)
    kept = None if folder is None else str(folder)
    name = meaning("backend", backend, {name: name for name in BACKENDS})
    return DeviceOptions(backend=name, threads=thread_count(threads), kernel_folder=kept)


def refuse_single_mates(paths: Sequence[str], pair: bool) -> None:
    """Refuse files of pairs if one of them has no partner."""
    if pair and len(paths) > 1 and len(paths) % 2:
        raise OptionError("pair", "needs one file of pairs, or two files for each set of pairs")


def meaning(option: str, word: object, meanings: Mapping[str, Meaning]) -> Meaning:
    """Return what a word stands for; refuse a word that has no meaning."""
    if not isinstance(word, str) or word not in meanings:
        raise OptionError(option, f"{shown(word)} is not one of {', '.join(map(repr, meanings))}")
    return meanings[word]


def positive(option: str, number: object) -> int:
    """Return a number as a plain integer; refuse one that is not positive."""
    found = _integer(option, number)
    if found < 1:
        raise OptionError(option, f"{found} is not positive")
    return found


def count_asked(option: str, number: object) -> int:
    """Return a number as a plain integer; refuse one that is negative."""
    found = _integer(option, number)
    if found < 0:
        raise OptionError(option, f"{found} is less than 0")
    return found


def number_asked(option: str, number: object, most: float = LARGEST_FACTOR) -> float:
    """Return a number as a plain float; refuse one that is negative, or too large."""
    try:
        found = float(number)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise OptionError(option, f"{shown(number)} is not a number") from None
    if not found >= 0:
        raise OptionError(option, f"{found} is not at least 0")
    if found > most:
        text = ": it is a share, and no percentage" if most == 1 else ""
        raise OptionError(option, f"{found:g} is more than {most:g}{text}")
    return found


def truth(option: str, value: object) -> bool:
    """Return a truth value as a plain one: also one of numpy, or 0 or 1."""
    if isinstance(value, bool | np.bool_ | int | np.integer) and value in (0, 1):
        return bool(value)
    raise OptionError(option, f"{shown(value)} is neither True nor False")


def path_asked(option: str, path: object) -> str:
    """Return the name of a file as text; refuse what names none."""
    if isinstance(path, str | bytes | os.PathLike):
        with suppress(UnicodeError, TypeError):
            name = os.fsdecode(path)
            if os.fsencode(name) and "\0" not in name:
                return name
    raise OptionError(option, f"{shown(path)} is not the name of a file")


def paths_asked(option: str, paths: object) -> tuple[str, ...]:
    """Return the names of one file or of several, at least one."""
    if isinstance(paths, str | bytes | os.PathLike):
        return (path_asked(option, paths),)
    if not isinstance(paths, Iterable):
        raise OptionError(option, f"{shown(paths)} is neither a file nor a list of files")
    names = tuple(path_asked(option, path) for path in paths)
    if not names:
        raise OptionError(option, "name at least one file")
    return names


def targets_asked(paths: object, format_name: str | None, rows: Rows) -> tuple[OutputTarget, ...]:
    """Return the files to write, at least one; a format is for one whose name does not matter."""
    names = paths_asked("output", paths)
    if format_name is not None:
        format_name = meaning("format", format_name, {name: name for name in names_of(rows)})
        if len(names) > 1:
            raise OptionError("format", "several outputs take their formats from their names")
    return tuple(target_of(name, format_name, "output", rows) for name in names)


def text_asked(option: str, text: object) -> str:
    """Return a text; refuse what is none."""
    if not isinstance(text, str):
        raise OptionError(option, f"{shown(text)} is not a text")
    return text


def instance(option: str, value: object, kind: type[Meaning]) -> Meaning:
    """Return a value; refuse one of another class."""
    if not isinstance(value, kind):
        raise OptionError(option, f"{shown(value)} is not of the class {kind.__name__}")
    return value


def thread_count(asked: int | None) -> int:
    """Return the number of working threads: what is asked for, or one for each processor."""
    return processor_count() if asked is None else positive("threads", asked)


def memory_asked(asked: int | None) -> int | None:
    """Return the most bytes for an index, or None."""
    return None if asked is None else positive("max_memory", asked)


def new_or_former(
    name: str, value: Meaning | None, former: str, old: Meaning | None
) -> tuple[str, Meaning | None]:
    """Return the name and the value of an argument that may be given by its former name, too."""
    if old is None:
        return name, value
    if value is not None:
        raise OptionError(former, f"is the former name of {name}, which is given, too")
    return former, old


def shown(value: object) -> str:
    """Return a value of a user in a few words, for an error."""
    return reprlib.repr(value)


def _integer(option: str, number: object) -> int:
    try:
        found = index(number)  # type: ignore[arg-type]
    except TypeError:
        raise OptionError(option, f"{shown(number)} is not an integer") from None
    if abs(found) > LARGEST_NUMBER:
        raise OptionError(option, f"{shown(found)} is not between 0 and {LARGEST_NUMBER:,}")
    return found
