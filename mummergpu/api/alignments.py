"""Alignments of reads as columns of numpy, and as files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import numpy.typing as npt

from mummergpu.api.mapping_requests import read_group_asked, sort_options
from mummergpu.api.matches import names_of_queries
from mummergpu.api.requests import PathLike
from mummergpu.errors import LibraryError
from mummergpu.input.read_block import ReadBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns
from mummergpu.mapping.alignments.folded_columns import fold
from mummergpu.output.open_alignments import (
    AlignmentFacts,
    check_alignment_target,
    index_path,
    open_alignment_sink,
)
from mummergpu.output.records.sam_options import check_groups
from mummergpu.output.targets import target_of
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats

if TYPE_CHECKING:
    import pyarrow

LETTERS: Final = "MIDNSHP=X"
"""The operations of a CIGAR, as BAM numbers them."""

MappedBlock = tuple[ReadBlock, AlignmentColumns]


class Alignments:
    """The alignments of some reads, in the order of the reads: a row for each.

    A read without an alignment has a row, too. Other places of a read have rows with flag 256, if
    they were asked for.

    Attributes
    ----------
    read : ndarray, dtype=int64, shape=(n_rows,)
        The number of the read in `read_names`.
    flag : ndarray, dtype=uint16, shape=(n_rows,)
        The flags of SAM.
    reference : ndarray, dtype=int32, shape=(n_rows,)
        The number of the record in `reference_names`; -1 for none.
    position : ndarray, dtype=int64, shape=(n_rows,)
        The first base of the record that is aligned, 0-based; -1 for none.
    mapping_quality : ndarray, dtype=uint8, shape=(n_rows,)
        0 to 60.
    cigar_offsets : ndarray, dtype=int64, shape=(n_rows + 1,)
        Where the operations of each row begin in `cigars`, and where the last ones end.
    cigars : ndarray, dtype=uint32
        The operations as BAM packs them: bases in the upper 28 bits, the operation in the others.
    template_length : ndarray, dtype=int32, shape=(n_rows,)
        The TLEN of SAM.
    mate : ndarray, dtype=int64, shape=(n_rows,)
        The row of the mate; -1 for none.
    score, second_score, edit_distance : ndarray, dtype=int32, shape=(n_rows,)
        The tags AS, XS and NM of SAM.
    """

    def __init__(
        self,
        blocks: Sequence[MappedBlock],
        reference: Reference,
        tells_alternatives: bool = False,
        input_groups: Sequence[bytes] = (),
    ) -> None:
        self._blocks = list(blocks)
        self._reference = reference
        self._tells_alternatives = tells_alternatives
        self._input_groups = input_groups
        columns = [found for _, found in self._blocks]
        reads = _starts(block.query_count for block, _ in self._blocks)
        rows = _starts(found.row_count for found in columns)
        operations = _starts(found.cigars.size for found in columns)
        self.read = self._joined(lambda one: one.reads, np.int64, reads)
        self.flag = self._joined(lambda one: one.flags, np.uint16)
        self.reference = self._joined(lambda one: one.records, np.int32)
        self.position = self._joined(lambda one: one.positions, np.int64)
        self.mapping_quality = self._joined(lambda one: one.qualities, np.uint8)
        ends = self._joined(lambda one: one.cigar_offsets[1:], np.int64, operations)
        self.cigar_offsets = np.concatenate([np.zeros(1, np.int64), ends])
        self.cigars = self._joined(lambda one: one.cigars, np.uint32)
        self.template_length = self._joined(lambda one: one.template_lengths, np.int32)
        has_mate = self._joined(lambda one: one.mate_rows != NO_ROW, np.bool_)
        mates = self._joined(lambda one: one.mate_rows, np.int64, rows)
        self.mate = np.where(has_mate, mates, NO_ROW)
        self.score = self._joined(lambda one: one.scores, np.int32)
        self.second_score = self._joined(lambda one: one.second_scores, np.int32)
        self.edit_distance = self._joined(lambda one: one.edit_distances, np.int32)

    def _joined(
        self,
        column: Callable[[AlignmentColumns], npt.NDArray[Any]],
        kind: type,
        starts: Sequence[int] | None = None,
    ) -> npt.NDArray[Any]:
        """Return a column of all blocks, to which the start of each block is added."""
        parts = [column(found) for _, found in self._blocks]
        if starts is not None:
            parts = [part + start for part, start in zip(parts, starts, strict=True)]
        return np.concatenate([np.empty(0, dtype=kind), *parts])

    @cached_property
    def read_names(self) -> list[str]:
        """The names of the reads; mates have the same."""
        return [name for block, _ in self._blocks for name in names_of_queries(block)]

    @property
    def read_lengths(self) -> npt.NDArray[np.int64]:
        """The bases of each read: ndarray, dtype=int64, shape=(n_reads,)."""
        lengths = [np.diff(block.as_written.offsets) for block, _ in self._blocks]
        return np.concatenate([np.empty(0, dtype=np.int64), *lengths])

    @cached_property
    def reference_names(self) -> list[str]:
        """The names of the records of the reference."""
        return [name.decode("utf-8", "surrogateescape") for name in self._reference.names]

    def __len__(self) -> int:
        return self.flag.size

    def __repr__(self) -> str:
        mapped = int((self.flag & 4 == 0).sum())
        return f"<mummergpu.Alignments: {len(self):,} rows, {mapped:,} of them mapped>"

    def cigar(self, row: int) -> str:
        """Return the CIGAR of a row as text, such as ``3S97M``; ``*`` if it has none."""
        packed = self.cigars[self.cigar_offsets[row] : self.cigar_offsets[row + 1]]
        return "".join(f"{one >> 4}{LETTERS[one & 15]}" for one in packed.tolist()) or "*"

    def to_arrow(self) -> pyarrow.Table:
        """Return a table of Arrow with the columns, and the names of reads and records.

        Raises
        ------
        LibraryError
            If pyarrow is not installed.
        """
        try:
            import pyarrow as pa
        except ImportError as error:
            raise LibraryError("Alignments.to_arrow", "pyarrow", "arrow", str(error)) from error
        records = pa.array(self.reference, mask=self.reference < 0)
        names = pa.array(self.reference_names, pa.string())
        cigars = pa.LargeListArray.from_arrays(pa.array(self.cigar_offsets), pa.array(self.cigars))
        plain = ("mapping_quality", "template_length", "mate", "score", "second_score")
        columns = {
            "name": pa.array(self.read_names, pa.string()).take(pa.array(self.read)),
            "flag": pa.array(self.flag),
            "reference": pa.DictionaryArray.from_arrays(records, names),
            "position": pa.array(self.position, mask=self.position < 0),
            "cigar": cigars,
            **{name: pa.array(getattr(self, name)) for name in (*plain, "edit_distance")},
        }
        return cast("pyarrow.Table", pa.table(columns))

    def write(
        self,
        path: PathLike,
        format: str | None = None,
        *,
        sort: bool = False,
        mark_duplicates: bool = False,
        read_group: str | None = None,
        threads: int = 1,
    ) -> None:
        """Write the alignments to a file.

        Parameters
        ----------
        path : path
            The file; its name decides whether it is SAM, BAM or CRAM.
        format : str, optional
            ``sam``, ``bam`` or ``cram``, whatever the name.
        sort, mark_duplicates, read_group
            As for `mummergpu.map`; by default the read group of reads without one is ``reads``.
        threads : int, default 1
            The number of threads that compress.

        Raises
        ------
        MummergpuError
            If the file cannot be written.
        """
        target = target_of(os.fspath(path), format, "path")
        blocks, group = self._blocks, read_group_asked(read_group, ["-"])
        if read_group is not None:
            blocks = [(block.without_groups(), columns) for block, columns in blocks]
        groups = self._input_groups if read_group is None else ()
        if groups and all(block.has_groups for block, _ in blocks):
            group = None
        elif group is not None:
            check_groups(groups, group)
        facts = AlignmentFacts(
            self._reference,
            ("-",),
            threads,
            read_group=group,
            input_groups=groups,
            sort=sort_options(sort, mark_duplicates, threads),
        )
        check_alignment_target(target, facts.sort)
        with ExitStack() as stack:
            file = stack.enter_context(OutputFile(target.path))
            place = index_path(target, self._reference, facts.sort)
            index = None if place is None else stack.enter_context(OutputFile(place))
            sink = open_alignment_sink(target, file, facts, Stats(), index)
            stack.callback(sink.close)
            for block, columns in blocks:
                told = fold(columns) if self._tells_alternatives else columns
                sink.write(sink.prepare(block, told))
            sink.finish()


def _starts(sizes: Any) -> list[int]:
    """Return the sum of the sizes before each."""
    return [0, *np.cumsum(list(sizes), dtype=np.int64).tolist()][:-1]
