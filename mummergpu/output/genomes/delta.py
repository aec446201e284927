"""Genome alignments as nucmer's .delta, which delta-filter, show-coords and dnadiff read.

The file names the reference and the queries, and tells that the alignments are of bases. A header
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
the distances between the bases of gaps (`operation_text.distance_texts`), and 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from mummergpu.errors import InputError
from mummergpu.input.reference import Reference
from mummergpu.output.bytes.text_arrays import check_names
from mummergpu.output.genomes.format import AlignedQueries, GenomeFormat
from mummergpu.output.genomes.operation_text import distance_texts
from mummergpu.runtime.words import say_nothing


class GenomeDelta(GenomeFormat):
    """Turns genome alignments into .delta.

    Raises
    ------
    InputError
        If the name of a file has a blank, or a record of the reference has no name: the format has
        no room for them.
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

    def format_queries(self, queries: AlignedQueries) -> Iterator[bytes]:
        """Yield the alignments of each query (`GenomeFormat.format_queries`).

        Raises
        ------
        InputError
            If a query that is aligned has no name.
        """
        self._tell_of_repeated(queries.names, self._query_path)
        columns = queries.alignments
        if columns.count == 0:
            return
        if not all(queries.names[query] for query in columns.queries.tolist()):
            raise InputError("a .delta needs names, and a query has none", self._query_path)
        distances, offsets = distance_texts(columns.cigars, columns.cigar_offsets)
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
