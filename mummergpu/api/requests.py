"""The words of the Python interface, and what they mean for a search."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

from mummergpu.errors import OptionError
from mummergpu.matching.options import DeviceOptions, SearchOptions, Uniqueness
from mummergpu.runtime.cache_places import cache_folder
from mummergpu.runtime.processors import processor_count
from mummergpu.sequence.codes import Strand

Meaning = TypeVar("Meaning")

PathLike = str | os.PathLike[str]

STRANDS: Final[dict[str, tuple[Strand, ...]]] = {
    "both": (Strand.FORWARD, Strand.REVERSE),
    "forward": (Strand.FORWARD,),
    "reverse": (Strand.REVERSE,),
}

MODES: Final = {
    "all": Uniqueness.ALL,
    "maxmatch": Uniqueness.ALL,
    "mumreference": Uniqueness.IN_REFERENCE,
    "mum": Uniqueness.IN_BOTH,
}

BACKENDS: Final = ("auto", "cpu", "cuda")


def search_options(minimum_length: int, strands: str, mode: str) -> SearchOptions:
    """Return the options of a search.

    Parameters
    ----------
    minimum_length : int
        The fewest bases of a match, at least 1.
    strands : str
        ``both``, ``forward`` or ``reverse``.
    mode : str
        ``all`` (or ``maxmatch``), ``mumreference`` or ``mum``.

    Returns
    -------
    SearchOptions
        The typed options.

    Raises
    ------
    OptionError
        If a word is none of these, or the length is not a positive integer.
    """
    return SearchOptions(
        positive("min_length", minimum_length),
        meaning("strands", strands, STRANDS),
        meaning("mode", mode, MODES),
    )


def device_options(backend: str, threads: int) -> DeviceOptions:
    """Return the options of the device on which a search runs.

    Parameters
    ----------
    backend : str
        ``auto``, ``cpu`` or ``cuda``.
    threads : int
        The number of working threads.

    Returns
    -------
    DeviceOptions
        The first GPU, if a GPU is used; compiled kernels are kept where the command keeps them.

    Raises
    ------
    OptionError
        If there is no such backend.
    """
    meaning("backend", backend, {name: name for name in BACKENDS})
    folder = cache_folder(os.environ)
    kept = None if folder is None else str(folder)
    return DeviceOptions(backend=backend, threads=threads, kernel_folder=kept)


def refuse_single_mates(paths: Sequence[str], pair: bool) -> None:
    """Refuse files of pairs if one of them has no partner.

    Parameters
    ----------
    paths : sequence of str
        The files.
    pair : bool
        Whether they have pairs of reads.

    Raises
    ------
    OptionError
        If there are several files, and not two for each set of pairs.
    """
    if pair and len(paths) > 1 and len(paths) % 2:
        raise OptionError("pair", "needs one file of pairs, or two files for each set of pairs")


def meaning(option: str, word: str, meanings: dict[str, Meaning]) -> Meaning:
    """Return what a word stands for; refuse a word that has no meaning."""
    if word not in meanings:
        raise OptionError(option, f"{word!r} is not one of {', '.join(map(repr, meanings))}")
    return meanings[word]


def positive(option: str, number: int) -> int:
    """Return a number as a plain integer; refuse one that is not positive."""
    found = _integer(option, number)
    if found < 1:
        raise OptionError(option, f"{number} is not positive")
    return found


def count_asked(option: str, number: int) -> int:
    """Return a number as a plain integer; refuse one that is negative."""
    found = _integer(option, number)
    if found < 0:
        raise OptionError(option, f"{number} is negative")
    return found


def _integer(option: str, number: int) -> int:
    try:
        return number.__index__()
    except AttributeError:
        raise OptionError(option, f"{number!r} is not an integer") from None


def thread_count(asked: int | None) -> int:
    """Return the number of working threads: what is asked for, or one for each processor."""
    return processor_count() if asked is None else positive("threads", asked)
