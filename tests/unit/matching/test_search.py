"""Which blocks a backend makes the text of."""

import numpy as np
import pytest
from helpers.in_memory import block_of
from helpers.text_cases import named_reference

from mummergpu.matching.backends.interface import BlockText, ResidentBackend, WorkSizes, join_texts
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.search import BlockSearch
from mummergpu.matching.tree.cpu import TreeCpuBackend
from mummergpu.output.matches.mummer import MummerFormatter
from mummergpu.output.options import TextStyle
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
    found = MummerFormatter(named_reference([b"r"], [9]), TextStyle()).row_format()
    assert found is not None
    return found


def search_of(backend, given, shortest=8):
    return BlockSearch(backend, np.zeros(9, np.uint8), tuple(Strand), 8, shortest, given)


BLOCK = block_of(("A" * LONG_QUERY, "", "ACGT"))


def test_a_backend_is_told_the_format_before_it_loads_pages():
    backend, given = Texts(), row_format()
    search = search_of(backend, given)
    assert backend.formats == [given]
    assert search.makes_text(BLOCK)
    text = search.find_text(BLOCK)
    assert text is not None and text.count == 5
    assert backend.asked == [(tuple(Strand), MAX_ROWS)]


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


def test_who_wants_columns_sets_no_format():
    backend = Texts()
    assert not search_of(backend, None).makes_text(BLOCK)
    assert backend.formats == []


def test_matches_that_are_too_short_must_be_filtered_out_of_columns():
    backend = Texts()
    assert not search_of(backend, row_format(), shortest=7).makes_text(BLOCK)
    assert backend.formats == []


@pytest.mark.parametrize("backend", [Columns(), KmerCpuBackend(Stats()), TreeCpuBackend(Stats())])
def test_other_backends_have_columns_only(backend):
    assert not search_of(backend, row_format()).makes_text(BLOCK)


def test_texts_are_joined_in_order():
    pieces = [np.frombuffer(text, dtype=np.uint8) for text in (b"one", b"two", b"")]
    text = join_texts(BlockText(pieces[:1], 3), BlockText(pieces[1:], 4))
    assert b"".join(piece.tobytes() for piece in text.pieces) == b"onetwo"
    assert (text.count, text.size) == (7, 6)
