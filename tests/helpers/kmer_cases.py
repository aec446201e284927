"""References and queries that are awkward for the k-mer search's kernels."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np

from helpers.in_memory import reference_of
from helpers.index_pages import build_kmer_pages
from helpers.search_cases import CASES, ONE_PAGE, SearchCase, made_bases, made_queries
from mummergpu.index import kmer_order
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.pages import plan_pages
from mummergpu.matching.kmer.cuda_program import MOST_OCCURRENCES
from mummergpu.sequence.picked_kmers import MAX_BASES


def tables_of(case, sampling, with_bases_beside=False):
    """The tables of a case's reference, in parts of its page size."""
    reference = reference_of(case.records)
    pages = plan_pages(reference.codes.size, case.page_size, 0)
    return build_kmer_pages(reference, pages, sampling, with_bases_beside)


def ordered_tables_of(case, sampling):
    """The same, and all lists that a thread block works on are sorted by bases."""
    sampling_step = sampling.sampling_step(case.minimum_length)
    with patch.object(kmer_order, "MAX_UNSORTED_OCCURRENCES", MOST_OCCURRENCES):
        return [
            kmer_order.order_long_lists(page, sampling_step) for page in tables_of(case, sampling)
        ]


def samplings(case):
    """What a case is tried with: steps of one base, of many, and between, on either side."""
    most = min(case.minimum_length, 8)
    found = [KmerSampling(length) for length in sorted({1, min(3, most), (most + 1) // 2, most})]
    length = (most + 1) // 2
    longest = case.minimum_length - length + 1
    steps = {2 + len(case.queries) % 2, int(longest**0.5), longest}
    return found + [KmerSampling(length, step) for step in sorted(steps) if 1 < step <= longest]


def picked_samplings(case):
    """Picked k-mers that a case is tried with, of as few as possible and as many."""
    picked = [replace(sampling, is_picked=True) for sampling in samplings(case)]
    return [sampling for sampling in picked if sampling.lookup_bases <= MAX_BASES]


def far_case(seed):
    """Matches of which many are longer than the step, and the step than a word of 32 bases."""
    random = np.random.default_rng(seed)
    letters = "ACGT"[: 1 + seed % 4]
    minimum_length = (40, 66, 100, 140)[seed // 2 % 4]
    records = [made_bases(random, 300, letters, 0.002) for _ in range(2)]
    records.append(records[0][:170] + made_bases(random, 30, letters) + records[1][100:])
    queries = made_queries(random, "N".join(records), 9, 400, letters, 0.004)
    queries = ("", queries[0][:3], *queries, "", records[2], "N" * 70, records[1][:145], "A" * 90)
    page_size = (ONE_PAGE, 250, 90)[seed % 3]
    return SearchCase(f"far {seed}", tuple(records), queries, minimum_length, page_size)


def dense_case(seed):
    """One letter, or nearly one: lists far longer than a thread works on."""
    record = "A" * 130 + made_bases(np.random.default_rng(seed), 8, "AC") + "A" * 90
    queries = ("A" * 60, "A" * 3 + "C" + "A" * 50, record[100:170], "CAC", "AA")
    page_size = (ONE_PAGE, 100)[seed % 2]
    return SearchCase(f"dense {seed}", (record,), queries, (2, 5, 33, 50)[seed % 4], page_size)


def periodic_case(seed):
    """Repeats against themselves, interrupted here and there; most of them are skipped."""
    unit = ("AC", "A", "TTAGGG", "ACGGTCATTGCATTAC")[seed % 4]
    copies = unit * (1200 // len(unit))
    record = copies[:700] + "N" + copies[:300] + "T" + copies[1:200]
    queries = (record, copies[5:130] + "G" + copies[:260], "", copies[:7], copies[3:99] + "N")
    page_size = (ONE_PAGE, 500)[seed // 4 % 2]
    return SearchCase(
        f"periodic {seed}", (record, copies[:90]), queries, (12, 40)[seed // 8], page_size
    )


KMER_CASES = [
    *CASES,
    *(far_case(seed) for seed in range(8)),
    *(dense_case(seed) for seed in range(4)),
]


def repeats_case(seed):
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
    return SearchCase("repeats", (record, unit), ("", record[:9], *queries), 20, ONE_PAGE)


def satellite_case():
    """Reads of copies, half of copies and half of other bases, of two letters, and short ones."""
    case = repeats_case(0)
    random = np.random.default_rng(5)
    record = case.records[0]
    other = made_bases(random, 1200, "ACGT")
    queries = []
    for _ in range(24):
        at, before = int(random.integers(20_000)), int(random.integers(1000))
        read = (other[before : before + 70] + record[at : at + 110])[
            : int(random.integers(90, 170))
        ]
        for place in random.integers(len(read), size=int(random.integers(4))):
            read = read[:place] + "ACGT"[int(random.integers(4))] + read[place + 1 :]
        queries.append(read)
    queries += [record[at : at + 150] for at in range(0, 12_000, 1500)]
    # Frequent throughout but for one base, or two: as a whole they occur nowhere.
    queries += ["AC" * 30 + "G" + "AC" * 40, "AC" * 20 + "T" + "CA" * 30 + "G" + "AC" * 16]
    queries += ["AC" * 11 + "G" + "CA" * 10, "AC" * 24, record[7:60]]
    queries += ["AC" * 60, "CA" * 55 + "G", "A" * 30, record[:19], "N" * 100, record[:760]]
    records = (record, other + "AC" * 400 + other[:50], case.records[1])
    return SearchCase("satellite", records, tuple(queries), 20, ONE_PAGE)
