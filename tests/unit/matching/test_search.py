"""Blocks are cut, searched as columns or text, and put together."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers.in_memory import block_of, columns_of, reference_of
from helpers.search_cases import difference, rows_of
from helpers.sequences import random_bases, reverse_complement
from helpers.text_cases import named_reference

from mummergpu.index.kmer_index import KmerIndex
from mummergpu.index.options import KmerOptions
from mummergpu.index.reference_index import BuildWork
from mummergpu.matching.backends.interface import BlockText, ResidentBackend, WorkSizes, join_texts
from mummergpu.matching.filter import keep_unique
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.long_queries import cut_queries, has_long_query
from mummergpu.matching.row_order import join_all, merge_pages
from mummergpu.matching.search import BlockSearch
from mummergpu.matching.tree.cpu import TreeCpuBackend
from mummergpu.output.matches.mummer import MummerFormatter
from mummergpu.output.options import TextStyle
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand

MAX_ROWS = 77
LONG_QUERY = 20


class Columns:
    """A backend that finds nothing."""

    sizes = WorkSizes(100, 10, LONG_QUERY, 50, MAX_ROWS, 100)


class Texts(Columns):
    """A backend that makes text, if the pages allow it."""

    makes_text = True

    def __init__(self):
        self.formats = []
        self.asked = []

    def set_format(self, row_format):
        self.formats.append(row_format)

    def find_text(self, block, strands, max_rows):
        self.asked.append((strands, max_rows))
        return BlockText((), 5)


ResidentBackend.register(Texts)


def row_format():
    return MummerFormatter(named_reference([b"r"], [9]), TextStyle()).row_format()


def search_of(backend, given, shortest=8):
    return BlockSearch(backend, np.zeros(9, np.uint8), tuple(Strand), 8, shortest, given)


BLOCK = block_of(("A" * LONG_QUERY, "", "ACGT"))


def test_a_backend_is_told_the_format_before_it_loads_pages():
    backend, given = Texts(), row_format()
    search = search_of(backend, given)
    assert backend.formats == [given] and search.makes_text(BLOCK)
    assert search.find_text(BLOCK).count == 5 and backend.asked == [(tuple(Strand), MAX_ROWS)]


def test_pages_may_be_such_that_there_are_columns_only():
    backend = Texts()
    search = search_of(backend, row_format())
    backend.makes_text = False
    assert not search.makes_text(BLOCK)
    backend.makes_text = True
    assert search.makes_text(BLOCK)


def test_a_long_query_makes_the_whole_block_columns():
    search = search_of(Texts(), row_format())
    assert not search.makes_text(block_of(("AC", "A" * (LONG_QUERY + 1))))


@pytest.mark.parametrize(("given", "shortest"), [(None, 8), (row_format(), 7)])
def test_columns_that_are_wanted_or_filtered_set_no_format(given, shortest):
    """Matches that are too short must be filtered out of columns."""
    backend = Texts()
    assert not search_of(backend, given, shortest).makes_text(BLOCK) and backend.formats == []


@pytest.mark.parametrize("backend", [Columns(), KmerCpuBackend(Stats()), TreeCpuBackend(Stats())])
def test_other_backends_have_columns_only(backend):
    assert not search_of(backend, row_format()).makes_text(BLOCK)


def test_texts_are_joined_in_order():
    pieces = [np.frombuffer(text, dtype=np.uint8) for text in (b"one", b"two", b"")]
    text = join_texts(BlockText(pieces[:1], 3), BlockText(pieces[1:], 4))
    assert b"".join(piece.tobytes() for piece in text.pieces) == b"onetwo"
    assert (text.count, text.size) == (7, 6)


PIECE_BASES = 4
LONG_BASES = 8
PART_BASES = 9


def test_pieces_own_every_start_once_and_see_what_they_need():
    pieces = cut_queries(block_of(["ACGTACGTAC", "", "GGT", "TTTTACGT"]).offsets, 3, PIECE_BASES)
    assert pieces.queries.tolist() == [0, 0, 0, 1, 2, 3, 3]
    assert pieces.begins.tolist() == [0, 4, 8, 10, 10, 13, 17]
    assert pieces.ends.tolist() == [4, 8, 10, 10, 13, 17, 21]
    assert pieces.text_begins.tolist() == [0, 3, 7, 10, 10, 13, 16]
    assert pieces.text_ends.tolist() == [7, 10, 10, 10, 13, 20, 21]


def test_parts_hold_all_pieces_in_order():
    block = block_of(["ACGTACGTACCA", "GGT", "TTTTACGT"])
    pieces = cut_queries(block.offsets, 3, PIECE_BASES)
    parts = list(pieces.parts(PART_BASES))
    assert len(parts) > 2
    assert np.concatenate([part.begins for part in parts]).tolist() == pieces.begins.tolist()
    texts = [part.as_block(block.codes) for part in parts]
    for part, text in zip(parts, texts, strict=True):
        for piece in range(part.queries.size):
            seen = text.codes[text.offsets[piece] : text.offsets[piece + 1]]
            true = block.codes[part.text_begins[piece] : part.text_ends[piece]]
            assert seen.tolist() == true.tolist()


@pytest.mark.parametrize(
    ("queries", "expected"),
    [
        (["ACGTACGT"], False),
        (["ACGTACGTA"], True),
        (["ACGT", "ACGT", "ACGT"], False),
        (["", "ACGTACGTACGT"], True),
        ([], False),
    ],
)
def test_only_blocks_with_a_long_query_are_cut(queries, expected):
    assert has_long_query(block_of(queries), LONG_BASES) is expected


PAGE_BASES = 1000


def made_rows(random, page, query_count):
    """The rows of queries on one page, ordered; many begin at the same base of a query."""
    queries = []
    for _ in range(query_count):
        count = int(random.choice([0, 0, 1, 3, 40]))
        places = random.choice(20 * PAGE_BASES, count, replace=False)
        rows = sorted((int(place) % 20, page * PAGE_BASES + int(place) // 20) for place in places)
        queries.append([(*row, int(random.integers(1, 99))) for row in rows])
    return queries


@pytest.mark.parametrize("query_count", [0, 1, 30])
@pytest.mark.parametrize("page_count", [1, 2, 3, 4, 5, 8, 11])
def test_the_rows_of_all_pages_come_in_order_and_none_is_lost(page_count, query_count):
    random = np.random.default_rng(100 * page_count + query_count)
    pages = [made_rows(random, page, query_count) for page in range(page_count)]
    merged = rows_of(merge_pages([columns_of(page) for page in pages]))
    expected = [sorted(row for page in pages for row in page[q]) for q in range(query_count)]
    assert merged == expected


def test_the_pages_are_left_as_they_were():
    random = np.random.default_rng(3)
    pages = [made_rows(random, page, 5) for page in range(3)]
    columns = [columns_of(page) for page in pages]
    merge_pages(columns)
    assert [rows_of(page) for page in columns] == pages


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 3), (3, 0), (1, 1), (12, 7)])
def test_blocks_are_joined_query_by_query(first, second):
    random = np.random.default_rng(10 * first + second)
    one, other = made_rows(random, 0, first), made_rows(random, 0, second)
    assert rows_of(join_all((columns_of(one), columns_of(other)))) == one + other


@pytest.mark.parametrize("seed", range(6))
def test_unique_matches_need_not_hold_all_others(seed):
    """Parts of a long query, on one or two groups of pages, hold few matches at once."""
    chance = random.Random(seed)
    unit = random_bases(chance, 30 + seed)
    copies = [list(unit) for _ in range(40)]
    for copy in copies:
        copy[chance.randrange(len(copy))] = chance.choice("ACGT")
    text = random_bases(chance, 200) + "".join(map("".join, copies)) + random_bases(chance, 200)
    reference = reference_of([text, reverse_complement(text[300:900]), "A" * 60])
    block = block_of((text[100:-100], "A" * 90, random_bases(chance, 20)))
    plan = KmerIndex.plan(reference, KmerOptions(page_size=1500), 10, MemoryBudget(1 << 40))
    sizes = WorkSizes(100, 64, 80, 500, 1 << 20, 100)

    def found_by(unique_rows):
        groups = []
        with ThreadPoolExecutor(1) as executor:
            pages = plan.load_pages(plan.pages, BuildWork(executor, 1, Stats(), lambda: None))
        for page in pages:
            backend = KmerCpuBackend(Stats())
            backend.sizes = sizes
            backend.load_pages([page], 10)
            search = BlockSearch(
                backend, reference.codes, tuple(Strand), 10, 10, unique_rows=unique_rows
            )
            groups.append(search.find_mems(block))
        assert len(groups) > 1
        return search.merge_groups(groups)

    every = found_by(None)
    few = found_by(50)
    for strand in Strand:
        assert few[strand].count < every[strand].count / 3
        for in_query in (False, True):
            expected = keep_unique(every[strand], in_query)
            assert difference(keep_unique(few[strand], in_query), expected) is None
