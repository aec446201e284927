"""Random alignments of reads, and a slow and plain maker of their lines of SAM."""

from dataclasses import dataclass

import numpy as np

from helpers.alignments import COMPLEMENT, AlignedReads, bases_of, made_columns, made_reads
from helpers.in_memory import named_records, offsets_of
from mummergpu.mapping.alignments.columns import NO_RECORD, NO_ROW, SamFlag
from mummergpu.sequence.codes import decode

Operations = list[tuple[int, str]]
LETTERS = "MIDNSH"


@dataclass
class Row:
    """An alignment while it is made."""

    read: int
    flag: int
    record: int = NO_RECORD
    position: int = -1
    quality: int = 0
    cigar: Operations = ()
    template: int = 0
    mate: int = NO_ROW
    score: int = 0
    second: int = 0
    distance: int = 0


def random_reference(made, letters=b"ACGTACGTACGTN"):
    """Return a reference of some records."""
    return named_records(
        (b"r%d" % number + b"x" * made.choice([0, 1, 40]), bytes(made.choices(letters, k=size)))
        for number, size in enumerate(made.choices([40, 300, 1000], k=made.randint(1, 4)))
    )


def random_alignments(made, reference, templates, longest=130):
    """Return alignments that a mapper could make, and some that only the columns allow."""
    reads = []
    rows = []
    for template in range(templates):
        name = b"t%d" % template + b"y" * made.choice([0, 3, 60])
        paired = made.random() < 0.7
        primaries = []
        for mate in range(1 + paired):
            flag = (1 | 64 << mate) if paired else 0
            own, bases = _rows_of_read(made, reference, len(reads), flag, longest)
            primaries.append(len(rows))
            rows += own
            with_qualities = made.random() < 0.8
            # The letter of 9 is a star, which in a read of one base stands for no quality.
            numbers = bytes(made.choice([0, 2, made.randint(10, 93)]) for _ in bases)
            reads.append((name, bases, numbers if with_qualities else None))
        if paired:
            _join(made, rows, primaries)
    return AlignedReads(made_reads(reads), _columns(rows))


def _rows_of_read(made, reference, read, flag, longest):
    """Return the rows of a read, and its bases."""
    kind = made.random()
    if kind < 0.15:
        size = made.choice([0, 1, made.randint(1, longest)])
        return [Row(read, flag | SamFlag.UNMAPPED)], bytes(made.choices(b"ACGTN", k=size))
    record = made.choice(
        [one for one, size in enumerate(reference.record_lengths.tolist()) if size >= 40]
    )
    first, bases = _placed(made, reference, read, flag, record, made.randint(1, min(longest, 300)))
    rows = [first]
    if flag & SamFlag.REVERSE or first.flag & SamFlag.REVERSE:
        bases = bases.translate(COMPLEMENT)[::-1]
    for _ in range(made.choice([0, 0, 0, 1, 1, 2, 3])):
        rows.append(_other_row(made, reference, read, flag, len(bases)))
    for row in rows:
        # Distances are made up, but a row without one has equal bases.
        if row.distance == 0 and not _are_equal(row, bases, bases_of(reference, row.record)):
            row.distance = 1
    return rows, bases


def _placed(made, reference, read, flag, record, size):
    """Return an alignment and the bases of its read on the strand of the reference."""
    text = bases_of(reference, record)
    cigar = []
    bases = bytearray()
    if made.random() < 0.3:
        cigar.append((made.randint(1, 30), "S"))
        bases += bytes(made.choices(b"ACGTN", k=cigar[0][0]))
    position = at = made.randrange(len(text) - 20)
    while True:
        length = made.randint(1, max(1, min(size, len(text) - at)))
        cigar.append((length, "M"))
        rate = made.choice([0, 0, 0.03, 0.5])
        for letter in text[at : at + length]:
            bases.append(made.choice(b"ACGTN") if made.random() < rate else letter)
        at += length
        if made.random() < 0.6 or at + 8 > len(text):
            break
        gap = made.randint(1, 5)
        if made.random() < 0.5:
            cigar.append((gap, "I"))
            bases += bytes(made.choices(b"ACGT", k=gap))
        else:
            cigar.append((gap, "D"))
            at += gap
    if made.random() < 0.3:
        cigar.append((made.randint(1, 30), "S"))
        bases += bytes(made.choices(b"ACGT", k=cigar[-1][0]))
    strand = SamFlag.REVERSE * made.randint(0, 1)
    return _row(made, read, flag | strand, record, position, cigar), bytes(bases)


