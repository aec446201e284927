"""The keywords of the Python interface for mapping reads, and their meaning."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, TypedDict

from mummergpu.api.requests import PathLike, device_options, thread_count
from mummergpu.errors import OptionError
from mummergpu.input.blocks.memory import NamedPair, NamedSequence, ReadsInMemory, is_pair, several
from mummergpu.input.blocks.read_files import MateFiles, ReadFile, ReadSource
from mummergpu.mapping.options import InsertSizes, Scores
from mummergpu.matching.options import DeviceOptions
from mummergpu.output.options import ReadGroup, read_group_of, usual_read_group
from mummergpu.pipeline.map_options import LONG_READS, MapOptions
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import (
    check_bool,
    choice,
    instance,
    path,
    paths,
    shown,
    text,
)

Reads = PathLike | Iterable[PathLike] | Iterable[NamedSequence] | Iterable[NamedPair]
"""Files of reads, or reads in memory."""

Mates = PathLike | Iterable[PathLike] | Iterable[NamedSequence]
"""Files of second mates, or second mates in memory."""


_BASES: Final = re.compile("[ACGTUN]+", re.IGNORECASE)

USUAL_SCORES: Final = Scores()


class MapKeywords(TypedDict, total=False):
    """The types of the fields of `MapRequest`."""

    interleaved: bool
    insert_size: Sequence[float] | None
    orientation: str | None
    seed_length: int | None
    max_secondary: int
    max_xa: int
    max_occurrences: int
    backend: str
    threads: int | None
    long_reads: str
    comments: bool
    single: bool
    scores: Scores | None
    ignore_alt: bool


@frozen
class MapRequest:
    """The keywords that `mummergpu.map`, which documents them, `Index.map` and others share."""

    interleaved: bool = False
    insert_size: Sequence[float] | None = None
    orientation: str | None = MapOptions.orientation
    seed_length: int | None = MapOptions.seed_length
    max_secondary: int = MapOptions.max_secondary
    max_xa: int = MapOptions.max_alternatives
    max_occurrences: int = MapOptions.max_occurrences
    backend: str = DeviceOptions.backend
    threads: int | None = None
    long_reads: str = "unmapped"
    comments: bool = MapOptions.comments
    single: bool = False
    scores: Scores | None = None
    ignore_alt: bool = MapOptions.ignore_alt

    def options(self, reference: PathLike, reads: Reads, mates: Mates | None) -> MapOptions:
        """Return the options of a job whose alignments stay in memory."""
        count = thread_count(self.threads)
        scores = USUAL_SCORES if self.scores is None else self.scores
        instance("scores", scores, Scores)
        return MapOptions(
            path("reference", reference),
            read_sources(reads, mates, self.interleaved, self.single),
            threads=count,
            seed_length=self.seed_length,
            insert_sizes=insert_sizes(self.insert_size),
            orientation=self.orientation,
            costs=scores.costs,
            min_score=scores.min_score,
            unpaired=scores.unpaired,
            max_secondary=self.max_secondary,
            max_alternatives=self.max_xa,
            max_occurrences=self.max_occurrences,
            device=device_options(self.backend, count),
            refuses_long=choice("long_reads", self.long_reads, LONG_READS),
            keeps_groups=True,
            comments=self.comments,
            ignore_alt=self.ignore_alt,
        )


def read_sources(
    reads: Reads, mates: Mates | None, interleaved: bool, single: bool
) -> tuple[ReadSource, ...]:
    """Return the files of reads, with their mates if there are any, or the reads in memory."""
    interleaved, single = check_bool("interleaved", interleaved), check_bool("single", single)
    if single and (interleaved or mates is not None):
        raise OptionError("single", "single reads have no mates")
    if mates is not None and interleaved:
        raise OptionError("interleaved", "mates that alternate have no other file or list")
    names, first, given = _files_or_reads("reads", reads)
    if mates is None:
        if names:
            return tuple(ReadFile(name, interleaved, single) for name in names)
        if single and is_pair(first):
            raise OptionError("single", "the reads are pairs")
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
    """Return the paths of files; or no paths, the first item in memory, and all items."""
    if isinstance(given, str) and _BASES.fullmatch(given) and not os.path.exists(given):
        given = [("read", given)]
    if isinstance(given, str | os.PathLike):
        return (path(option, given),), None, iter(())
    if not isinstance(given, bytes):
        given = several(given, "read")
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
    """Return the insert sizes: a mean, a standard deviation and bounds in bases, or None."""
    if asked is None:
        return None
    try:
        numbers = [float(number) for number in asked if not isinstance(asked, str | bytes)]
        mean, deviation, *bounds = numbers
        limits = [int(bound) for bound in bounds]
    except (TypeError, ValueError, OverflowError):
        limits = [0] * 3
    if len(limits) > 2:
        text = "is not a mean and a deviation, and the largest and the smallest size after them"
        raise OptionError("insert_size", f"{shown(asked)} {text}")
    return InsertSizes.of_user(mean, deviation, *limits)


def read_group_asked(line: str | None, sources: Sequence[ReadSource] = ()) -> ReadGroup | None:
    """Return the read group of a header line; None for an empty line, the default one for None."""
    if line is None:
        of_file = bool(sources) and not isinstance(sources[0], ReadsInMemory)
        return usual_read_group(sources[0].paths if of_file else ["-"])
    line = text("read_group", line)
    return read_group_of(line) if line else None
