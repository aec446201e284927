"""Estimates the insert sizes of each library from its first well placed pairs.

The search for them ends at a fixed bound, or goes on to the first pairs of each read group. The
reads measured do not depend on blocks or threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.blocks.read_files import ReadSource
from mummergpu.input.blocks.reader import ReadStream, read_reader
from mummergpu.input.bytes.files import bytes_of_files
from mummergpu.input.records.tags import id_of_group
from mummergpu.mapping.options import MAX_READ_BASES, InsertSizes
from mummergpu.mapping.placing.insert_size import (
    LIBRARY,
    MEASURED,
    Libraries,
    is_enough,
    sizes_of_library,
)
from mummergpu.mapping.placing.second_pass import part_of_reads
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.map_options import MapOptions
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.stats import Stats

TEMPLATES_OF_ESTIMATE: Final = 1 << 14
"""The templates (pairs or single reads) that are measured together: the first ones of the input,
however it is cut into blocks."""

MOST_STEPS: Final = 8
"""If few pairs are well placed, up to this many times `TEMPLATES_OF_ESTIMATE` are read ahead."""

READS_OF_TASK: Final = 1 << 11
"""The reads that a thread measures in one task."""

TEMPLATES_OF_STRIP: Final = 1 << 9
STRIPS: Final = 3
"""If the first `TEMPLATES_OF_ESTIMATE` templates suffice, the last `TEMPLATES_OF_STRIP` of each of
the next N stretches of that length are measured, too: mixed libraries have more than one peak."""

BLOCK_BASES: Final = 1 << 22
"""The bases of a block if a later file is read ahead of the files before it."""

Measure = Callable[[Sequence[ReadBlock], Sequence[bytes]], Sequence[Int64Array]]
"""Measures insert sizes of pairs, whose read groups name libraries (`ReadBlock.libraries`)."""


class LibraryEstimate:
    """Measures the first pairs of each library."""

    def __init__(self, options: MapOptions, reads: ReadStream[ReadBlock], measure: Measure) -> None:
        self._options = options
        self._reads = reads
        self._measure = measure
        self._measured: list[Int64Array] = [np.zeros((MEASURED, 0), dtype=np.int64)]
        self._later = self._measured.copy()
        self._libraries: set[int] = set()
        self._seen: set[int] = set()

    def libraries(self, context: RunContext) -> Libraries:
        """Return the insert sizes of each library, and report them."""
        options, orientation = self._options, self._options.orientation
        if (sizes := options.insert_sizes) is not None:
            sizes = replace(sizes, orientation=orientation or sizes.orientation)
            first = self._reads.first_templates(TEMPLATES_OF_ESTIMATE)
            describe_sizes({"": sizes} if any(one.paired for one in first) else {}, context)
            return Libraries((sizes,))
        self._reads.first_templates(1)
        lines = self._reads.reader.read_groups
        self._groups = tuple(map(id_of_group, lines)) if len(lines) > 1 else ()
        for number, source in enumerate(options.sources):
            if number == 0 or bytes_of_files(source.paths) is None:
                self._look_at(self._reads, number, number)
            else:
                # Each file may be another library, so its own first pairs are read.
                with _stream_of(source, options) as stream:
                    self._look_at(stream, 0, number)
        for source in options.sources:
            if options.keeps_groups and bytes_of_files(source.paths) is not None:
                self._look_for_groups(source)
        measured, later = (np.concatenate(one, axis=1) for one in (self._measured, self._later))
        files = [" and ".join(source.paths) for source in options.sources]
        names = [*(group.decode(errors="replace") for group in self._groups), *files]
        found: dict[str, InsertSizes | None] = {}
        every = sizes_of_library(measured, orientation) if self._libraries else None
        sizes_of_all = [every] * len(names)
        for library in sorted(self._libraries):
            own, more = (one[:, one[LIBRARY] == library] for one in (measured, later))
            sizes_of_all[library] = sizes_of_library(own, orientation, more)
            found[names[library]] = sizes_of_all[library]
        describe_sizes(found, context)
        return Libraries(tuple(sizes_of_all), self._groups)

    def _look_at(self, stream: ReadStream[ReadBlock], in_stream: int, number: int) -> None:
        """Measure the first pairs of a file of a stream until they suffice for all libraries."""
        lacking: set[int] | None = None
        for step in range(MOST_STEPS):
            count = TEMPLATES_OF_ESTIMATE
            first = stream.first_templates(count, step * count)
            for block in first:
                self._seen |= {*block.libraries(self._groups).tolist()}
            pairs = _pairs_of(first, in_stream, number)
            seen = [block.libraries(self._groups) for block in pairs]
            for numbers in seen:
                self._libraries |= {*numbers.tolist()}
            if lacking is not None and len(lacking) < len(self._libraries):
                pairs = [
                    part_of_reads(block, np.flatnonzero(np.repeat(np.isin(own, [*lacking]), 2)))
                    for block, own in zip(pairs, seen, strict=True)
                ]
            parts = [*_parts(pairs)]
            if parts:
                self._measured += self._measure(parts, self._groups)
            measured = np.concatenate(self._measured, axis=1)
            lacking = {
                library
                for library in self._libraries
                if not is_enough(measured[:, measured[LIBRARY] == library])
            }
            if not lacking or not first or first[-1].file_number != in_stream:
                break
        if step == 0 and self._libraries:
            strips: list[ReadBlock] = []
            for end in range(2, STRIPS + 2):
                skipped = end * TEMPLATES_OF_ESTIMATE - TEMPLATES_OF_STRIP
                strips += stream.first_templates(TEMPLATES_OF_STRIP, skipped)
            # Threads measure them together.
            if pairs := _pairs_of(strips, in_stream, number):
                self._later += self._measure([*_parts(pairs)], self._groups)

    def _look_for_groups(self, source: ReadSource) -> None:
        """Measure the first pairs of those read groups that no read so far belongs to."""
        left = dict.fromkeys({*range(len(self._groups))} - self._seen, TEMPLATES_OF_ESTIMATE)
        # Single reads have no insert sizes.
        if not left or not self._libraries:
            return
        found: list[ReadBlock] = []
        with _stream_of(source, self._options) as stream:
            for block in stream.blocks():
                numbers = block.libraries(self._groups)
                there = left.keys() & {*numbers.tolist()}
                self._seen |= there
                for library in there if block.paired else ():
                    own = np.flatnonzero(numbers == library)[: left[library]]
                    self._libraries.add(library)
                    left[library] -= own.size
                    if own.size:
                        reads = (2 * own[:, None] + np.arange(2)).reshape(-1)
                        found.append(part_of_reads(block, reads))
                if not any(left.values()):
                    break
        if found:
            self._measured += self._measure([*_parts(found)], self._groups)


def _pairs_of(first: Sequence[ReadBlock], in_stream: int, number: int) -> list[ReadBlock]:
    """Return the pairs of file `in_stream` of a stream, renumbered to file `number`."""
    return [
        replace(block, file_number=number)
        for block in first
        if block.paired and block.file_number == in_stream
    ]


def _stream_of(source: ReadSource, options: MapOptions) -> ReadStream[ReadBlock]:
    """Return a stream of one source without warnings, which the stream of all reads gives."""
    rules = QueryRules(max_bases=MAX_READ_BASES, keeps_groups=options.keeps_groups)
    size = options.block_size or BLOCK_BASES
    return ReadStream(read_reader((source,), size, rules=rules), Stats(), lambda *_: None)


def _parts(pairs: Sequence[ReadBlock]) -> Iterator[ReadBlock]:
    """Yield pairs in parts of `READS_OF_TASK` reads."""
    for block in pairs:
        for begin in range(0, block.query_count, READS_OF_TASK):
            yield block.part(begin, min(begin + READS_OF_TASK, block.query_count))


def describe_sizes(libraries: dict[str, InsertSizes | None], context: RunContext) -> None:
    """Report the insert sizes of libraries as messages, and those of the first as statistics."""
    found: dict[str, Any] = {"insert_size_mean": None, "insert_size_deviation": None}
    found["proper_pair_sizes"] = None
    for library, sizes in libraries.items():
        if sizes is None:
            continue
        ranges = " and ".join(f"{least:,} to {most:,}" for least, most in sizes.proper)
        name = f"{library}: " if len(libraries) > 1 else ""
        if sizes.is_wide:
            context.warn(
                f"{name}too few pairs are well placed to estimate the sizes of templates; those "
                f"of {ranges} bases are proper pairs (-I sets better ones)"
            )
            continue
        if found["proper_pair_sizes"] is None:
            found["insert_size_mean"] = round(sizes.mean, 3)
            found["insert_size_deviation"] = round(sizes.deviation, 3)
            found["proper_pair_sizes"] = [sizes.min_size, sizes.max_size]
        mates = "" if sizes.orientation == "fr" else f", mates in orientation {sizes.orientation}"
        context.notice(
            f"{name}templates of {sizes.mean:.1f} bases, standard deviation "
            f"{sizes.deviation:.1f}{mates}; proper pairs from {ranges}"
        )
    if libraries:
        context.stats.set(**found)
