"""The rows of SAM, BAM, CRAM and PAF as arrays, and the loop over their pieces.

Matches, reads and genomes come with their own kinds of blocks; a `RowMaker` turns each into the
same rows (`WrittenRows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.records.record_arrays import Spans
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import SamFlag
from mummergpu.output.bytes.texts import OVERSHOOT, QueryColumns, RecordTexts, TextArray, texts_of
from mummergpu.output.records.header import AlignmentHead, sam_header
from mummergpu.output.records.sam_fields import HARD_CLIP, TAKES_REFERENCE, ReferenceLetters
from mummergpu.output.sink import PieceFormat
from mummergpu.runtime.arrays import ByteArray, Int32Array, Int64Array, UInt16Array, UInt32Array
from mummergpu.runtime.jit import as_index, as_int64, flattened, inline, jit, writable
from mummergpu.sequence.codes import MARGIN, CodeArray

UNMAPPED: Final = int(SamFlag.UNMAPPED)
REVERSE: Final = int(SamFlag.REVERSE)
SECONDARY: Final = int(SamFlag.SECONDARY)
SUPPLEMENTARY: Final = int(SamFlag.SUPPLEMENTARY)

MATCH_OPERATIONS: Final = 3
"""The operations of a row that is a match: a clip, the match, and a clip, some without bases."""

NO_QUALITY: Final = 0xFF
"""The quality of every base of a read that came without qualities."""


_NO_BYTES: Final = np.empty(0, dtype=np.uint8)
_NO_OFFSETS: Final = np.empty(0, dtype=np.int64)


class ReadColumns(NamedTuple):
    """The reads or queries of a block, as they are written.

    Each begins at its offset, and so does its name. `codes` have margins, and are empty if no row
    shall have bases; `has_letters` says whether letters that stand for several bases are among them
    (`codes.LETTERS`). `qualities` are Phred numbers, or `NO_QUALITY`; empty if no read has any.
    `tags` are those that the reads came with, as the format has them; `tag_offsets` are empty if
    there are none at all.
    """

    offsets: Int64Array
    names: TextArray
    name_offsets: Int64Array
    codes: CodeArray
    qualities: ByteArray = _NO_BYTES
    has_letters: bool = False
    tags: TextArray = _NO_BYTES
    tag_offsets: Int64Array = _NO_OFFSETS

    def with_tags(self, convert: Callable[[Spans], Spans]) -> ReadColumns:
        """Return the same reads with their tags in another form."""
        tags = convert(Spans(self.tags, self.tag_offsets))
        return self._replace(tags=writable(tags.content), tag_offsets=writable(tags.offsets))


NO_HITS: Final = np.empty(0, dtype=np.uint32)
"""For rows without NH and HI."""


class RecordRows(NamedTuple):
    """Alignments as rows, those of a read together (`AlignmentColumns`).

    Operations without bases are not written. `part_offsets` and `part_cigars` are the CIGARs that
    SA has, which may be the rows' own. `second_scores` are the best scores of other places (XS),
    and `hit_counts` and `hit_numbers` how many alignments there are of the read and the number of
    this one (NH, HI): empty if the rows do not have these tags.
    """

    reads: Int64Array
    flags: UInt16Array
    records: Int32Array
    positions: Int64Array
    qualities: ByteArray
    cigar_offsets: Int64Array
    cigars: UInt32Array
    part_offsets: Int64Array
    part_cigars: UInt32Array
    template_lengths: Int32Array
    mate_rows: Int64Array
    scores: Int32Array
    second_scores: Int32Array
    edit_distances: Int32Array
    hit_counts: UInt32Array = NO_HITS
    hit_numbers: UInt32Array = NO_HITS


class OtherPlaces(NamedTuple):
    """The alternatives of rows, for their tag XA.

    `offsets` say where those of each row begin: shape=(n_rows + 1,), or (0,) if there are none at
    all.
    """

    offsets: Int64Array
    flags: UInt16Array
    records: Int32Array
    positions: Int64Array
    cigar_offsets: Int64Array
    cigars: UInt32Array
    edit_distances: Int32Array


NO_TEXTS: Final = RecordTexts(np.zeros(OVERSHOOT, np.uint8), np.zeros(0, np.int64))

NO_PLACES: Final = OtherPlaces(
    np.empty(0, dtype=np.int64),
    np.empty(0, dtype=np.uint16),
    np.empty(0, dtype=np.int32),
    np.empty(0, dtype=np.int64),
    np.zeros(1, dtype=np.int64),
    np.empty(0, dtype=np.uint32),
    np.empty(0, dtype=np.int32),
)


class RowFields(NamedTuple):
    """The fields in which rows of reads, genomes and matches differ.

    `bases` and `secondary_bases` say whether (secondary) rows have bases, `mismatches` whether they
    have the tag MD, `types` and `divergences` the tags tp and de. Rows of exact `matches` have NH,
    HI and `MATCH_OPERATIONS`. They have no mates, other parts, alternatives, qualities or tags of
    reads, and the columns of these are not read. With `splits_as_secondary`, supplementary rows
    get the flag of secondary ones.
    """

    bases: bool = True
    secondary_bases: bool = False
    mismatches: bool = True
    matches: bool = False
    splits_as_secondary: bool = False
    types: bool = False
    divergences: bool = False


@inline
def fields_of_matches(secondary_bases: bool) -> RowFields:
    """Return the fields of matches. To their compiled caller, all but the one are constants."""
    return RowFields(True, secondary_bases, False, True, False, False, False)


class WrittenRows(NamedTuple):
    """The rows of a block, with their reads, alternatives and differences.

    There are `row_count` rows; the columns may have room for more. `has_groups` says that the tags
    of the reads name their read groups, in place of the header's one for all. `changes` are the
    differences of each row as the tag cs has them; without offsets if nothing asks for them.
    """

    reads: ReadColumns
    rows: RecordRows
    others: OtherPlaces
    row_count: int
    has_groups: bool = False
    changes: RecordTexts = NO_TEXTS


class RowMaker(Protocol):
    """Turns blocks and their alignments into rows."""

    @property
    def needs_bases(self) -> bool:
        """Whether blocks of genomes must keep the bases of their queries."""

    @property
    def fields(self) -> RowFields:
        """The fields of the rows in SAM and BAM."""

    def written_rows(self, block: Any, alignments: Any) -> Iterator[WrittenRows]:
        """Yield the rows of a block in pieces.

        All pieces share the arrays of the first one, which are filled again.
        """


class ReferenceColumns(NamedTuple):
    """The codes of the reference with margins, and where each record begins without the margin.

    `letters` are those that stand for several bases.
    """

    codes: CodeArray
    starts: Int64Array
    letters: ReferenceLetters

    @classmethod
    def of(cls, reference: Reference) -> ReferenceColumns:
        """Return a reference for a compiled loop."""
        letters = reference.letters
        return cls(
            writable(reference.padded_codes),
            writable(reference.record_starts),
            (writable(letters.positions), writable(letters.codes)),
        )


class RecordBlock(NamedTuple):
    """What a compiled loop needs to write the rows of a block.

    `oriented` is room for the codes of a read on the strand of the reference, with margins.
    `record_ids` are the numbers of the records in the header (`header.SamHeader`), and `names`
    their names, each with a tab, of at most `name_bytes`. `group` is the tag of the read group,
    with `OVERSHOOT` bytes after it.
    """

    reads: ReadColumns
    rows: RecordRows
    others: OtherPlaces
    oriented: CodeArray
    reference: ReferenceColumns
    record_ids: Int32Array
    names: RecordTexts
    name_bytes: int
    group: TextArray
    changes: RecordTexts


@inline
def written_flag(rows: RecordRows, fields: RowFields, row: int) -> int:
    """Return the flags of a row as SAM and BAM have them."""
    flag = as_int64(rows.flags[as_index(row)])
    if fields.splits_as_secondary and flag & SUPPLEMENTARY:
        # The row keeps its bases and SA, as from bwa mem -M.
        flag = flag & ~SUPPLEMENTARY | SECONDARY
    return flag


@inline
def spans_of(cigars: UInt32Array, begin: int, end: int) -> tuple[int, int, int]:
    """Return the span of a CIGAR on the reference, and the hard clips at both ends."""
    reference_bases, before, after = 0, 0, 0
    for place in range(begin, end):
        operation = as_int64(cigars[as_index(place)])
        kind, length = operation & 15, operation >> 4
        reference_bases += length * (TAKES_REFERENCE >> kind & 1)
        if kind == HARD_CLIP:
            if place == begin:
                before = length
            else:
                after = length
    return reference_bases, before, after


@inline
def rows_of_read(reads: Int64Array, flags: UInt16Array, row: int) -> tuple[int, int]:
    """Return the rows of the read of a row, as a half-open range; of a secondary row, only itself.

    A read may have thousands of secondary rows, and none of them names the others.
    """
    read = reads[as_index(row)]
    first, end = row, row + 1
    if flags[as_index(row)] & SECONDARY:
        return first, end
    while first > 0 and reads[as_index(first - 1)] == read:
        first -= 1
    while end < reads.size and reads[as_index(end)] == read:
        end += 1
    return first, end


NEXT_ROW, END_ROW, NEEDED_BYTES, NEXT_BASE = 0, 1, 2, 3
"""The elements of the state between two pieces: the row to go on with, where the rows end, the
bytes that a text must have for the next one, and the first of its bases that is not written."""

STATE_SIZE: Final = 4


class AlignmentFormat(PieceFormat[Any, Any]):
    """A format of alignments that a compiled loop fills, piece by piece."""

    def __init__(self, source: RowMaker, piece_bytes: int) -> None:
        super().__init__(piece_bytes)
        self._source = source

    @property
    def needs_bases(self) -> bool:
        """Whether blocks of genomes must keep the bases of their queries."""
        return self._source.needs_bases

    def _pieces(
        self, row_count: int, write: Callable[..., int], *arguments: Any
    ) -> Iterator[tuple[int, int, TextArray]]:
        """Yield pieces of the text of some rows, with the half-open range of the rows of each.

        `write` gets a text, the state, and the arguments.
        """
        state = np.zeros(STATE_SIZE, dtype=np.int64)
        state[END_ROW] = row_count
        while (first := int(state[NEXT_ROW])) < row_count:
            text = self._piece(
                int(state[NEEDED_BYTES]), lambda text: write(text, state, *arguments)
            )
            if text.size:
                yield first, int(state[NEXT_ROW]), text


class RecordFormat(AlignmentFormat):
    """What SAM and BAM share.

    `group_tag` is the tag of the read group, with ``%b`` for its name, and `path` the files of the
    reads, for errors. `InputError` if the format allows no record of such a name or length.
    """

    def __init__(
        self,
        reference: Reference,
        source: RowMaker,
        head: AlignmentHead,
        group_tag: bytes,
        path: str,
        piece_bytes: int,
    ) -> None:
        super().__init__(source, piece_bytes)
        group = head.read_group
        tag = b"" if group is None else group_tag % group.name.encode()
        self._header = sam_header(reference, head)
        self._path = path
        self._reference = ReferenceColumns.of(reference)
        self._record_ids = writable(self._header.record_ids)
        self._names = texts_of(name + b"\t" for name in reference.names)
        self._name_bytes = max(map(len, reference.names))
        self._group, self._no_group = _padded(tag), _padded(b"")

    def _record_blocks(
        self, block: Any, alignments: Any, convert: Callable[[Spans], Spans] = lambda tags: tags
    ) -> Iterator[tuple[RecordBlock, int]]:
        """Yield rows of a block for a compiled loop, and how many; `convert` changes the tags.

        `InputError` if the format allows no read of such a name or length.
        """
        made = None
        for written in self._source.written_rows(block, alignments):
            # All pieces have the same arrays; only matches have several.
            if made is None:
                longest = check_reads(written.reads, self._path)
                longest = longest if self._source.fields.bases else 0
                made = flattened(
                    RecordBlock(
                        *(written.reads.with_tags(convert), written.rows, written.others),
                        np.empty(longest + 2 * MARGIN, dtype=np.uint8),
                        *(self._reference, self._record_ids),
                        *(self._names, self._name_bytes),
                        self._no_group if written.has_groups else self._group,
                        written.changes,
                    )
                )
            yield made, written.row_count


def _padded(text: bytes) -> TextArray:
    """Return a text with `OVERSHOOT` bytes after it, as an array."""
    return np.frombuffer(bytearray(text) + bytes(OVERSHOOT), dtype=np.uint8)


MOST_NAME_BYTES: Final = 254
"""The most bytes of the name of a query (section 1.4)."""

MOST_QUERY_BASES: Final = (1 << 28) - 1
"""The most bases of a query: the length of an operation of a CIGAR has 28 bits in BAM (section
4.2), and htslib refuses more in SAM too."""

_FIRST_PRINTED: Final = ord("!")
_LAST_PRINTED: Final = ord("~")
_AT_SIGN: Final = ord("@")
"""The bytes of names (section 1.4)."""


def check_reads(block: ReadColumns | QueryColumns, path: str) -> int:
    """Refuse reads or queries that SAM cannot describe; return the length of the longest.

    Empty names are accepted: ``*`` stands for them.
    """
    names, longest = block.names, np.zeros(2, dtype=np.int64)
    place = measure_reads(block.offsets, names, block.name_offsets, longest)
    if longest[0] > MOST_QUERY_BASES:
        lengths = np.diff(block.offsets)
        name = _name_of(block, int(np.argmax(lengths > MOST_QUERY_BASES)))
        raise InputError(f"SAM has queries of at most {MOST_QUERY_BASES:,} bases", path, None, name)
    if longest[1] > MOST_NAME_BYTES:
        sizes = np.diff(block.name_offsets)
        name = _name_of(block, int(np.argmax(sizes > MOST_NAME_BYTES)))
        raise InputError(f"SAM allows names of at most {MOST_NAME_BYTES} bytes", path, None, name)
    if place >= 0:
        query = int(np.searchsorted(block.name_offsets, place, side="right")) - 1
        name = _name_of(block, query)
        if names[place] == _AT_SIGN:
            raise InputError("SAM allows no name that begins with '@'", path, None, name)
        raise InputError(f"SAM allows no byte {int(names[place])} in a name", path, None, name)
    return int(longest[0])


@jit
def measure_reads(
    offsets: Int64Array, names: ByteArray, name_offsets: Int64Array, longest: Int64Array
) -> int:
    """Return where a byte is that SAM does not allow there in a name; -1 if there is none.

    `longest` receives the lengths of the longest read and of the longest name.
    """
    for read in range(offsets.size - 1):
        longest[0] = max(longest[0], offsets[read + 1] - offsets[read])
        longest[1] = max(longest[1], name_offsets[read + 1] - name_offsets[read])
    for place in range(names.size):
        byte = names[place]
        if byte < _FIRST_PRINTED or byte > _LAST_PRINTED:
            return place
    for query in range(name_offsets.size - 1):
        begin = name_offsets[query]
        if begin < name_offsets[query + 1] and names[begin] == _AT_SIGN:
            return as_int64(begin)
    return -1


def _name_of(block: ReadColumns | QueryColumns, query: int) -> str:
    begin, end = block.name_offsets[query : query + 2].tolist()
    return block.names[begin:end].tobytes().decode(errors="backslashreplace")
