"""The differences of genome alignments as VCF, one row for each.

The rows are sorted by record and position. A row is a difference (`find_differences`): REF and ALT
are its bases, with the base before an insertion or deletion. Several alignments may have the same
one; it has one row then, with the first alignment in the order of the queries. Other
alignments that cover the position do not take it away, but FILTER marks them: ``PASS`` is for
differences that one alignment alone covers, in the reference and in the query (what ``show-snps
-C`` selects). With alignments that map one to one almost all are of this kind.

INFO has the name of the query, the position of the first base of ALT in it, 1-based on its forward
strand, and the strand, under the names that ``paftools.js call`` gives them. The genotype is that
of one copy, and the sample is named by the file of the queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.output.bytes.number_text import MOST_DIGITS, put_one_number, put_tab
from mummergpu.output.bytes.texts import (
    OVERSHOOT,
    RecordTexts,
    TextArray,
    put_text,
    store,
    texts_of,
)
from mummergpu.output.genomes.differences import Differences, find_differences
from mummergpu.output.genomes.sink import AlignedQueries
from mummergpu.output.options import usual_read_group
from mummergpu.output.records.header import check_records
from mummergpu.output.sink import Format
from mummergpu.runtime.arrays import BoolArray, ByteArray, Int64Array
from mummergpu.runtime.jit import inline, jit, writable
from mummergpu.sequence.codes import BASES, MARGIN, CodeArray
from mummergpu.version import __version__

_LETTERS: Final = np.frombuffer(BASES, dtype=np.uint8)
_NO_ID: Final = np.frombuffer(b"\t.\t\0", dtype="<u4")[0]
_PASSED: Final = np.frombuffer(b"PASS\t\0\0\0", dtype="<u8")[0]
_AMBIGUOUS: Final = np.frombuffer(b"ambiguou", dtype="<u8")[0]
_AMBIGUOUS_END: Final = np.frombuffer(b"s\t", dtype="<u2")[0]
_NAME: Final = np.frombuffer(b"QNAME=\0\0", dtype="<u8")[0]
_START: Final = np.frombuffer(b";QSTART=", dtype="<u8")[0]
_STRAND: Final = np.frombuffer(b";QSTRAND", dtype="<u8")[0]
_FORWARD: Final = np.frombuffer(b"=+\tGT\t1\n", dtype="<u8")[0]
_REVERSE: Final = np.frombuffer(b"=-\tGT\t1\n", dtype="<u8")[0]

ROW_BYTES: Final = 2 * MOST_DIGITS + len(
    "\t\t.\t\t\t.\tambiguous\tQNAME=;QSTART=;QSTRAND=+\tGT\t1\n"
)
"""The most bytes of a row besides names and bases."""


def _order_rows(found: Differences) -> Int64Array:
    """Return the order of differences in VCF, without those that repeat another one."""
    order = np.lexsort((np.diff(found.offsets), found.reference_lengths, found.positions))
    return order[: _sort_and_drop(order, found)]


@inline
def _compare(one: int, other: int, found: Differences) -> int:
    """Return whether the bases of a difference come before those of one as long, or after."""
    begin, other_begin = found.offsets[one], found.offsets[other]
    for base in range(found.offsets[one + 1] - begin):
        code = found.alternatives[begin + base]
        other_code = found.alternatives[other_begin + base]
        if code != other_code:
            return -1 if code < other_code else 1
    return 0


@jit
def _sort_and_drop(order: Int64Array, found: Differences) -> int:
    """Sort rows that differ in their bases only, and drop equal ones; return how many are left."""
    positions, lengths, offsets = found.positions, found.reference_lengths, found.offsets
    kept = 0
    group = 0
    # The rows before `kept` are in order, and those from `group` on differ in their bases only.
    for place in range(order.size):
        row = order[place]
        first = order[group] if group < kept else row
        is_new = (
            positions[first] != positions[row]
            or lengths[first] != lengths[row]
            or offsets[first + 1] - offsets[first] != offsets[row + 1] - offsets[row]
        )
        if is_new:
            group = kept
        at = kept
        relation = 1
        while at > group:
            relation = _compare(order[at - 1], row, found)
            if relation <= 0:
                break
            at -= 1
        if at > group and relation == 0:
            continue
        for later in range(kept, at, -1):
            order[later] = order[later - 1]
        order[at] = row
        kept += 1
    return kept


class VcfRows(NamedTuple):
    """What the loop needs to write rows; `records` has the record of each difference.

    The codes of the reference have margins, the starts of its records do not count them.
    """

    found: Differences
    records: Int64Array
    padded_codes: CodeArray
    record_starts: Int64Array
    record_names: RecordTexts
    query_names: RecordTexts


@inline
def _put_bases(text: TextArray, at: int, codes: CodeArray, begin: int, end: int) -> int:
    """Write bases; return where they end."""
    for place in range(begin, end):
        text[at] = _LETTERS[codes[place]]
        at += 1
    return at


@jit
def write_rows(text: TextArray, order: Int64Array, is_ambiguous: ByteArray, rows: VcfRows) -> int:
    """Write the rows of `order`, `is_ambiguous` or not; return where they end."""
    found = rows.found
    at = 0
    for place in range(order.size):
        row = order[place]
        record, position = rows.records[row], found.positions[row]
        at = put_tab(text, put_text(text, at, rows.record_names, record))
        at = put_one_number(text, at, position - rows.record_starts[record] + 1)
        store(text, at, _NO_ID)
        begin = position + MARGIN
        end = begin + found.reference_lengths[row]
        at = put_tab(text, _put_bases(text, at + 3, rows.padded_codes, begin, end))
        begin, end = found.offsets[row], found.offsets[row + 1]
        at = _put_bases(text, at, found.alternatives, begin, end)
        store(text, at, _NO_ID)
        at += 3
        # Differences that several alignments cover are kept, and marked.
        if is_ambiguous[place]:
            store(text, at, _AMBIGUOUS)
            store(text, at + 8, _AMBIGUOUS_END)
            at += 10
        else:
            store(text, at, _PASSED)
            at += 5
        store(text, at, _NAME)
        at = put_text(text, at + 6, rows.query_names, found.queries[row])
        store(text, at, _START)
        at = put_one_number(text, at + 8, found.query_positions[row] + 1)
        store(text, at, _STRAND)
        store(text, at + 8, _REVERSE if found.strands[row] else _FORWARD)
        at += 16
    return at


_ROWS_OF_PIECE: Final = 1 << 16

_FIELDS: Final = (
    '##FILTER=<ID=ambiguous,Description="Another alignment covers the position in the reference '
    'or in the query">',
    '##INFO=<ID=QNAME,Number=1,Type=String,Description="Query">',
    '##INFO=<ID=QSTART,Number=1,Type=Integer,Description="Position of the first base of ALT on the '
    'forward strand of the query">',
    '##INFO=<ID=QSTRAND,Number=1,Type=String,Description="Strand of the query">',
    '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
)

_RESERVED: Final = re.compile(rb"[\x00-\x20%,:;=\x7f]")
"""What a value of INFO may not contain."""


class GenomeVcf(Format[AlignedQueries, GenomeAlignments]):
    """Turns genome alignments into the VCF of their differences.

    All differences wait for the last query, because the rows are sorted: some 70 bytes of memory
    for each, and the names of the queries. `InputError` if the format allows no record of such a
    name or length in a reference.
    """

    def __init__(self, reference: Reference, query_paths: tuple[str, ...]) -> None:
        check_records(reference, "VCF")
        self._reference = reference
        self._sample = usual_read_group(query_paths).name
        self._names: list[bytes] = []
        self._blocks: list[Differences] = []
        self._extents: list[tuple[Int64Array, Int64Array, Int64Array, Int64Array]] = []
        self._query_bases = 0
        self._query_offsets: list[Int64Array] = []

    @property
    def needs_bases(self) -> bool:
        """True: the rows have the bases of the queries."""
        return True

    def head(self) -> bytes:
        """Return the header, with the records that have bases."""
        reference = self._reference
        path = re.sub(r"[\x00-\x1f\x7f]", " ", reference.path)
        lines = ["##fileformat=VCFv4.2", f"##source=mummergpu {__version__}", f"##reference={path}"]
        lengths = reference.record_lengths.tolist()
        lines += [
            f"##contig=<ID={name.decode(errors='surrogateescape')},length={length}>"
            for name, length in zip(reference.names, lengths, strict=True)
            if length > 0
        ]
        lines += _FIELDS
        columns = "CHROM POS ID REF ALT QUAL FILTER INFO FORMAT"
        lines.append("#" + "\t".join([*columns.split(), self._sample]))
        return "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")

    def format_block(self, queries: AlignedQueries, _rows: GenomeAlignments) -> Iterator[bytes]:
        """Keep the differences of some queries (`Format.format_block`)."""
        columns = queries.alignments
        found = find_differences(queries, self._reference)
        first = len(self._names)
        self._names += [_RESERVED.sub(_escaped, name) or b"." for name in queries.names]
        self._blocks.append(found._replace(queries=found.queries + first))
        # Queries, as records, lie one after the other, so that a base has one number.
        offsets = self._query_bases + np.concatenate(([0], np.cumsum(queries.lengths)))
        self._query_bases = int(offsets[-1])
        self._query_offsets.append(offsets[:-1])
        begins, ends = (end + offsets[columns.queries] for end in queries.forward_ends())
        starts = self._reference.record_starts[columns.records]
        self._extents.append(
            (columns.reference_starts + starts, columns.reference_ends + starts, begins, ends)
        )
        return iter(())

    def tail(self) -> Iterator[bytes]:
        """Yield the rows."""
        if not self._blocks:
            return
        found = _joined(self._blocks)
        self._blocks.clear()
        reference = self._reference
        order = _order_rows(found)
        is_ambiguous = self._are_ambiguous(found)[order].astype(np.uint8)
        rows = VcfRows(
            found,
            np.searchsorted(reference.record_starts, found.positions, side="right") - 1,
            writable(reference.padded_codes),
            writable(reference.record_starts),
            texts_of(reference.names),
            texts_of(self._names),
        )
        sizes = found.reference_lengths + np.diff(found.offsets) + ROW_BYTES
        sizes += np.diff(rows.record_names.offsets)[rows.records]
        sizes += np.diff(rows.query_names.offsets)[found.queries]
        for begin in range(0, order.size, _ROWS_OF_PIECE):
            own = order[begin : begin + _ROWS_OF_PIECE]
            text = np.empty(int(sizes[own].sum()) + OVERSHOOT, dtype=np.uint8)
            filled = write_rows(text, own, is_ambiguous[begin : begin + own.size], rows)
            # Wide stores are not among what numba checks.
            assert filled <= text.size - OVERSHOOT
            yield text[:filled].tobytes()

    def _are_ambiguous(self, found: Differences) -> BoolArray:
        """Return which differences several alignments cover."""
        begins, ends, query_begins, query_ends = map(
            np.concatenate, zip(*self._extents, strict=True)
        )
        query_places = np.concatenate(self._query_offsets)[found.queries] + found.query_positions
        several = _coverage(begins, ends, found.positions) > 1
        several |= _coverage(query_begins, query_ends, query_places) > 1
        return several


def _coverage(begins: Int64Array, ends: Int64Array, places: Int64Array) -> Int64Array:
    """Return how many of some ranges have each place."""
    begun = np.searchsorted(np.sort(begins), places, side="right")
    covering: Int64Array = begun - np.searchsorted(np.sort(ends), places, side="right")
    return covering


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"%%%02X" % found[0][0]


def _joined(blocks: list[Differences]) -> Differences:
    """Return the differences of several blocks."""
    sizes = np.concatenate([np.diff(block.offsets) for block in blocks])
    columns: list[Any] = [np.concatenate(column) for column in zip(*blocks, strict=True)]
    return Differences(*columns)._replace(offsets=np.concatenate(([0], np.cumsum(sizes))))
