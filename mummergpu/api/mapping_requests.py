"""The words of the Python interface for mapping reads, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mummergpu.api.requests import PathLike, count_asked
from mummergpu.api.run import names_of
from mummergpu.errors import OptionError
from mummergpu.input.read_files import MateFiles, ReadFile, ReadSource
from mummergpu.mapping.placing.insert_sizes import InsertSizes
from mummergpu.output.records.sam_options import ReadGroup, read_group_of, usual_read_group
from mummergpu.output.sorting.options import SortOptions


def read_sources(
    reads: PathLike | Iterable[PathLike],
    mates: PathLike | Iterable[PathLike] | None,
    interleaved: bool,
) -> tuple[ReadSource, ...]:
    """Return the files of reads, those of mates two and two.

    Parameters
    ----------
    reads : path, or iterable of paths
        The files; those of first mates, if there are others.
    mates : path, iterable of paths, or None
        The file of second mates for each of `reads`.
    interleaved : bool
        Whether mates alternate in each of `reads`.

    Raises
    ------
    OptionError
        If there is no file, or a file of mates too few or too many.
    """
    names = names_of(reads)
    if not names:
        raise OptionError("reads", "name at least one file")
    if mates is None:
        return tuple(ReadFile(name, interleaved) for name in names)
    if interleaved:
        raise OptionError("interleaved", "mates that alternate in a file have no other file")
    others = names_of(mates)
    if len(others) != len(names):
        raise OptionError("mates", f"{len(others)} files of mates for {len(names)} files of reads")
    return tuple(map(MateFiles, names, others))


def insert_sizes(asked: Sequence[float] | None) -> InsertSizes | None:
    """Return the sizes of templates: a mean and a standard deviation in bases, or None."""
    if asked is None:
        return None
    try:
        mean, deviation = map(float, asked)
    except (TypeError, ValueError):
        raise OptionError("insert_size", f"{asked!r} is not a mean and a deviation") from None
    if not (0 < mean < 1e6 and 0 < deviation < 1e6):
        raise OptionError("insert_size", f"{asked!r} are not numbers of bases")
    return InsertSizes.of_user(mean, deviation)


@dataclass(frozen=True)
class OtherPlaces:
    """Which other places of reads are wanted: at most one of the two is not 0.

    Attributes
    ----------
    most_secondary : int
        The most secondary alignments of a read.
    most_alternatives : int
        The most places in the tag XA of an alignment.
    """

    most_secondary: int
    most_alternatives: int


def other_places(max_secondary: int, max_xa: int) -> OtherPlaces:
    """Return which other places of reads are wanted.

    Parameters
    ----------
    max_secondary : int
        The most secondary alignments of a read.
    max_xa : int
        The most places in the tag XA of an alignment.

    Raises
    ------
    OptionError
        If a number is negative, or neither is 0.
    """
    places = OtherPlaces(count_asked("max_secondary", max_secondary), count_asked("max_xa", max_xa))
    if places.most_secondary and places.most_alternatives:
        raise OptionError("max_xa", "other places are secondary alignments, or in XA, not both")
    return places


def read_group_asked(line: str | None, paths: Sequence[str]) -> ReadGroup | None:
    """Return the read group of a line; None for an empty one, the usual one for None."""
    if line is None:
        return usual_read_group(paths)
    return read_group_of(line) if line else None


def refuses_long(long_reads: str) -> bool:
    """Return whether reads that are too long to be mapped are an error; else they stay unmapped."""
    if long_reads not in ("unmapped", "error"):
        raise OptionError("long_reads", f"{long_reads!r} is neither 'unmapped' nor 'error'")
    return long_reads == "error"


def sort_options(sort: bool, mark_duplicates: bool, threads: int) -> SortOptions | None:
    """Return what is done with all alignments before they are written; None for nothing."""
    if not sort and not mark_duplicates:
        return None
    return SortOptions(by_coordinate=sort, mark_duplicates=mark_duplicates, threads=threads)
