"""The tables of several parts."""

import numpy as np

from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import build_kmer_page, build_kmer_table
from mummergpu.index.pages import plan_pages
from mummergpu.input.reference import Reference
from mummergpu.runtime.stats import Stats


def test_each_page_gets_a_table_of_its_own_and_all_share_the_reference():
    codes = np.random.default_rng(1).integers(0, 5, 1000).astype(np.uint8)
    reference = Reference("made.fa", codes, np.array([0]), np.array([1000]), (b"r",))
    pages = plan_pages(1000, 300, 0)
    stats, sampling = Stats(), KmerSampling(4, 3)
    found = [build_kmer_page(reference, page, sampling, 1 << 20, stats) for page in pages]
    for one in found:
        expected = build_kmer_table(
            one.padded_reference, one.page.begin, one.page.owned_end, sampling
        )
        assert np.array_equal(one.table.offsets, expected.offsets)
        assert np.array_equal(one.table.positions, expected.positions)
        assert one.padded_reference is found[0].padded_reference
        assert np.array_equal(one.joined_reference, codes)
    assert stats.stages["table_construction"].count == len(pages)
