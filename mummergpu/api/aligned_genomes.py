"""Alignments of genomes as columns of numpy, as rows, as tables, and as files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from mummergpu.api.log import LOG
from mummergpu.api.requests import PathLike, target_asked
from mummergpu.api.tables import ROWS_SHOWN, AlignmentRows, SearchedReference, decoded_name, joined
from mummergpu.output.formats import RowKind
from mummergpu.output.genomes.sink import AlignedQueries, chosen_one_to_one
from mummergpu.output.open_sink import open_sink
from mummergpu.output.options import SamOptions, usual_read_group
from mummergpu.output.sink import OutputContext
from mummergpu.runtime.option_values import positive
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.words import pluralize


class GenomeAlignment(NamedTuple):
    """One alignment of genomes.

    Attributes
    ----------
    query, reference : str
        The names of the query and of the record of the reference.
    query_start, query_end : int
        The first base of the query that is aligned, and the one after the last: 0-based, on the
        forward strand.
    reference_start, reference_end : int
        The same in the record.
    reverse : bool
        Whether the reverse complement of the query is aligned.
    identity : float
        The share of columns in which the bases are equal, between 0 and 1.
    errors : int
        Mismatches and the bases of gaps.
    score : int
        3 for a match, -7 for a mismatch or a base of a gap, and -3 for each gap.
    cigar : str
        The alignment as text, such as ``120M1D87M``: along the forward strand of the reference.
    """

    query: str
    reference: str
    query_start: int
    query_end: int
    reference_start: int
    reference_end: int
    reverse: bool
    identity: float
    errors: int
    score: int
    cigar: str


class AlignedGenomes(AlignmentRows[GenomeAlignment]):
    """The alignments of some queries with a reference, from `Index.align`.

    They are sorted by query, record of the reference, start in it, strand, and query start.

    Attributes
    ----------
    query, reference : ndarray, dtype=int64, shape=(n_alignments,)
        The numbers of the query in `query_names`, and of the record in `reference_names`.
    reverse : ndarray, dtype=bool, shape=(n_alignments,)
        Whether the reverse complement of the query is aligned.
    query_start, query_end : ndarray, dtype=int64, shape=(n_alignments,)
        The first base of the query that is aligned, and the one after the last: 0-based, on the
        forward strand.
    reference_start, reference_end : ndarray, dtype=int64, shape=(n_alignments,)
        The same in the record.
    identity : ndarray, dtype=float64, shape=(n_alignments,)
        The share of columns in which the bases are equal, between 0 and 1.
    errors : ndarray, dtype=int64, shape=(n_alignments,)
        Mismatches and the bases of gaps.
    score : ndarray, dtype=int64, shape=(n_alignments,)
        3 for a match, -7 for a mismatch or a base of a gap, and -3 for each gap.
    cigar_offsets : ndarray, dtype=int64, shape=(n_alignments + 1,)
        Where the operations of each alignment begin in `cigars`, and where the last ones end.
    cigars : ndarray, dtype=uint32
        The operations as BAM packs them: bases in the upper 28 bits, the operation in the others
        (0 for pairs of bases, 1 for insertions, 2 for deletions), along the forward strand of the
        reference.

    Examples
    --------
    >>> import mummergpu
    >>> bases = "ACGTACGTTGCATTAGCAGGATCCATTGACCAGT"
    >>> index = mummergpu.Index.build([("chr", bases)], min_length=8)
    >>> found = index.align([("q", bases[:15] + "T" + bases[16:])], min_cluster=10)
    >>> found
    1 alignment of 1 query
      q:0-34 + chr:0-34 97.1%
    >>> found[0].cigar, found.errors.tolist()
    ('34M', [1])
    """

    _row = GenomeAlignment
    _names: ClassVar = {
        "query": ("query", "query_names"),
        "reference": ("reference", "_record_names"),
    }

    def __init__(
        self,
        blocks: Sequence[AlignedQueries],
        searched: SearchedReference,
        query_paths: tuple[str, ...],
    ) -> None:
        self._blocks = list(blocks)
        self._searched = searched
        self._query_paths = query_paths
        columns = [block.alignments for block in self._blocks]
        firsts = np.cumsum([0, *(len(block.names) for block in self._blocks)])
        sizes = [np.diff(one.cigar_offsets) for one in columns]
        ends = [block.forward_ends() for block in self._blocks]
        queries = [one.queries + first for one, first in zip(columns, firsts[:-1], strict=True)]
        self.query = joined(queries, np.int64)
        self.reference = joined([one.records for one in columns], np.int64)
        self.reverse = joined([one.strands != 0 for one in columns], np.bool_)
        self.query_start = joined([begins for begins, _ in ends], np.int64)
        self.query_end = joined([last for _, last in ends], np.int64)
        self.reference_start = joined([one.reference_starts for one in columns], np.int64)
        self.reference_end = joined([one.reference_ends for one in columns], np.int64)
        self.identity = joined([one.identities for one in columns], np.float64)
        self.errors = joined([one.errors for one in columns], np.int64)
        self.score = joined([one.scores for one in columns], np.int64)
        self.cigar_offsets = np.cumsum(joined([np.zeros(1, np.int64), *sizes], np.int64))
        self.cigars = joined([one.cigars for one in columns], np.uint32)

    @cached_property
    def query_names(self) -> list[str]:
        """The names of the queries, also of those without an alignment."""
        return [decoded_name(name) for block in self._blocks for name in block.names]

    @property
    def query_lengths(self) -> npt.NDArray[np.int64]:
        """The bases of each query: ndarray, dtype=int64, shape=(n_queries,)."""
        return joined([block.lengths for block in self._blocks], np.int64)

    def __len__(self) -> int:
        return self.query.size

    def __repr__(self) -> str:
        queries = pluralize(len(self.query_names), "query", "queries")
        lines = [f"{pluralize(len(self), 'alignment')} of {queries}"]
        for row in self._rows(slice(ROWS_SHOWN)):
            lines.append(
                f"  {row.query}:{row.query_start}-{row.query_end} {'-' if row.reverse else '+'} "
                f"{row.reference}:{row.reference_start}-{row.reference_end} {row.identity:.1%}"
            )
        if len(self) > ROWS_SHOWN:
            lines.append("  ...")
        return "\n".join(lines)

    def one_to_one(self) -> AlignedGenomes:
        """Return the alignments that map each base to its best place, in both genomes.

        The rule is that of ``delta-filter -1``, and of ``mummergpu align --one-to-one``.

        Returns
        -------
        AlignedGenomes
            In the same order.
        """
        if not self._blocks:
            return self
        return self._with_blocks(list(chosen_one_to_one(self._blocks)))

    def write(self, path: PathLike, format: str | None = None, *, threads: int = 1) -> None:
        """Write the alignments to a file, as ``mummergpu align`` does.

        Parameters
        ----------
        path : path
            The file; its name chooses the format, as in ``mummergpu align``, and the
            compression.
        format : str, optional
            ``delta``, ``paf``, ``sam``, ``bam``, ``cram`` or ``vcf``; overrides the name. The
            default is .delta.
        threads : int, default 1
            The number of threads that compress.

        Raises
        ------
        MummergpuError
            If the file cannot be written, or the queries of a .delta come from several files.
        """
        target = target_asked(path, format, RowKind.GENOMES)
        paths = self._query_paths
        facts = OutputContext(
            *(self._searched.reference, paths, positive("threads", threads)),
            sam=SamOptions(usual_read_group(paths)),
            warn=LOG.warning,
        )
        with ExitStack() as stack:
            file = stack.enter_context(OutputFile(target.path))
            sink = open_sink([target], [file], facts, Stats(), RowKind.GENOMES)
            stack.callback(sink.close)
            for block in self._blocks:
                sink.write(sink.prepare(block, block.alignments))
            sink.finish()

    def _part(self, key: slice | npt.NDArray[np.bool_]) -> AlignedGenomes:
        parts = self._masks(key, [block.alignments.count for block in self._blocks])
        return self._with_blocks(
            [
                replace(block, alignments=block.alignments.taken(np.flatnonzero(part)))
                for block, part in zip(self._blocks, parts, strict=True)
            ]
        )

    def _with_blocks(self, blocks: Sequence[AlignedQueries]) -> AlignedGenomes:
        return AlignedGenomes(blocks, self._searched, self._query_paths)
