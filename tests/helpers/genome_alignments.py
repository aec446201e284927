"""Random alignments of genomes, as columns and as plain text."""

from dataclasses import dataclass

import numpy as np

from helpers.alignments import COMPLEMENT, bases_of
from helpers.in_memory import named_queries, named_records
from helpers.sequences import write_fasta
from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.output.genomes.genome_rows import GenomeRows
from mummergpu.output.genomes.sink import AlignedQueries
from mummergpu.output.records.paf import AlignmentPaf

Operations = list[tuple[int, int]]
MATCH, INSERTION, DELETION = 0, 1, 2


@dataclass(frozen=True)
class MadeAlignment:
    """An alignment; `query_start` is on the strand that is aligned."""

    query: int
    strand: int
    record: int
    query_start: int
    reference_start: int
    operations: Operations

    @property
    def query_end(self):
        return self.query_start + sum(size for kind, size in self.operations if kind != DELETION)

    @property
    def reference_end(self):
        return self.reference_start + sum(
            size for kind, size in self.operations if kind != INSERTION
        )


@dataclass(frozen=True)
class GenomeCase:
    """A reference, queries as they lie in their file, and alignments."""

    reference: Reference
    names: list[bytes]
    texts: list[bytes]
    rows: list[MadeAlignment]

    @property
    def queries(self):
        """The same, as formats take them."""
        return AlignedQueries.of_block(self.block, self.columns, with_bases=True)

    @property
    def block(self):
        return named_queries(zip(self.names, self.texts, strict=True))

    @property
    def columns(self):
        counts = np.array([self.counts(row) for row in self.rows]).reshape(-1, 3)

        def column(name):
            return np.array([getattr(row, name) for row in self.rows], dtype=np.int64)

        sizes = [len(row.operations) for row in self.rows]
        packed = [size << 4 | kind for row in self.rows for kind, size in row.operations]
        places = ("query_start", "query_end", "reference_start", "reference_end")
        return GenomeAlignments(
            *(column("query"), column("strand").astype(np.uint8), column("record")),
            *(*map(column, places), np.cumsum([0, *sizes])),
            np.array(packed, dtype=np.uint32),
            *(np.ascontiguousarray(counts[:, place]) for place in range(3)),
            np.arange(len(self.rows)),
            np.zeros(len(self.rows)),
        )

    def forward_range(self, row):
        """Where an alignment lies in its query as the file has it."""
        size = len(self.texts[row.query])
        begin, end = row.query_start, row.query_end
        return (size - end, size - begin) if row.strand else (begin, end)

    def write_reference(self, path):
        """Write the records as FASTA."""
        names = [name.decode() for name in self.reference.names]
        bases = (bases_of(self.reference, number).decode() for number, _ in enumerate(names))
        write_fasta(path, zip(names, bases, strict=True))

    def aligned_text(self, row):
        """The bases of the query that are aligned, on the strand of the reference."""
        text = self.texts[row.query]
        if row.strand:
            text = text.translate(COMPLEMENT)[::-1]
        return text[row.query_start : row.query_end]

    def pairs(self, row):
        """The columns of an alignment: the kind of operation, and the bases, or nothing."""
        text = bases_of(self.reference, row.record)[row.reference_start : row.reference_end]
        reference, query = iter(text.decode()), iter(self.aligned_text(row).decode())
        for kind, size in row.operations:
            for _ in range(size):
                base = "" if kind == INSERTION else next(reference)
                yield kind, base, "" if kind == DELETION else next(query)

    def counts(self, row):
        """The mismatches, the bases of gaps, and the gaps."""
        mismatches = sum(
            base != other or base == "N" for kind, base, other in self.pairs(row) if kind == MATCH
        )
        gaps = [size for kind, size in row.operations if kind != MATCH]
        return mismatches, sum(gaps), len(gaps)


def paf_lines(reference, queries, with_changes=False):
    """The lines of PAF."""
    made = AlignmentPaf(reference, GenomeRows(reference, None, False, with_changes), no_name=b"")
    pieces = made.format_block(queries, queries.alignments)
    return b"".join(piece.tobytes() for piece in pieces).decode().splitlines()


def random_case(made, letters=b"ACGTACGTACGTN"):
    """Return queries of which parts are aligned with the records of a reference."""
    reference = named_records(
        (b"r%d" % number, bytes(made.choices(letters, k=size)))
        for number, size in enumerate(made.choices([60, 300, 900], k=made.randint(1, 3)))
    )
    names, texts, rows = [], [], []
    for query in range(made.randint(1, 5)):
        names.append(b"q%d" % query + b"x" * made.choice([0, 1, 50]))
        text = b""
        own = []
        for _ in range(made.choice([0, 1, 1, 2, 4])):
            text += bytes(made.choices(b"ACGT", k=made.choice([0, 3, 40])))
            strand, record = made.randint(0, 1), made.randrange(len(reference.names))
            start, operations, bases = _copied(made, bases_of(reference, record), letters)
            if strand:
                bases = bases.translate(COMPLEMENT)[::-1]
            own.append((strand, record, len(text), start, operations))
            text += bases
        text += bytes(made.choices(b"ACGT", k=made.choice([0, 5])))
        texts.append(text)
        for strand, record, begin, start, operations in own:
            size = sum(length for kind, length in operations if kind != DELETION)
            begin = len(text) - begin - size if strand else begin
            rows.append(MadeAlignment(query, strand, record, begin, start, operations))
    rows.sort(
        key=lambda row: (row.query, row.record, row.reference_start, row.strand, row.query_start)
    )
    return GenomeCase(reference, names, texts, rows)


def _copied(made, text, letters):
    """Return where a copy of a part of a record begins, its operations and its bases."""
    start = at = made.randrange(len(text) - 20)
    rate = made.choice([0, 0.03, 0.3])
    operations = []
    bases = bytearray()
    while True:
        length = made.randint(1, max(1, min(made.choice([3, 30, 200]), len(text) - at)))
        operations.append((MATCH, length))
        for place in range(at, at + length):
            # An alignment begins and ends with equal bases.
            inside = start < place < at + length - 1
            changed = inside and made.random() < rate
            bases.append(made.choice(letters) if changed else text[place])
        at += length
        if made.random() < 0.3 or at + 12 > len(text):
            return start, operations, bytes(bases)
        for kind in made.choice(
            [(INSERTION,), (DELETION,), (INSERTION, DELETION), (DELETION, INSERTION)]
        ):
            gap = made.choice([1, 1, 2, 5])
            operations.append((kind, gap))
            if kind == INSERTION:
                bases += bytes(made.choices(letters, k=gap))
            else:
                at += gap
