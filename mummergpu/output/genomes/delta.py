"""Genome alignments as nucmer's .delta, which delta-filter, show-coords and dnadiff read.

The file names the reference and the queries, and says that the alignments are of bases. A header
for each query and each record of the reference that it aligns with is followed by the alignments::

    reference.fa queries.fa
    NUCMER
    >chr1 contig1 5000 3600
    1001 1500 14 511 7 7 0
    120
    -35
    0

An alignment has its first and last base in the record and in the query, 1-based, the differences
(twice: for bases all of them count alike), and 0 for stop codons, which bases do not have. If the
reverse complement of the query aligns, the last base in the query is before the first. Below are
the distances between the bases of gaps (`_distance_texts`), and 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.output.bytes.number_text import MOST_DIGITS, put_one_number
from mummergpu.output.bytes.texts import (
    LINE_END,
    OVERSHOOT,
    RecordTexts,
    TextArray,
    check_names,
    store,
)
from mummergpu.output.genomes.sink import AlignedQueries
from mummergpu.output.sink import Format
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.jit import as_int64, jit
from mummergpu.runtime.words import say_nothing
from mummergpu.viterbi.recurrence.operations import INSERTION_OPERATION, MATCH_OPERATION

_MINUS: Final = np.uint8(ord("-"))
_ONE: Final = np.uint8(ord("1"))


class GenomeDelta(Format[AlignedQueries, GenomeAlignments]):
    """Turns genome alignments into .delta.

    `InputError` if the name of a file has a blank, or a record of the reference has no name: the
    format has no room for them.
    """

    def __init__(
        self, reference: Reference, query_path: str, warn: Callable[[str], None] = say_nothing
    ) -> None:
        self._paths = [named_path(path) for path in (reference.path, query_path)]
        check_names(reference, "a .delta")
        self._reference = reference
        self._query_path = query_path
        self._warn = warn
        self._seen: set[bytes] | None = set()
        self._tell_of_repeated(reference.names, reference.path)
        self._seen = set()
        self._lengths = reference.record_lengths.tolist()

    def head(self) -> bytes:
        """Return the names of the files, and the kind."""
        return " ".join(self._paths).encode(errors="surrogateescape") + b"\nNUCMER\n"

    def format_block(self, queries: AlignedQueries, _rows: GenomeAlignments) -> Iterator[bytes]:
        """Yield the alignments of some queries in one piece: they are few (`Format`)."""
        yield b"".join(self._lines_of(queries))

    def _lines_of(self, queries: AlignedQueries) -> Iterator[bytes]:
        """Yield the lines of each query; raise InputError if one that is aligned has no name."""
        self._tell_of_repeated(queries.names, self._query_path)
        columns = queries.alignments
        if columns.count == 0:
            return
        if not all(queries.names[query] for query in columns.queries.tolist()):
            raise InputError("a .delta needs names, and a query has none", self._query_path)
        distances, offsets = _distance_texts(columns.cigars, columns.cigar_offsets)
        text, ends = distances.tobytes(), offsets.tolist()
        begins, forward_ends = queries.forward_ends()
        numbers = zip(
            columns.queries.tolist(),
            columns.records.tolist(),
            columns.strands.tolist(),
            (columns.reference_starts + 1).tolist(),
            columns.reference_ends.tolist(),
            (begins + 1).tolist(),
            forward_ends.tolist(),
            columns.errors.tolist(),
            strict=True,
        )
        last = None
        for row, (query, record, strand, first, end, begin, stop, errors) in enumerate(numbers):
            if (query, record) != last:
                last = query, record
                lengths = b"%d %d" % (self._lengths[record], queries.lengths[query])
                name, own_name = self._reference.names[record], queries.names[query]
                yield b">%b %b %b\n" % (name, own_name, lengths)
            if strand:
                begin, stop = stop, begin
            yield b"%d %d %d %d %d %d 0\n" % (first, end, begin, stop, errors, errors)
            yield text[ends[row] : ends[row + 1]]
            yield b"0\n"

    def _tell_of_repeated(self, names: Sequence[bytes], path: str) -> None:
        """Warn of the first name that two records of a file have."""
        for name in names:
            if self._seen is None:
                return
            if name in self._seen:
                self._seen = None
                shown = name.decode(errors="backslashreplace")
                self._warn(
                    f"{path}: several records are named '{shown}': show-snps, dnadiff and "
                    "mummerplot cannot tell them apart in the .delta"
                )
            else:
                self._seen.add(name)


def named_path(path: str) -> str:
    """Return how a .delta names a file: wholly, for programs in other folders, if it can."""
    for name in (os.path.abspath(path), os.path.relpath(path)):
        if len(name.split()) == 1:
            return name
    raise InputError("a .delta cannot name a file with a blank in its path", path)


def _distance_texts(cigars: UInt32Array, offsets: Int64Array) -> RecordTexts:
    """Return the distances between the gaps of each alignment, as nucmer's .delta has them.

    Each base of a gap has a line: how many columns it is after the one before. The number is
    negative if the base is missing in the reference, and positive if it is missing in the query.
    """
    gap_bases = int((cigars[cigars & 15 != MATCH_OPERATION] >> 4).sum(dtype=np.int64))
    size = (MOST_DIGITS + 2) * cigars.size + len(b"-1\n") * gap_bases + OVERSHOOT
    text = np.empty(size, dtype=np.uint8)
    text_offsets = np.zeros(offsets.size, dtype=np.int64)
    _write_distances(cigars, offsets, text, text_offsets)
    # Wide stores are not among what numba checks.
    assert text_offsets[-1] <= text.size - OVERSHOOT
    return RecordTexts(text, text_offsets)


@jit
def _write_distances(
    cigars: UInt32Array, offsets: Int64Array, text: TextArray, text_offsets: Int64Array
) -> None:
    """Write a line for each base of a gap."""
    at = 0
    for row in range(offsets.size - 1):
        columns = 0
        for position in range(offsets[row], offsets[row + 1]):
            operation = as_int64(cigars[position])
            kind, length = operation & 15, operation >> 4
            if kind == MATCH_OPERATION:
                columns += length
                continue
            for base in range(length):
                if kind == INSERTION_OPERATION:
                    store(text, at, _MINUS)
                    at += 1
                if base == 0:
                    at = put_one_number(text, at, columns + 1)
                else:
                    store(text, at, _ONE)
                    at += 1
                store(text, at, LINE_END)
                at += 1
            columns = 0
        text_offsets[row + 1] = at