def _other_row(made, reference, read, flag, size):
    """Return a secondary or supplementary row of a read of so many bases."""
    fits = [one for one, length in enumerate(reference.record_lengths.tolist()) if length > 1]
    record = made.choice(fits)
    room = int(reference.record_lengths[record])
    is_secondary = made.random() < 0.4
    length = made.randint(1, max(1, min(size, room)))
    before = made.randint(0, size - length)
    clip = "S" if is_secondary else "H"
    parts = [(before, clip), (length, "M"), (size - length - before, clip)]
    cigar = [(count, letter) for count, letter in parts if count]
    flag |= SamFlag.SECONDARY if is_secondary else SamFlag.SUPPLEMENTARY
    flag |= SamFlag.REVERSE * made.randint(0, 1)
    return _row(made, read, flag, record, made.randint(0, room - length), cigar)


def _row(made, read, flag, record, position, cigar):
    return Row(
        *(read, int(flag), record, position, made.choice([0, 7, 60]), cigar),
        score=made.choice([-3, 0, 99, 127, 128, 150, 255, 256, 40_000, 70_000]),
        second=made.choice([0, 5, 300]),
        distance=made.choice([0, 3, 254, 255, 256, 70_000]),
    )


def _join(made, rows, primaries):
    """Tell all rows of two reads of their mates, as the specification wants it."""
    for own, other in (primaries, primaries[::-1]):
        mate = rows[other]
        if rows[own].flag & SamFlag.UNMAPPED and not mate.flag & SamFlag.UNMAPPED:
            rows[own].record, rows[own].position = mate.record, mate.position
    length = made.choice([0, 5, 999, 1000, 100_000])
    for own, other, sign in ((primaries[0], primaries[1], 1), (primaries[1], primaries[0], -1)):
        for row in rows:
            if row.read == rows[own].read:
                row.mate, row.template = other, sign * length
                row.flag |= SamFlag.MATE_UNMAPPED * bool(rows[other].flag & SamFlag.UNMAPPED)
                row.flag |= SamFlag.MATE_REVERSE * bool(rows[other].flag & SamFlag.REVERSE)


def _columns(rows):
    fields = ("read", "flag", "record", "position", "quality")
    fields = [*fields, "template", "mate", "score", "second", "distance"]
    values = [[getattr(row, name) for row in rows] for name in fields]
    cigars = [size << 4 | LETTERS.index(kind) for row in rows for size, kind in row.cigar]
    return made_columns(*values[:5], offsets_of(row.cigar for row in rows), cigars, *values[5:])


def plain_lines(case, reference, group):
    """Return the lines of SAM, made one by one from the specification."""
    return b"".join(
        _plain_line(case, reference, group, row) for row in range(case.columns.row_count)
    )


def _cigar(columns, row):
    begin, end = columns.cigar_offsets[row : row + 2].tolist()
    return [(one >> 4, LETTERS[one & 15]) for one in columns.cigars[begin:end].tolist()]


def _cigar_text(columns, row):
    return "".join(f"{size}{kind}" for size, kind in _cigar(columns, row)).encode() or b"*"


