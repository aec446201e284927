"""Alignments of reads for tests: those of a SAM file, as columns and a block of reads."""

from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import pysam

from helpers.in_memory import letters_of, offsets_of
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns, new_columns
from mummergpu.sequence.codes import decode, encode, with_margins

COMPLEMENT = bytes.maketrans(b"ACGTN", b"TGCAN")


@dataclass(frozen=True)
class AlignedReads:
    """A block of reads and its alignments."""

    reads: ReadBlock
    columns: AlignmentColumns

    def parts(self, borders):
        """Cut the block between reads; no border may lie between two mates."""
        return [self._part(first, end) for first, end in pairwise(borders)]

    def _part(self, first, end):
        reads = self.columns.reads
        columns = self.columns.taken((first <= reads) & (reads < end))
        return AlignedReads(
            self.reads.part(first, end), columns._replace(reads=columns.reads - first)
        )


def made_columns(*values):
    """Return columns of any numbers, in the order and with the types of `AlignmentColumns`."""
    types = [column.dtype for column in new_columns(0, 0)]
    return AlignmentColumns(*map(np.array, map(list, values), types))


def made_reads(reads):
    """Return reads from their names, bases, and qualities as numbers."""
    found = list(reads)
    bases = b"".join(one for _, one, _ in found)
    qualities = [b"\xff" * len(one) if own is None else own for _, one, own in found]
    return ReadBlock(
        0,
        with_margins(encode(bases)),
        offsets_of(one for _, one, _ in found),
        letters_of(name for name, _, _ in found),
        offsets_of(name for name, _, _ in found),
        base_qualities=letters_of(qualities),
    )


def reference_of(path):
    """Read a reference."""
    from mummergpu.input.reference import read_reference

    return read_reference(str(path))


def bases_of(reference, record):
    """Return the letters of a record, which are decoded once."""
    texts = vars(reference).setdefault("texts_of_tests", {})
    if record not in texts:
        begin = int(reference.record_starts[record])
        end = begin + int(reference.record_lengths[record])
        texts[record] = decode(reference.codes[begin:end])
    return texts[record]


def aligned_reads(path):
    """Return the alignments of a SAM or BAM file in which the rows of a template are neighbours.

    The first row of a read that is neither secondary nor supplementary must be its first one.
    """
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        rows = list(file.fetch(until_eof=True))
    reads = []
    numbers = []
    primary = {}
    for number, row in enumerate(rows):
        if not row.flag & 0x900:
            reads.append(_read_of(row))
            primary[row.query_name, row.flag & 0xC0] = number
        numbers.append(len(reads) - 1)
    mates = [
        primary[row.query_name, row.flag & 0xC0 ^ 0xC0] if row.flag & 1 else NO_ROW for row in rows
    ]
    cigars = [[length << 4 | kind for kind, length in row.cigartuples or []] for row in rows]

    def tags(name):
        return [row.get_tag(name) if row.has_tag(name) else 0 for row in rows]

    return AlignedReads(
        made_reads(reads),
        made_columns(
            *(numbers, [row.flag for row in rows], [row.reference_id for row in rows]),
            [row.reference_start for row in rows],
            [row.mapping_quality for row in rows],
            *(offsets_of(cigars), chain.from_iterable(cigars)),
            *([row.template_length for row in rows], mates, *map(tags, ("AS", "XS", "NM"))),
        ),
    )


def _read_of(row):
    bases = (row.query_sequence or "").encode()
    qualities = None if row.query_qualities is None else bytes(row.query_qualities)
    if row.is_reverse:
        bases = bases.translate(COMPLEMENT)[::-1]
        qualities = None if qualities is None else qualities[::-1]
    return row.query_name.encode(), bases, qualities
