"""Matches as columns of numpy, as rows, as tables, and as files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from mummergpu.api.log import LOG
from mummergpu.api.query_blocks import no_queries
from mummergpu.api.requests import PathLike, target_asked
from mummergpu.api.tables import (
    ROWS_SHOWN,
    FoundInReference,
    ResultRows,
    SearchedReference,
    joined,
    names_of_queries,
)
from mummergpu.input.blocks.queries import QueryBlock, join_query_blocks
from mummergpu.output.formats import RowKind
from mummergpu.output.matches.match_table import MatchTable, match_table
from mummergpu.output.open_sink import open_sink
from mummergpu.output.options import SamOptions, usual_read_group
from mummergpu.output.sink import OutputContext
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.words import pluralize
from mummergpu.sequence.mems import MemColumns
from mummergpu.sequence.strand import Strand

if TYPE_CHECKING:
    from mummergpu.matching.device_columns import DeviceColumns
    from mummergpu.sequence.mems import BlockMems


class Match(NamedTuple):
    """One match.

    Attributes
    ----------
    query, reference : str
        The names of the query and of the record of the reference.
    query_start, reference_start : int
        0-based, on the forward strand.
    length : int
        In bases.
    reverse : bool
        Whether the reverse complement of the query matches.
    """

    query: str
    reference: str
    query_start: int
    reference_start: int
    length: int
    reverse: bool


class Matches(FoundInReference, ResultRows[Match]):
    """The matches of some queries: query by query, forward strand before reverse.

    Attributes
    ----------
    query, reference : ndarray, dtype=uint32, shape=(n_matches,)
        The numbers of the query in `query_names`, and of the record in `reference_names`.
    query_start, reference_start : ndarray, dtype=int64, shape=(n_matches,)
        0-based, on the forward strand of the query and in the record.
    length : ndarray, dtype=int64, shape=(n_matches,)
        In bases.
    reverse : ndarray, dtype=bool, shape=(n_matches,)
        Whether the reverse complement of the query matches.

    Examples
    --------
    >>> import mummergpu
    >>> index = mummergpu.Index.build([("chr", "ACGTACGGTTCA")], min_length=5)
    >>> m = index.match("TACGGT", min_length=5)
    >>> len(m), m[0].reference, m[0].reference_start, m[0].length
    (1, 'chr', 3, 6)
    """

    _row = Match
    _names: ClassVar = {
        "query": ("query", "query_names"),
        "reference": ("reference", "_record_names"),
    }

    def __init__(
        self,
        block: QueryBlock,
        table: MatchTable,
        searched: SearchedReference,
        strands: tuple[Strand, ...],
    ) -> None:
        self._block = block
        self._strands = strands
        self._searched = searched
        self.query = table.queries
        self.reference = table.records
        self.query_start = table.query_starts
        self.reference_start = table.reference_starts
        self.length = table.lengths
        self.reverse = table.is_reverse

    @classmethod
    def of_block(cls, block: QueryBlock, mems: BlockMems, searched: SearchedReference) -> Matches:
        """Return the matches of a block that has been searched."""
        return cls(block, match_table(block, mems, searched.lookup), searched, tuple(mems))

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where the matches of each query begin, and where the last ones end.

        ndarray, dtype=int64, shape=(n_queries + 1,)
        """
        counts = np.bincount(self.query, minlength=self._block.query_count)
        return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))

    @cached_property
    def query_names(self) -> list[str]:
        """The names of the queries, also of those without a match."""
        return names_of_queries(self._block)

    @property
    def query_lengths(self) -> npt.NDArray[np.int64]:
        """The bases of each query: ndarray, dtype=int64, shape=(n_queries,)."""
        return np.diff(self._block.offsets)

    def __len__(self) -> int:
        return self.length.size

    def __repr__(self) -> str:
        queries = pluralize(self._block.query_count, "query", "queries")
        lines = [f"{pluralize(len(self), 'match', 'matches')} of {queries}"]
        for match in self._rows(slice(ROWS_SHOWN)):
            end, query_end = match.reference_start + match.length, match.query_start + match.length
            lines.append(
                f"  {match.query}:{match.query_start}-{query_end} "
                f"{'-' if match.reverse else '+'} {match.reference}:{match.reference_start}-{end}"
            )
        if len(self) > ROWS_SHOWN:
            lines.append("  ...")
        return "\n".join(lines)

    def write(self, path: PathLike, format: str | None = None) -> None:
        """Write the matches to a file.

        Parameters
        ----------
        path : path
            The file; its name chooses the format and the compression.
        format : str, optional
            The format, as for the command's ``--format``; overrides the name.

        Raises
        ------
        MummergpuError
            If the file cannot be written, or a library for the format is not installed.
        """
        target = target_asked(path, format, RowKind.MATCHES)
        sam = SamOptions(usual_read_group(["-"]))
        searched = self._searched.reference
        facts = OutputContext(searched, ("-",), sam=sam, max_rows=len(self) + 1, warn=LOG.warning)
        with (
            OutputFile(target.path) as file,
            closing(open_sink([target], [file], facts, Stats())) as sink,
        ):
            sink.write(sink.prepare(self._block, self._mems()))
            sink.finish()

    def _part(self, key: slice | npt.NDArray[np.bool_]) -> Matches:
        table = MatchTable(
            self.query[key],
            self.reference[key],
            self.query_start[key],
            self.reference_start[key],
            self.length[key],
            self.reverse[key],
        )
        return Matches(self._block, table, self._searched, self._strands)

    def _mems(self) -> BlockMems:
        """Return the matches as columns of each strand, as a search returns them."""
        found = {}
        record_starts = self._searched.reference.record_starts
        for strand in self._strands:
            (rows,) = np.nonzero(self.reverse == (strand is Strand.REVERSE))
            queries, lengths = self.query[rows], self.length[rows]
            starts = self.query_start[rows]
            if strand is Strand.REVERSE:
                starts = self.query_lengths[queries] - starts - lengths
            counts = np.bincount(queries, minlength=self._block.query_count)
            found[strand] = MemColumns(
                np.concatenate(([0], np.cumsum(counts, dtype=np.int64))),
                starts,
                self.reference_start[rows] + record_starts[self.reference[rows]],
                lengths,
            )
        return found


