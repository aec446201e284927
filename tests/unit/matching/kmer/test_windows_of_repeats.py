"""Searches of repeats by windows, in which most occurrences of a k-mer are not looked at."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from helpers.kmer_cases import tables_of
from helpers.search_cases import (
    STRANDS,
    SearchCase,
    find_on,
    made_bases,
    made_queries,
    rows_of,
)

from mummergpu.index import kmer_order
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.mapping.seeding.windows import matches_of_windows
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.runtime.stats import Stats

WINDOW = 20


def repeats(seed: int) -> SearchCase:
    """Copies of a unit, of which each base may differ, and reads of them."""
    random = np.random.default_rng(seed)
    unit = made_bases(random, 70, "ACGT")
    copies = []
    for _ in range(300):
        copy = list(unit)
        for place in np.flatnonzero(random.random(70) < (0.03, 0.1)[seed % 2]):
            copy[place] = made_bases(random, 1, "ACGT")
        copies.append("".join(copy))
    record = "".join(copies) + made_bases(random, 500, "ACGTN")
    queries = made_queries(random, record, 60, 150, "ACGT", 0.01)
    return SearchCase("repeats", (record, unit), ("", record[:9], *queries), WINDOW, 1 << 30)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ordered_bases", [8, 14, 15, 34, 60])
def test_all_matches_with_a_window_are_found_in_sorted_lists(seed: int, ordered_bases: int) -> None:
    """Lists may be sorted by fewer bases than a window has before its k-mer, or by many more."""
    case = repeats(seed)
    pages = tables_of(case, KmerSampling(6))
    complete = KmerCpuBackend(Stats())
    complete.load_pages(pages, WINDOW)
    expected = [find_on(complete, case.block(), strand) for strand in STRANDS]
    with patch.object(kmer_order, "LONGEST_ASCENDING", 16):
        ordered = [kmer_order.order_long_lists(page, ordered_bases) for page in pages]
    by_windows = KmerCpuBackend(Stats())
    by_windows.load_pages([replace(page, sample_step=WINDOW) for page in ordered], WINDOW)
    for strand, all_matches in zip(STRANDS, expected, strict=True):
        found = find_on(by_windows, case.block(), strand)
        assert found is not None and all_matches is not None
        wanted = rows_of(matches_of_windows(all_matches, WINDOW))
        assert [sorted(rows) for rows in rows_of(found)] == wanted
        assert sum(map(len, wanted)) > 500
