"""Every kernel finds what the processor finds, and leaves the same text, columns and paths."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest
from helpers import both_backends
from helpers.both_backends import as_lists, differences, kmer_case, kmer_differences, random_case
from helpers.chain_cases import *  # noqa: F403
from helpers.device_cases import (
    test_the_columns_are_those_of_the_host,  # noqa: F401
    test_the_text_is_that_of_the_host,  # noqa: F401
    wrong_columns,
    wrong_text,
)
from helpers.kmer_cases import tables_of
from helpers.search_cases import ONE_PAGE, SearchCase, find_on
from helpers.text_cases import STYLES, many_rows

from mummergpu.hmm.language.device import DeviceChains
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.matching.kmer.cuda_consumers import WINDOW_BYTES
from mummergpu.runtime.stats import Stats

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.mark.parametrize("wide", [False, True], ids=["paper", "wide"])
@pytest.mark.parametrize("seed", range(2))
def test_all_policies_agree(device, cache, wide, seed):
    # A wide two-dimensional tree takes a strip of 24 MiB for each page: no tiny pages there.
    assert differences(device, cache, random_case(seed), both_backends.ALL_POLICIES, wide) == []


@pytest.mark.parametrize("seed", range(2, 14))
def test_many_cases_agree(device, cache, seed):
    policies = both_backends.ALL_POLICIES[seed * 7 % 128 :: 37]
    assert differences(device, cache, random_case(seed), policies, False) == []


@pytest.mark.parametrize("minimum_length", [*range(1, 21), 25, 31, 32, 33, 34, 40, 47, 59, 60])
def test_the_kmer_search_agrees(device, cache, minimum_length):
    case = kmer_case(minimum_length, minimum_length)
    # Steps of one base and of nearly as many as a match has, and what is chosen.
    lengths = {min(minimum_length, 9), min(minimum_length, 3), 1 + minimum_length // 8}
    samplings = [
        KmerSampling(length, step)
        for length in sorted(lengths)
        for step in (1, 2, 5)
        if length + step - 1 <= minimum_length
    ]
    assert kmer_differences(device, cache, case, samplings) == []


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("page_size", [90, 700, 4000])
def test_tables_of_parts_agree(device, cache, page_size, seed):
    case = replace(kmer_case(seed, (6, 15, 28)[seed % 3]), page_size=page_size)
    samplings = [KmerSampling(2), KmerSampling(5), KmerSampling(2, 3), KmerSampling(5, 2)]
    assert kmer_differences(device, cache, case, samplings) == []


def test_kmers_that_are_everywhere_agree(device, cache):
    """Lists of 20,000 places: as of a satellite, or of telomeres."""
    bases = list("TTAGGG" * 3400)
    bases[::1511] = "N" * len(bases[::1511])
    record = "".join([*bases[:9000], *"A" * 500, *bases[9500:]])
    places = ((100, 160), (8900, 9100), (9100, 9300), (1500, 1560), (0, 0))
    queries = tuple(record[begin:end] for begin, end in places)
    case = SearchCase("telomere", (record,), queries, 40)
    samplings = [*map(KmerSampling, (2, 4, 9, 10)), KmerSampling(4, 3), KmerSampling(9, 11)]
    assert kmer_differences(device, cache, case, samplings) == []


def test_many_streams_search_tables_at_once(device, cache):
    case = replace(kmer_case(3, 14), page_size=ONE_PAGE)
    block = case.block()
    backend = KmerCudaBackend(device, cache, Stats(), lambda _: None)
    backend.load_pages(tables_of(case, KmerSampling(6)), case.minimum_length)
    expected = as_lists(find_on(backend, block))
    one, other = block.halves()
    halves = [as_lists(find_on(backend, half)) for half in (one, other)]
    assert halves[0][1] + halves[1][1] == expected[1]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda block: find_on(backend, block), [block, one, other] * 8))
    assert [as_lists(columns) for columns in found] == [expected, *halves] * 8
    assert find_on(backend, block, max_rows=len(expected[1]) - 1) is None
    backend.close()


@pytest.mark.parametrize("record_count", [1, 2000])
def test_many_rows_are_those_of_the_host(device, cache, record_count):
    """Lines of several windows."""
    case = many_rows(record_count)
    for style in (STYLES[0], STYLES[7]):
        assert len(case.text(style)) > 2 * WINDOW_BYTES
        assert wrong_text(device, cache, case, style) is None
    assert wrong_columns(device, cache, case) is None


@pytest.fixture
def open_chains(device, cache):
    @contextmanager
    def opened(double, stats):
        with device.current():
            chains = DeviceChains(device, cache, 1 << 26, stats, double)
            yield chains
            chains.close()

    return opened
