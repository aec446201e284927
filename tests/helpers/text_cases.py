"""Matches that are awkward to write as text, and the device's text of any matches."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from helpers.in_memory import columns_of, letters_of, named_queries, offsets_of
from mummergpu.cuda.resident_matches import DeviceMems
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.matching.kmer.cuda_consumers import DeviceText
from mummergpu.matching.kmer.cuda_program import KMER_PROGRAM
from mummergpu.matching.kmer.cuda_search import KmerSearchContext, PackedQueries
from mummergpu.output.matches.mummer import PIECE_BYTES, MummerFormatter
from mummergpu.output.options import TextStyle
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import MemColumns
from mummergpu.sequence.strand import Strand

STYLES = [TextStyle(*flags) for flags in product((False, True), repeat=3)]
BOTH = (Strand.FORWARD, Strand.REVERSE)

AWKWARD_NUMBERS = sorted(
    {1, 2, 123_456_789_012, 1 << 31, (1 << 31) - 1, 1 << 32, (1 << 32) + 1}
    | {10**exponent + more for exponent in range(1, 13) for more in (-1, 0, 1)}
)
"""Numbers of up to 13 digits, and around powers of ten and of two."""


@dataclass(frozen=True)
class TextCase:
    """A reference without bases, queries without bases, and matches between them."""

    name: str
    reference: Reference
    block: QueryBlock
    columns: dict[Strand, MemColumns]

    def text(self, style):
        """The text of the host."""
        pieces = MummerFormatter(self.reference, style).format_block(self.block, self.columns)
        return b"".join(piece.tobytes() for piece in pieces)


def named_reference(names, lengths):
    starts = np.concatenate(([0], np.cumsum(np.add(lengths, 1))[:-1])).astype(np.int64)
    # One byte in the place of all bases, which the text does not depend on.
    codes = np.broadcast_to(np.zeros(1, dtype=np.uint8), (int(sum(lengths)) + len(lengths) - 1,))
    return Reference("r.fa", codes, starts, np.array(lengths, dtype=np.int64), tuple(names))


def named_block(names, lengths):
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    return replace(named_queries((name, b"") for name in names), offsets=offsets)


def with_names(block, names):
    """The same queries with names."""
    return replace(block, names=letters_of(names), name_offsets=offsets_of(names))


def awkward_names(count):
    """Names of any length, none and long ones among them."""
    lengths = (4, 0, 1, 17, 300, 6)
    return [(b"name_%d_" % number * 80)[: lengths[number % 6]] for number in range(count)]


def awkwardly_named(block):
    """The same queries with names of any length."""
    return with_names(block, awkward_names(block.query_count))


def _random_case(seed):
    random = np.random.default_rng(seed)
    record_count = (1, 2, 7, 300)[seed % 4]
    lengths = random.choice([0, 1, 9, 2000], record_count).tolist()
    lengths[-1] = 40_000
    reference = named_reference(awkward_names(record_count), lengths)
    query_count = (1, 33, 200)[seed % 3]
    query_lengths = random.choice([0, 1, 30, 70_000], query_count).tolist()
    columns = {}
    for strand in (BOTH, BOTH[:1], BOTH[1:])[seed // 2 % 3]:
        rows = []
        for length in query_lengths:
            count = int(random.choice([0, 0, 1, 3, 40])) if length else 0
            query_starts = random.integers(0, max(length, 1), count)
            starts = random.integers(0, reference.codes.size, count)
            pairs = zip(query_starts.tolist(), starts.tolist(), strict=True)
            rows.append([(query_start, start, 5) for query_start, start in pairs])
        columns[strand] = columns_of(rows)
    block = named_block(awkward_names(query_count), query_lengths)
    return TextCase(f"random {seed}", reference, block, columns)


def many_rows(record_count):
    """Most of 100,000 queries have few rows, and one has very many."""
    random = np.random.default_rng(record_count)
    reference = named_reference([b"r%d" % n for n in range(record_count)], [60_000] * record_count)
    queries, columns = 100_000, {}
    for strand in BOTH:
        counts = random.integers(0, 20, queries)
        counts[queries // 2] = 500_000
        offsets = np.concatenate(([0], np.cumsum(counts)))
        rows = int(offsets[-1])
        columns[strand] = MemColumns(
            offsets,
            random.integers(0, 100, rows),
            random.integers(0, reference.codes.size, rows),
            random.integers(1, 1 << random.integers(1, 40), rows),
        )
    block = named_block(awkward_names(queries), [1 << 40] * queries)
    return TextCase("many", reference, block, columns)


def _number_case(name, record_names):
    """Each of the awkward numbers in every column."""
    numbers = AWKWARD_NUMBERS
    largest = 2 * numbers[-1]
    lengths = [1] * (len(record_names) - 1) + [largest]
    reference = named_reference(record_names, lengths)
    first = int(reference.record_starts[-1])
    rows = [(one - 1, first + other - 1, one) for one in numbers for other in numbers[::7]]
    rows += [(other - 1, first + one - 1, 9) for one in numbers for other in numbers[::7]]
    columns = {strand: columns_of([rows]) for strand in BOTH}
    return TextCase(name, reference, named_block([b"q"], [largest]), columns)


def _simple_case(name, record_names, query_names, rows_of_query):
    reference = named_reference(record_names, [1000] * len(record_names))
    rows = [
        [(row, (row + query) % reference.codes.size, 7 + row) for row in range(rows_of_query)]
        for query in range(len(query_names))
    ]
    columns = {strand: columns_of(rows) for strand in BOTH}
    return TextCase(name, reference, named_block(query_names, [500] * len(query_names)), columns)


def _text_cases():
    # A line of up to 4,080 bytes is put together in shared memory.
    near = [b"n" * length for length in (*range(4058, 4084), 1500, 1500, 1500, 5000, 9000, 3)]
    return [
        *(_random_case(seed) for seed in range(12)),
        _number_case("numbers", [b"r"]),
        _number_case("numbers of many records", [b"one", b"", b"of_a_longer_name"]),
        _simple_case("no queries", [b"r"], [], 0),
        _simple_case("no matches", [b"r"], awkward_names(70), 0),
        _simple_case("many rows of a query", [b"r"], [b"a", b"b"], 400),
        _simple_case("long names of queries", [b"r", b"s"], near, 2),
        _simple_case("long names of records", near, [b"a", b""], 40),
        _simple_case("longest names of records", [b"m" * 7000, b"m" * 5], [b"a", b"b"], 3),
        _simple_case("a name of no bytes", [b""], [b""], 1),
        _simple_case("a tile of lines", [b"r"], [b"a"], 15),
    ]


TEXT_CASES = _text_cases()


def searched(backend, block, columns):
    """A searcher that has a block and any columns on the device, as if it had found them."""
    program = backend._program(KMER_PROGRAM)
    searcher, found = backend._searchers[0], {}
    for strand, each in columns.items():
        offsets, *addresses = backend._place(*each[:4])
        found[strand] = DeviceMems(offsets, tuple(addresses), each.count)
    (offsets,) = backend._place(block.offsets)
    searcher.context = KmerSearchContext(program, 1, 1, 1, 0, range(1), 0, (), None)
    searcher.queries = PackedQueries(block.query_count, 0, offsets, 0, 0, None)
    return searcher, found


def text_of_device(device, cache, formatter, block, columns):
    """The text that a device makes of any columns."""
    backend = KmerCudaBackend(device, cache, Stats(), lambda line: None)
    row_format = formatter.row_format()
    try:
        with device.current():
            backend.set_format(row_format)
            backend._place_records()
            assert backend.makes_text
            searcher, found = searched(backend, block, columns)
            consumer = DeviceText(row_format, backend._text_arguments, BOTH)
            text = consumer.make(searcher, block, found)
            searcher.launcher.forget()
            assert text.count == sum(each.count for each in columns.values())
            assert all(piece.size <= PIECE_BYTES for piece in text.pieces)
            whole = b"".join(piece.tobytes() for piece in text.pieces)
            assert text.size == len(whole)
            return whole
    finally:
        backend.close()
