"""Tables with values that cannot be end a search on the processor with an error."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.in_memory import block_of
from helpers.search_cases import find_on

from mummergpu.errors import InputError
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import KmerPage, build_kmer_table
from mummergpu.index.pages import Page
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import decode, with_margins

KMER = 6
BASES = 500
CODES = np.random.default_rng(3).integers(0, 4, BASES, dtype=np.uint8)


def page_of(change, path="r.mgi"):
    padded = with_margins(CODES)
    table = build_kmer_table(padded, 100, BASES, KmerSampling(KMER))
    change(table)
    return KmerPage(Page(1, 100, BASES, BASES), table, padded, path)


def matches_of(page):
    """Search the last part of the reference, with every sample a k-mer of it."""
    block = block_of([decode(CODES[200:]).decode()])
    backend = KmerCpuBackend(Stats())
    backend.load_pages([page], KMER)
    found = find_on(backend, block)
    assert found is not None
    return found.count


def kmer_number(position):
    return sum(int(code) << 2 * place for place, code in enumerate(CODES[position:][:KMER]))


def set_position(value):
    def change(table):
        table.positions[table.offsets[kmer_number(300)]] = value

    return change


def set_offset(behind, value):
    def change(table):
        table.offsets[kmer_number(300) + behind] = value

    return change


def nothing(table):
    del table


def test_a_sound_table_is_searched():
    assert matches_of(page_of(nothing)) > 0


@pytest.mark.parametrize("value", [0, BASES - 100 - KMER])
def test_positions_inside_the_reference_are_followed(value):
    assert matches_of(page_of(set_position(value))) > 0


@pytest.mark.parametrize(
    "change",
    [
        set_position(BASES - 100 - KMER + 1),
        set_position((1 << 32) - 1),
        set_offset(0, 1 << 31),
        set_offset(0, (1 << 32) - 1),
        set_offset(1, 0),
        set_offset(1, BASES - 100 - KMER + 2),
        set_offset(1, (1 << 32) - 1),
    ],
)
def test_what_is_outside_is_an_error(change):
    with pytest.raises(InputError, match=r"^r\.mgi: the index is damaged: its page 1 holds"):
        matches_of(page_of(change))


def test_a_table_that_was_built_in_memory_is_no_fault_of_the_user():
    page = replace(page_of(set_position(1 << 31)), index_path="")
    with pytest.raises(RuntimeError, match="page 1 was built with a value that cannot be"):
        matches_of(page)