class DeviceMatches(FoundInReference):
    """The matches of some queries on a GPU: query by query, forward strand before reverse.

    The columns are those of `Matches`, with the same types, but each is a `DeviceArray`, which
    other libraries use without a copy. Names and lengths of sequences are on the host.

    Attributes
    ----------
    query, reference : DeviceArray, dtype=uint32, shape=(n_matches,)
        The numbers of the query in `query_names`, and of the record in `reference_names`.
    query_start, reference_start : DeviceArray, dtype=int64, shape=(n_matches,)
        0-based, on the forward strand of the query and in the record.
    length : DeviceArray, dtype=int64, shape=(n_matches,)
        In bases.
    reverse : DeviceArray, dtype=bool, shape=(n_matches,)
        Whether the reverse complement of the query matches.
    offsets : DeviceArray, dtype=int64, shape=(n_queries + 1,)
        Where the matches of each query begin, and where the last ones end.
    """

    def __init__(
        self,
        blocks: Sequence[QueryBlock],
        columns: DeviceColumns,
        searched: SearchedReference,
        strands: tuple[Strand, ...],
    ) -> None:
        self._blocks = list(blocks)
        self._searched = searched
        self._strands = strands
        self.query = columns.query
        self.reference = columns.reference
        self.query_start = columns.query_start
        self.reference_start = columns.reference_start
        self.length = columns.length
        self.reverse = columns.reverse
        self.offsets = columns.offsets

    @cached_property
    def query_names(self) -> list[str]:
        """The names of the queries, also of those without a match."""
        return [name for block in self._blocks for name in names_of_queries(block)]

    @property
    def query_lengths(self) -> npt.NDArray[np.int64]:
        """The bases of each query, on the host: ndarray, dtype=int64, shape=(n_queries,)."""
        return joined([np.diff(block.offsets) for block in self._blocks], np.int64)

    def to_host(self) -> Matches:
        """Return the matches on the host.

        Returns
        -------
        Matches
            The result of `Index.match` for the same queries, including any changes that you made
            to the columns.

        Raises
        ------
        BackendError
            If the device fails.
        """
        block = join_query_blocks(self._blocks) if self._blocks else no_queries()
        table = MatchTable(
            self.query.to_host(),
            self.reference.to_host(),
            self.query_start.to_host(),
            self.reference_start.to_host(),
            self.length.to_host(),
            self.reverse.to_host(),
        )
        return Matches(block, table, self._searched, self._strands)

    def __len__(self) -> int:
        return self.length.size

    def __repr__(self) -> str:
        queries = pluralize(self.offsets.size - 1, "query", "queries")
        return f"<mummergpu.DeviceMatches: {pluralize(len(self), 'match', 'matches')} of {queries}>"
