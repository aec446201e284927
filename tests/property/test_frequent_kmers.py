"""Searches that skip frequent k-mers, held to the definition of what they lose."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from helpers.kmer_cases import KMER_CASES, ordered_tables_of, samplings, tables_of
from helpers.loops import each
from helpers.search_cases import STRANDS, SearchCase, find_on, rows_of

from mummergpu.index.kmer_page import KmerPage
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.runtime.stats import Stats

Rows = list[list[tuple[int, int, int]]]


def kept(rows: Rows, pages: list[KmerPage], sampling: KmerSampling, most: int) -> Rows:
    """The rows whose first listed k-mer is listed at most so many times, in its page's table."""
    codes = pages[0].joined_reference.tolist()
    length, step = sampling.kmer_length, sampling.reference_step

    def kmer_at(position: int) -> tuple[int, ...]:
        return tuple(codes[position : position + length])

    counts = [
        Counter(
            kmer_at(position)
            for position in range(page.page.begin, page.page.owned_end)
            if position % step == 0
        )
        for page in pages
    ]

    def is_kept(row: tuple[int, int, int]) -> bool:
        position = -(-row[1] // step) * step
        (page,) = (n for n, page in enumerate(pages) if page.page.begin <= position < page.page.end)
        return counts[page][kmer_at(position)] <= most

    return [[row for row in of_query if is_kept(row)] for of_query in rows]


@each("case", KMER_CASES)
def test_matches_are_lost_that_begin_with_a_frequent_kmer(case: SearchCase) -> None:
    for sampling in samplings(case):
        for most in (1, 3, 20, 100_000):
            for made in (tables_of, ordered_tables_of):
                pages = [replace(page, max_occurrences=most) for page in made(case, sampling)]
                stats = Stats()
                backend = KmerCpuBackend(stats)
                backend.load_pages(pages, case.minimum_length)
                for strand in STRANDS:
                    found = find_on(backend, case.block(), strand)
                    assert found is not None
                    expected = kept(case.expected(strand), pages, sampling, most)
                    assert rows_of(found) == expected
                assert ("skipped_lookups" in stats.counts) <= (most < 100_000)
