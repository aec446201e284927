"""What the formats of alignments share: rows that a compiled loop writes in pieces, and a header.

Matches, reads and genomes come with their own kinds of blocks; a `RowMaker` turns each into the
same rows (`rows.WrittenRows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from mummergpu.input.records.record_arrays import Spans
from mummergpu.input.reference import Reference
from mummergpu.output.bytes.text_arrays import texts_of
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray
from mummergpu.output.records.header import AlignmentHead, check_queries, sam_header
from mummergpu.output.records.rows import RecordBlock, ReferenceColumns, RowMaker
from mummergpu.output.sink import PieceFormat
from mummergpu.runtime.jit import flattened, writable
from mummergpu.sequence.codes import MARGIN, longest_of

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
            text = self._pool.room_for(max(int(state[NEEDED_BYTES]), self._pool.piece_bytes))
            if filled := write(text, state, *arguments):
                # Wide stores are not among what numba checks.
                assert filled <= text.size - OVERSHOOT
                yield first, int(state[NEXT_ROW]), text[:filled]


class RecordFormat(AlignmentFormat):
    """What SAM and BAM share.

    Parameters
    ----------
    group_tag : bytes
        The tag of the read group, with ``%b`` for its name.
    path : str
        The files of the reads, for errors.

    Raises
    ------
    InputError
        If the format allows no record of such a name or length in a reference.
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
        self, block: Any, alignments: Any, turned: Callable[[Spans], Spans] = lambda tags: tags
    ) -> Iterator[tuple[RecordBlock, int]]:
        """Yield rows of a block for a compiled loop, and how many; `turned` makes tags its own.

        Raises
        ------
        InputError
            If the format allows no read of such a name or length.
        """
        made = None
        for written in self._source.written_rows(block, alignments):
            # All pieces have the same arrays; only matches have several.
            if made is None:
                check_queries(written.reads, self._path)
                longest = longest_of(written.reads.offsets) if self._source.fields.bases else 0
                made = flattened(
                    RecordBlock(
                        *(written.reads.with_tags(turned), written.rows, written.others),
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
