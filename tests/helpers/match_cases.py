"""Small references, queries and matches of all kinds, and the matches as plain objects."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from helpers.in_memory import columns_of, named_queries, named_records
from mummergpu.sequence.strand import Strand

Row = tuple[int, int, int]
"""Query start on the strand that was searched, start in the record, length; 0-based."""

Sequence = tuple[bytes, bytes]
"""A name and its bases."""


@dataclass(frozen=True)
class PlainMatch:
    """A match with all that a format may say about it; positions on the forward strand."""

    query: int
    query_name: bytes
    query_length: int
    query_start: int
    is_reverse: bool
    record_name: bytes
    record_length: int
    start: int
    length: int

    @property
    def query_end(self):
        return self.query_start + self.length

    @property
    def end(self):
        return self.start + self.length

    @property
    def strand(self):
        return b"-" if self.is_reverse else b"+"


@dataclass(frozen=True)
class MatchCase:
    """Records, queries, and for each strand and query the number of a record with a row."""

    records: list[Sequence]
    queries: list[Sequence]
    rows: dict[Strand, list[list[tuple[int, Row]]]] = field(default_factory=dict)

    @property
    def reference(self):
        return named_records(self.records)

    @property
    def block(self):
        return named_queries(self.queries)

    @property
    def columns(self):
        starts = self.reference.record_starts.tolist()
        return {
            strand: columns_of(
                [
                    [(at, starts[record] + start, length) for record, (at, start, length) in rows]
                    for rows in of_queries
                ]
            )
            for strand, of_queries in self.rows.items()
        }

    def matches(self):
        """The matches in the order of the output: query by query, forward before reverse."""
        for query, (name, bases) in enumerate(self.queries):
            for strand in Strand:
                for record, (query_start, start, length) in self._rows_of(strand, query):
                    if strand is Strand.REVERSE:
                        query_start = len(bases) - query_start - length
                    record_name, record_bases = self.records[record]
                    yield PlainMatch(
                        *(query, name, len(bases), query_start, strand is Strand.REVERSE),
                        *(record_name, len(record_bases), start, length),
                    )

    def _rows_of(self, strand, query):
        return self.rows[strand][query] if strand in self.rows else []


def text_of(made, case, reuse=True):
    """The bytes of a case, from head to tail; the memory of pieces is used again."""
    text = made.head()
    for piece in made.format_block(case.block, case.columns):
        text += bytes(piece)
        if reuse:
            made.take_back(piece)
    return text + b"".join(made.tail())


def words(alphabet, least, most):
    letters = st.sampled_from([bytes([byte]) for byte in alphabet])
    return st.lists(letters, min_size=least, max_size=most).map(b"".join)


PRINTABLE = bytes(byte for byte in range(33, 127) if byte != ord("@"))
NAMES = st.one_of(
    words(b"ab_1", 1, 4), words(PRINTABLE, 1, 40), st.integers(1, 200).map(lambda n: b"n" * n)
)
RECORD_NAMES = words(b"chrX19._", 1, 20)
BASES = st.one_of(words(b"ACGT", 0, 12), words(b"ACGTNacgtuR", 0, 90))


@st.composite
def match_cases(draw, query_names=NAMES, record_names=RECORD_NAMES, max_rows=6):
    """Any records with different names, of which one has bases, any queries and any rows."""
    names = draw(st.lists(record_names, min_size=1, max_size=5, unique=True))
    records = [(name, draw(BASES)) for name in names[1:]]
    records.insert(draw(st.integers(0, len(records))), (names[0], b"ACGTTGCA" * 5))
    queries = draw(st.lists(st.tuples(query_names, BASES), max_size=6))
    searched = draw(st.sampled_from([(Strand.FORWARD,), (Strand.REVERSE,), tuple(Strand)]))
    rows = {
        strand: [
            draw(st.lists(_row(records, len(bases)), max_size=max_rows)) if bases else []
            for _, bases in queries
        ]
        for strand in searched
    }
    return MatchCase(records, queries, rows)


@st.composite
def _row(draw, records, query_length):
    filled = [number for number, (_, bases) in enumerate(records) if bases]
    record = draw(st.sampled_from(filled))
    size = len(records[record][1])
    length = draw(st.integers(1, min(size, query_length)))
    return record, (
        draw(st.integers(0, query_length - length)),
        draw(st.integers(0, size - length)),
        length,
    )


def joined(lines):
    """Lines of fields between tabs."""
    return b"".join(
        b"\t".join(field if isinstance(field, bytes) else b"%d" % field for field in line) + b"\n"
        for line in lines
    )
