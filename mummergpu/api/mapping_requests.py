"""The words of the Python interface for mapping reads, and what they mean."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypedDict, Unpack

from mummergpu.api.requests import PathLike, device_options, thread_count
from mummergpu.errors import OptionError
from mummergpu.input.blocks.memory import NamedPair, NamedSequence, ReadsInMemory, is_pair
from mummergpu.input.blocks.read_files import MateFiles, ReadFile, ReadSource
from mummergpu.mapping.placing.insert_size import InsertSizes
from mummergpu.output.records.sam_options import ReadGroup, read_group_of, usual_read_group
from mummergpu.pipeline.map_options import LONG_READS, MapOptions
from mummergpu.runtime.option_values import meaning, path, paths, shown, text, truth

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
    max_occurrences: int
    backend: str
    threads: int | None
    any_letters: bool
    long_reads: str
    comments: bool


def map_options(
    reference: PathLike, reads: Reads, mates: Mates | None, **asked: Unpack[MapAsked]
) -> MapOptions:
    """Return the options of mapping reads, which stay in memory; refuse what makes no sense."""
    count = thread_count(asked["threads"])
    return MapOptions(
        path("reference", reference),
        read_sources(reads, mates, asked["interleaved"]),
        threads=count,
        seed_length=asked["seed_length"],
        insert_sizes=insert_sizes(asked["insert_size"]),
        max_secondary=asked["max_secondary"],
        most_alternatives=asked["max_xa"],
        max_occurrences=asked["max_occurrences"],
        device=device_options(asked["backend"], count),
        any_letters=asked["any_letters"],
        refuses_long=meaning("long_reads", asked["long_reads"], LONG_READS),
        keeps_groups=True,
        comments=asked["comments"],
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
        return (path(option, given),), None, iter(())
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        wrong = "is neither a file nor reads with their names, such as [('read', 'ACGT')]"
        raise OptionError(option, f"{shown(given)} {wrong}")
    rest = iter(given)
    first = next(rest, None)
    if first is None:
        raise OptionError(option, "name at least one file, or give a read")
    every = chain((first,), rest)
    if isinstance(first, str | os.PathLike):
        return paths(option, every), None, iter(())
    return (), first, every


def insert_sizes(asked: Sequence[float] | None) -> InsertSizes | None:
    """Return the sizes of templates: a mean and a standard deviation in bases, or None."""
    if asked is None:
        return None
    try:
        mean, deviation = (float(number) for number in asked if not isinstance(asked, str | bytes))
    except (TypeError, ValueError, OverflowError):
        raise OptionError("insert_size", f"{shown(asked)} is not a mean and a deviation") from None
    return InsertSizes.of_user(mean, deviation)


def read_group_asked(line: str | None, sources: Sequence[ReadSource] = ()) -> ReadGroup | None:
    """Return the read group of a line; None for an empty one, the usual one for None."""
    if line is None:
        of_file = bool(sources) and not isinstance(sources[0], ReadsInMemory)
        return usual_read_group(sources[0].paths if of_file else ["-"])
    line = text("read_group", line)
    return read_group_of(line) if line else None
