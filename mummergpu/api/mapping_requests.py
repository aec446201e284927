"""The words of the Python interface for mapping reads, and what they mean."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, TypedDict, Unpack

from mummergpu.api.requests import (
    PathLike,
    count_asked,
    device_options,
    meaning,
    path_asked,
    paths_asked,
    positive,
    shown,
    text_asked,
    thread_count,
    truth,
)
from mummergpu.errors import OptionError
from mummergpu.input.blocks.memory import NamedPair, NamedSequence, ReadsInMemory, is_pair
from mummergpu.input.blocks.read_files import MateFiles, ReadFile, ReadSource
from mummergpu.mapping.placing.insert_size import InsertSizes
from mummergpu.output.formats import Rows, names_of, target_of
from mummergpu.output.records.sam_options import ReadGroup, read_group_of, usual_read_group
from mummergpu.output.sorting.options import SortOptions
from mummergpu.output.targets import OutputTarget
from mummergpu.pipeline.map_options import MapOptions

LONGEST_SEED: Final = 200
"""The longest matches that alignments may be asked to begin with, as for the command."""

LONG_READS: Final = {"unmapped": False, "error": True}
"""Whether reads that are too long to be mapped are an error; else they stay unmapped."""

Reads = PathLike | Iterable[PathLike] | Iterable[NamedSequence] | Iterable[NamedPair]
"""Files of reads, or reads in memory."""

Mates = PathLike | Iterable[PathLike] | Iterable[NamedSequence]
"""Files of second mates, or second mates in memory."""


class MapAsked(TypedDict):
    """What `mummergpu.map`, `Index.map` and `Index.stream_map` are asked alike."""

    interleaved: bool
    insert_size: Sequence[float] | None
    seed_length: int | None
    max_secondary: int
    max_xa: int
    backend: str
    threads: int | None
    any_letters: bool
    long_reads: str
    comments: bool


def map_options(
    reference: str, reads: Reads, mates: Mates | None, **asked: Unpack[MapAsked]
) -> MapOptions:
    """Return the options of mapping reads, which stay in memory; refuse what makes no sense."""
    count = thread_count(asked["threads"])
    return MapOptions(
        reference,
        read_sources(reads, mates, asked["interleaved"]),
        threads=count,
        seed_length=seed_length_asked(asked["seed_length"]),
        insert_sizes=insert_sizes(asked["insert_size"]),
        max_secondary=count_asked("max_secondary", asked["max_secondary"]),
        most_alternatives=count_asked("max_xa", asked["max_xa"]),
        device=device_options(asked["backend"], count),
        any_letters=truth("any_letters", asked["any_letters"]),
        refuses_long=meaning("long_reads", asked["long_reads"], LONG_READS),
        keeps_groups=True,
        comments=truth("comments", asked["comments"]),
    )


def read_sources(reads: Reads, mates: Mates | None, interleaved: bool) -> tuple[ReadSource, ...]:
    """Return the files of reads, those of mates two and two; or what has the reads in memory."""
    interleaved = truth("interleaved", interleaved)
    if mates is not None and interleaved:
        raise OptionError("interleaved", "mates that alternate have no other file or list")
    names, first, given = _files_or_reads("reads", reads)
    if mates is None:
        if names:
            return tuple(ReadFile(name, interleaved) for name in names)
        return (ReadsInMemory(given, None, interleaved or is_pair(first)),)
    if is_pair(first):
        raise OptionError("mates", "the reads are pairs already")
    others, _, second_mates = _files_or_reads("mates", mates)
    if bool(names) != bool(others):
        raise OptionError("mates", "reads and mates are both in files, or both in memory")
    if not names:
        return (ReadsInMemory(given, second_mates),)
    if len(others) != len(names):
        raise OptionError("mates", f"{len(others)} files of mates for {len(names)} files of reads")
    return tuple(map(MateFiles, names, others))


def _files_or_reads(option: str, given: object) -> tuple[tuple[str, ...], Any, Iterator[Any]]:
    """Return the names of files; or none, the first of what is in memory, and all of that."""
    if isinstance(given, str | os.PathLike):
        return (path_asked(option, given),), None, iter(())
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        text = "is neither a file nor reads with their names, such as [('read', 'ACGT')]"
        raise OptionError(option, f"{shown(given)} {text}")
    rest = iter(given)
    first = next(rest, None)
    if first is None:
        raise OptionError(option, "name at least one file, or give a read")
    every = chain((first,), rest)
    if isinstance(first, str | os.PathLike):
        return paths_asked(option, every), None, iter(())
    return (), first, every


def insert_sizes(asked: Sequence[float] | None) -> InsertSizes | None:
    """Return the sizes of templates: a mean and a standard deviation in bases, or None."""
    if asked is None:
        return None
    try:
        mean, deviation = (float(number) for number in asked if not isinstance(asked, str | bytes))
    except (TypeError, ValueError, OverflowError):
        raise OptionError("insert_size", f"{shown(asked)} is not a mean and a deviation") from None
    if not (0 < mean < 1e6 and 0 < deviation < 1e6):
        raise OptionError("insert_size", f"{shown(asked)} are not numbers of bases")
    return InsertSizes.of_user(mean, deviation)


def read_group_asked(line: str | None, sources: Sequence[ReadSource] = ()) -> ReadGroup | None:
    """Return the read group of a line; None for an empty one, the usual one for None."""
    if line is None:
        of_file = bool(sources) and not isinstance(sources[0], ReadsInMemory)
        return usual_read_group(sources[0].paths if of_file else ["-"])
    text = text_asked("read_group", line)
    return read_group_of(text) if text else None


def sort_options(sort: bool, mark_duplicates: bool, threads: int) -> SortOptions | None:
    """Return what is done with all alignments before they are written; None for nothing."""
    by_coordinate, marks = truth("sort", sort), truth("mark_duplicates", mark_duplicates)
    if not by_coordinate and not marks:
        return None
    return SortOptions(by_coordinate=by_coordinate, mark_duplicates=marks, threads=threads)


def alignment_target(path: PathLike, format: str | None, option: str) -> OutputTarget:
    """Return the file for alignments of reads."""
    if format is not None:
        format = meaning("format", format, {name: name for name in names_of(Rows.READS)})
    return target_of(path_asked(option, path), format, option, Rows.READS)


def seed_length_asked(asked: int | None) -> int | None:
    """Return the shortest matches that alignments begin with, or None."""
    if asked is not None and (asked := positive("seed_length", asked)) > LONGEST_SEED:
        raise OptionError("seed_length", f"{asked} is more than {LONGEST_SEED}")
    return asked