def _plain_line(case, reference, group, row):
    reads, columns = case.reads, case.columns
    read, flag = int(columns.reads[row]), int(columns.flags[row])
    begin, end = reads.offsets[read : read + 2].tolist()
    first, last = reads.name_offsets[read : read + 2].tolist()
    bases = decode(reads.padded_codes[64 + begin : 64 + end])
    numbers = reads.base_qualities[begin:end].tobytes()
    if flag & SamFlag.REVERSE:
        bases, numbers = bases.translate(COMPLEMENT)[::-1], numbers[::-1]
    cigar = _cigar(columns, row)
    mismatches = b""
    if not flag & SamFlag.UNMAPPED:
        record = bases_of(reference, int(columns.records[row]))
        mismatches = _plain_mismatches(cigar, bases, record, int(columns.positions[row]))
    before = cigar[0][0] if cigar and cigar[0][1] == "H" else 0
    after = cigar[-1][0] if len(cigar) > 1 and cigar[-1][1] == "H" else 0
    bases, numbers = bases[before : len(bases) - after], numbers[before : len(numbers) - after]
    if flag & SamFlag.SECONDARY:
        bases = b""
    text = bytes(33 + one for one in numbers) if bases and numbers[0] != 0xFF else b"*"
    mate = int(columns.mate_rows[row])
    place, next_place = _place(columns, reference, row), (b"*", 0)
    if mate != NO_ROW:
        next_place = _place(columns, reference, mate)
        if next_place[0] == place[0] != b"*":
            next_place = (b"=", next_place[1])
    fields = [reads.names[first:last].tobytes() or b"*", flag, *place, columns.qualities[row]]
    fields += [_cigar_text(columns, row), *next_place, columns.template_lengths[row]]
    fields += [bases or b"*", text]
    if not flag & SamFlag.UNMAPPED:
        fields += [b"NM:i:%d" % columns.edit_distances[row], b"MD:Z:" + mismatches]
    if mate != NO_ROW and not columns.flags[mate] & SamFlag.UNMAPPED:
        fields += [b"MC:Z:" + _cigar_text(columns, mate), b"MQ:i:%d" % columns.qualities[mate]]
    if not flag & SamFlag.UNMAPPED:
        scores = columns.scores[row], columns.second_scores[row]
        fields += [b"AS:i:%d" % scores[0], b"XS:i:%d" % scores[1]]
    if group is not None:
        fields.append(b"RG:Z:" + group)
    parts = [] if flag & SamFlag.SECONDARY else _plain_parts(columns, reference, row)
    if parts:
        fields.append(b"SA:Z:" + b"".join(parts))
    return b"\t".join(one if isinstance(one, bytes) else b"%d" % one for one in fields) + b"\n"


def _place(columns, reference, row):
    record = int(columns.records[row])
    return (reference.names[record] if record >= 0 else b"*"), int(columns.positions[row]) + 1


def _plain_parts(columns, reference, row):
    others = np.flatnonzero(columns.reads == columns.reads[row]).tolist()
    return [
        b"%b,%d,%b,%b,%d,%d;"
        % (
            *_place(columns, reference, other),
            b"-" if columns.flags[other] & SamFlag.REVERSE else b"+",
            _cigar_text(columns, other).replace(b"H", b"S"),
            columns.qualities[other],
            columns.edit_distances[other],
        )
        for other in others
        if other != row and not columns.flags[other] & SamFlag.SECONDARY
    ]


def _are_equal(row, bases, record):
    if row.flag & SamFlag.REVERSE:
        bases = bases.translate(COMPLEMENT)[::-1]
    return _plain_mismatches(row.cigar, bases, record, row.position).isdigit()


def _plain_mismatches(cigar, bases, record, at):
    """Return MD."""
    text, run, place = "", 0, 0
    for size, kind in cigar:
        if kind in "ISH":
            place += size
        elif kind == "D":
            text += f"{run}^{record[at : at + size].decode()}"
            run, at = 0, at + size
        else:
            for own, other in zip(bases[place : place + size], record[at : at + size], strict=True):
                if own == other and own != ord("N"):
                    run += 1
                else:
                    text += f"{run}{chr(other)}"
                    run = 0
            place, at = place + size, at + size
    return f"{text}{run}".encode()
