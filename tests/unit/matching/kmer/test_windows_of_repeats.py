"""Searches of repeats by windows, in which most occurrences of a k-mer are not looked at."""

from dataclasses import replace
from unittest.mock import patch

import pytest
from helpers.kmer_cases import repeats_case, tables_of
from helpers.search_cases import STRANDS, find_on, rows_of

from mummergpu.index import kmer_order
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.mapping.seeding.windows import matches_of_windows
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.runtime.stats import Stats


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ordered_bases", [8, 14, 15, 34, 60])
@pytest.mark.parametrize(
    "sampling",
    [
        *(KmerSampling(6, step) for step in (1, 4, 15)),
        *(KmerSampling(6, kmers, is_picked=True) for kmers in (1, 4, 9)),
    ],
)
def test_all_matches_with_a_window_are_found_in_sorted_lists(seed, ordered_bases, sampling):
    """Lists may be sorted by fewer bases than a window has before its k-mer, or by many more."""
    case = repeats_case(seed)
    window = case.minimum_length
    pages = tables_of(case, KmerSampling(6))
    complete = KmerCpuBackend(Stats())
    complete.load_pages(pages, window)
    expected = [find_on(complete, case.block(), strand) for strand in STRANDS]
    for with_bases_beside in (False, True):
        pages = tables_of(case, sampling, with_bases_beside)
        with patch.object(kmer_order, "MAX_UNSORTED_OCCURRENCES", 16):
            ordered = [kmer_order.order_long_lists(page, ordered_bases) for page in pages]
        by_windows = KmerCpuBackend(Stats())
        by_windows.load_pages([replace(page, window_bases=window) for page in ordered], window)
        for strand, all_matches in zip(STRANDS, expected, strict=True):
            found = find_on(by_windows, case.block(), strand)
            assert found is not None and all_matches is not None
            wanted = rows_of(matches_of_windows(all_matches, window))
            assert [sorted(rows) for rows in rows_of(found)] == wanted
            assert sum(map(len, wanted)) > 500


@pytest.mark.parametrize("distance", [1, 4, 11])
def test_windows_that_overlap_are_found_by_picked_kmers(distance):
    """Several windows may have the same picked k-mer, and a match not all of them."""
    case = repeats_case(1)
    window = case.minimum_length
    found = []
    for sampling in (KmerSampling(6), KmerSampling(6, 7, is_picked=True)):
        backend = KmerCpuBackend(Stats())
        pages = tables_of(case, sampling)
        backend.load_pages(
            [replace(page, window_bases=window, window_distance=distance) for page in pages], window
        )
        columns = [find_on(backend, case.block(), strand) for strand in STRANDS]
        assert all(one is not None for one in columns)
        found.append([sorted(rows) for one in columns if one is not None for rows in rows_of(one)])
    assert found[0] == found[1]
    assert sum(map(len, found[0])) > 500
