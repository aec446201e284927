"""The tables of an index, as they are loaded for a search."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mummergpu.index.kmer_index import KmerIndex
from mummergpu.index.kmer_order import FILE_ORDERED_BASES
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.options import IndexOptions, KmerOptions
from mummergpu.index.reference_index import BuildWork
from mummergpu.input.reference import read_reference
from mummergpu.pipeline.plan import plan_storable_index
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.stats import Stats

MINIMUM_LENGTH = 20


@pytest.fixture(scope="module")
def satellite(tmp_path_factory):
    path = tmp_path_factory.mktemp("satellite") / "ref.fa"
    path.write_text(f">satellite\n{'AC' * 40_000}\n")
    return path


def load(path, query_bases):
    index = KmerIndex.plan(
        read_reference(str(path)),
        KmerOptions(sampling=KmerSampling(10)),
        MINIMUM_LENGTH,
        MemoryBudget(1 << 30, None),
        query_bases,
    )
    with ThreadPoolExecutor(1) as executor:
        (page,) = index.load_pages(index.pages, BuildWork(executor, 1, Stats(), lambda: None))
    return page


def test_long_lists_are_sorted_only_for_enough_queries(satellite):
    few, many = load(satellite, 100), load(satellite, 10**6)
    assert few.table.ordered_bases == 0 < many.table.ordered_bases
    for page, ascends in ((few, True), (many, False)):
        offsets = page.table.offsets.astype(np.int64)
        longest = int(np.argmax(np.diff(offsets)))
        positions = page.table.positions[offsets[longest] : offsets[longest + 1]]
        assert positions.size > 10_000
        assert bool(np.all(np.diff(positions.astype(np.int64)) > 0)) == ascends


def test_an_index_that_outlives_a_run_serves_reads_of_satellites(satellite):
    """Long lists are sorted as those of an index file, for `Index.map`."""
    options = IndexOptions(MINIMUM_LENGTH, KmerOptions(sampling=KmerSampling(10)), None)
    index = plan_storable_index(read_reference(str(satellite)), options, 1)
    with ThreadPoolExecutor(1) as executor:
        (page,) = index.load_pages(index.pages, BuildWork(executor, 1, Stats(), lambda: None))
    assert page.table.ordered_bases == FILE_ORDERED_BASES
