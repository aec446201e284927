"""Alignments of reads as columns of numpy, as rows, as tables, and as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from mummergpu.api.log import LOG
from mummergpu.api.mapping_requests import read_group_asked
from mummergpu.api.requests import PathLike, target_asked
from mummergpu.api.tables import AlignmentRows, Scalar, SearchedReference, joined, names_of_queries
from mummergpu.errors import OptionError
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns, SamFlag, fold
from mummergpu.output.alignments.read_rows import apply_style
from mummergpu.output.formats import RowKind
from mummergpu.output.open_sink import check_targets, index_path, open_sink
from mummergpu.output.options import USUAL_STYLE, RecordStyle, SamOptions, SortOptions, check_groups
from mummergpu.output.sink import OutputContext
from mummergpu.runtime.option_values import instance, positive
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.words import pluralize

MappedBlock = tuple[ReadBlock, AlignmentColumns]


class Alignment(NamedTuple):
    """One alignment of a read, or a read without one.

    Attributes
    ----------
    name : str
        The name of the read.
    flag : int
        The flags of SAM.
    reference : str or None
        The name of the record of the reference.
    position : int
        The first base of the record that is aligned, 0-based; -1 for none.
    cigar : str
        The CIGAR as text, such as ``3S97M``; ``*`` for none.
    mapping_quality : int
        0 to 60.
    template_length : int
        The TLEN of SAM.
    mate : int
        The row of the mate; -1 for none.
    score, second_score, edit_distance : int
        The tags AS, XS and NM of SAM.
    reverse : bool
        Whether the reverse complement of the read is aligned.
    """

    name: str
    flag: int
    reference: str | None
    position: int
    cigar: str
    mapping_quality: int
    template_length: int
    mate: int
    score: int
    second_score: int
    edit_distance: int
    reverse: bool


class Alignments(AlignmentRows[Alignment]):
    """The alignments of some reads, in the order of the reads: a row for each.

    An unmapped read has a row, too. Secondary alignments have rows with flag 256, if they were
    requested. Rows, slices and masks are those of `Matches`.

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
        `cigar` returns the text of a row.
    template_length : ndarray, dtype=int32, shape=(n_rows,)
        The TLEN of SAM.
    mate : ndarray, dtype=int64, shape=(n_rows,)
        The row of the mate; -1 for none, or if it is not among these rows.
    score, second_score, edit_distance : ndarray, dtype=int32, shape=(n_rows,)
        The tags AS, XS and NM of SAM.

    Examples
    --------
    >>> import mummergpu
    >>> bases = "ACGTTGCATTAGCAGGATCCATTGACCAGTCAATCGGATTCCGATAGCAATTCGGACTTAC"
    >>> index = mummergpu.Index.build([("chr", bases)], min_length=16)
    >>> found = index.map([("one", bases[5:45]), ("none", "ACGT")])
    >>> found
    <mummergpu.Alignments: 2 rows, 1 of them mapped>
    >>> found[0].position, found[0].cigar, found[found.flag & 4 != 0][0].name
    (5, '40M', 'none')
    """

    _row = Alignment
    _names: ClassVar = {"name": ("read", "read_names"), "reference": ("reference", "_record_names")}
    _can_lack = ("position",)

    def __init__(
        self,
        blocks: Sequence[MappedBlock],
        searched: SearchedReference,
        writes_xa: bool = False,
        input_groups: Sequence[bytes] = (),
        cuts_templates: bool = False,
    ) -> None:
        self._blocks = list(blocks)
        self._searched = searched
        self._writes_xa = writes_xa
        self._input_groups = input_groups
        self._cuts_templates = cuts_templates
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
        kind: type[Scalar],
        starts: Sequence[int] | None = None,
    ) -> npt.NDArray[Scalar]:
        """Return a column of all blocks, to which the start of each block is added."""
        parts = [column(found) for _, found in self._blocks]
        if starts is not None:
            parts = [part + start for part, start in zip(parts, starts, strict=True)]
        return joined(parts, kind)

    @cached_property
    def read_names(self) -> list[str]:
        """The names of the reads, also of those without a row; mates have the same."""
        return [name for block, _ in self._blocks for name in names_of_queries(block)]

    @property
    def read_lengths(self) -> npt.NDArray[np.int64]:
        """The bases of each read: ndarray, dtype=int64, shape=(n_reads,)."""
        return joined([np.diff(block.as_written.offsets) for block, _ in self._blocks], np.int64)

    @cached_property
    def reverse(self) -> npt.NDArray[np.bool_]:
        """Whether the reverse complement is aligned: ndarray, dtype=bool, shape=(n_rows,)."""
        return (self.flag & int(SamFlag.REVERSE)).astype(np.bool_)

    def __len__(self) -> int:
        return self.flag.size

    def __repr__(self) -> str:
        mapped = int((self.flag & 4 == 0).sum())
        return f"<mummergpu.Alignments: {pluralize(len(self), 'row')}, {mapped:,} of them mapped>"

    def write(
        self,
        path: PathLike,
        format: str | None = None,
        *,
        sort: bool = False,
        mark_duplicates: bool = False,
        read_group: str | None = None,
        threads: int = 1,
        style: RecordStyle | None = None,
    ) -> None:
        """Write the alignments to a file.

        Parameters
        ----------
        path : path
            The file; its name chooses SAM, BAM, CRAM or PAF.
        format : str, optional
            ``sam``, ``bam``, ``cram`` or ``paf``; overrides the name.
        sort, mark_duplicates, read_group
            As for `mummergpu.map`; by default the read group of reads without one is ``reads``.
        threads : int, default 1
            The number of threads that compress.
        style : RecordStyle, optional
            Options of the records, as for `mummergpu.map`.

        Raises
        ------
        MummergpuError
            If the file cannot be written, or a selection has only some rows of a read and its
            mate: each record refers to the others.
        """
        target, count = target_asked(path, format, RowKind.READS), positive("threads", threads)
        style = instance("style", USUAL_STYLE if style is None else style, RecordStyle)
        style.check_formats([target.format])
        if self._cuts_templates:
            text = (
                "a read, or its mate, has rows that are not selected, and its records refer to them"
            )
            raise OptionError("write", f"{text}; write all rows, or select all of a template")
        reference, blocks = self._searched.reference, self._blocks
        groups, group = self._input_groups, read_group_asked(read_group)
        if read_group is not None:
            blocks = [(block.without_groups(), columns) for block, columns in blocks]
            groups = ()
        if groups and all(block.has_groups for block, _ in blocks):
            group = None
        elif group is not None:
            check_groups(groups, group)
        facts = OutputContext(
            reference,
            ("-",),
            count,
            sam=SamOptions(group),
            checksums=reference.checksums,
            input_groups=[*groups, *style.header_bytes],
            records=style,
            sort=SortOptions(sort, mark_duplicates, threads=count).if_any,
            warn=LOG.warning,
        )
        check_targets([target], None, facts.sort)
        with ExitStack() as stack:
            file = stack.enter_context(OutputFile(target.path))
            place = index_path(target, reference, facts.sort)
            index = None if place is None else stack.enter_context(OutputFile(place))
            sink = open_sink([target], [file], facts, Stats(), RowKind.READS, [index])
            stack.callback(sink.close)
            for block, columns in blocks:
                told = fold(columns) if self._writes_xa else columns
                sink.write(sink.prepare(block, apply_style(told, block, reference, style)))
            sink.finish()

    def _part(self, key: slice | npt.NDArray[np.bool_]) -> Alignments:
        masks = self._masks(key, [columns.row_count for _, columns in self._blocks])
        cuts, blocks = self._cuts_templates, []
        for (block, columns), mask in zip(self._blocks, masks, strict=True):
            templates = columns.reads // (2 if block.paired else 1)
            counts = np.bincount(templates), np.bincount(templates, mask)
            cuts = cuts or bool(((counts[1] > 0) & (counts[1] < counts[0])).any())
            blocks.append((block, columns.taken(mask)))
        return Alignments(*(blocks, self._searched, self._writes_xa, self._input_groups, cuts))


def _starts(sizes: Any) -> list[int]:
    """Return the sum of the sizes before each."""
    return [0, *np.cumsum(list(sizes), dtype=np.int64).tolist()][:-1]
