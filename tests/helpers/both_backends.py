"""Small random searches, on both backends, whose results must be equal."""

from dataclasses import replace
from itertools import product

import numpy as np

from helpers import search_cases
from helpers.kmer_cases import tables_of
from helpers.search_cases import ANY, COLUMNS, ONE_PAGE, STRANDS, SearchCase, made_bases
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import LETTERS, Policy
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.matching.tree.cpu import TreeCpuBackend
from mummergpu.matching.tree.cuda import TreeCudaBackend
from mummergpu.runtime.stats import Stats

ALL_POLICIES = [
    Policy(**dict(zip(LETTERS, flags, strict=True)))
    for flags in product((False, True), repeat=len(LETTERS))
]


def random_case(seed, bases=3000, queries=200):
    """Return a case with breaks, repeats, a homopolymer, and more letters in some than others."""
    random = np.random.default_rng(seed)
    letters = "ACGT"[: 2 + seed % 3]
    record = made_bases(random, bases, letters, 0.01)
    for begin, to in random.integers(0, bases - 200, (6, 2)):
        record = record[:to] + record[begin : begin + 120] + record[to + 120 :]
    record = record[: bases // 2] + "A" * 80 + record[bases // 2 + 80 :]
    made = (*search_cases.made_queries(random, record, queries, 150, letters, 0.03), "A" * 60)
    page_size = (ONE_PAGE, 700, 90)[seed % 3]
    return SearchCase(f"random {seed}", (record,), made, (9, 12, 20, 4)[seed % 4], page_size)


def kmer_case(seed, minimum_length):
    """A case for a k-mer search: fewer bases where nearly everything matches.

    Of two letters many k-mers are heavy; a repeat that is long and has errors gives matches that
    are longer than a step, from many query_kmers.
    """
    size = 1 if minimum_length < 6 else 5
    case = random_case(seed, 700 * size, 30 * size)
    bases = list(case.records[0])
    unit = bases[:171]
    for copy in range(size):
        begin = 300 + 171 * copy
        bases[begin : begin + 171] = unit
        bases[begin + 20 * copy] = "ACGT"[copy % 4]
    long = [*bases[60:-40], *"A" * 90, *bases[200:600]]
    long[:: 97 + seed] = "N" * len(long[:: 97 + seed])
    queries = (*case.queries, "", "".join(long))
    return replace(case, records=("".join(bases),), queries=queries, minimum_length=minimum_length)


def find_both(backend, block):
    """What a backend finds on both strands, which it is asked for at once."""
    found = backend.find_mems(block, STRANDS, ANY)
    assert found is not None and list(found) == list(STRANDS)
    return {strand: as_lists(columns) for strand, columns in found.items()}


def as_lists(columns):
    return [getattr(columns, name).tolist() for name in COLUMNS]


def on_processor(case):
    """What a tree on the processor finds."""
    cpu = TreeCpuBackend(Stats())
    cpu.load_pages(case.pages(Layout.of(Policy())), case.minimum_length)
    found = find_both(cpu, case.block())
    assert any(columns[1] for columns in found.values())
    return found


def strands_that_differ(found, expected):
    return [strand.name for strand in STRANDS if found[strand] != expected[strand]]


def differences(device, cache, case, policies, wide):
    """Search a case under each policy; return where the backends differ."""
    expected = on_processor(case)
    found = []
    for policy in policies:
        backend = TreeCudaBackend(device, cache, policy, Stats(), lambda _: None)
        backend.load_pages(case.pages(Layout.of(policy, wide)), case.minimum_length)
        if strands := strands_that_differ(find_both(backend, case.block()), expected):
            found.append(f"{policy.code} {'wide' if wide else 'paper'} {strands}")
        backend.close()
    return found


def kmer_differences(device, cache, case, samplings):
    """Search a case with some tables of k-mers; return where the backends differ.

    They are held against a tree on the processor: the other search, and the other backend.
    """
    expected = on_processor(replace(case, page_size=ONE_PAGE))
    found = []
    for sampling in samplings:
        pages = tables_of(case, sampling)
        on_host = KmerCpuBackend(Stats())
        on_device = KmerCudaBackend(device, cache, Stats(), lambda _: None)
        for backend in (on_host, on_device):
            backend.load_pages(pages, case.minimum_length)
            if strands := strands_that_differ(find_both(backend, case.block()), expected):
                found.append(f"{backend.name}, {sampling}, {len(pages)} parts, {strands}")
        on_device.close()
    return found
