"""PAF of mapped reads tells what their rows of SAM tell."""

import random

import numpy as np
from helpers.made_alignments import random_alignments, random_reference

from mummergpu.output.alignments.read_rows import ReadRows
from mummergpu.output.records.paf import AlignmentPaf

CLIPS, READ, REFERENCE = (4, 5), (0, 1, 7, 8), (0, 2, 3, 7, 8)


def plain_line(columns, row, name, size):
    """The fields of a line but for those of the record, from the CIGAR."""
    begin, end = columns.cigar_offsets[row : row + 2].tolist()
    operations = [(one & 15, one >> 4) for one in columns.cigars[begin:end].tolist()]
    aligned = [(kind, length) for kind, length in operations if kind not in CLIPS]
    bases = sum(length for kind, length in aligned if kind in READ)
    before = 0
    for kind, length in operations:
        if kind not in CLIPS:
            break
        before += length
    flag, distance = int(columns.flags[row]), int(columns.edit_distances[row])
    start = size - before - bases if flag & 16 else before
    length = sum(length for _, length in aligned)
    position = int(columns.positions[row])
    span = sum(length for kind, length in aligned if kind in REFERENCE)
    return [
        *(name, b"%d" % size, b"%d" % start, b"%d" % (start + bases)),
        b"-" if flag & 16 else b"+",
        *(b"%d" % position, b"%d" % (position + span)),
        *(b"%d" % max(0, length - distance), b"%d" % length, b"%d" % columns.qualities[row]),
        *(b"NM:i:%d" % distance, b"AS:i:%d" % columns.scores[row]),
        b"tp:A:S" if flag & 256 else b"tp:A:P",
        b"cg:Z:" + b"".join(b"%d%c" % (size, b"MIDNSHP=X"[kind]) for kind, size in aligned),
    ]


def test_lines_agree_with_cigars():
    made = random.Random(5)
    for round_ in range(20):
        reference = random_reference(made)
        case = random_alignments(made, reference, 60)
        columns, reads = case.columns, case.reads
        names, sizes = reads.name_offsets, np.diff(reads.as_written.offsets)
        piece_bytes = made.choice([1, 3000, 1 << 20])
        pieces = AlignmentPaf(reference, ReadRows(reference), piece_bytes=piece_bytes).format_block(
            reads, columns
        )
        found = [line.split(b"\t") for piece in pieces for line in piece.tobytes().splitlines(True)]
        expected = []
        for row in np.flatnonzero(columns.flags & 4 == 0).tolist():
            read = int(columns.reads[row])
            name = reads.names[names[read] : names[read + 1]].tobytes() or b"*"
            fields = plain_line(columns, row, name, int(sizes[read]))
            record = int(columns.records[row])
            own = reference.names[record], b"%d" % reference.record_lengths[record]
            expected.append([*fields[:5], *own, *fields[5:-1], fields[-1] + b"\n"])
        assert found == expected, round_
