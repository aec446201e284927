"""The kernels that leave columns on the device, on the host, beside the host's own table."""

import gc
from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from helpers.device_cases import test_the_columns_are_those_of_the_host  # noqa: F401
from helpers.device_columns import columns_of_device, columns_of_host, difference, on_host, taken
from helpers.host_device import HostDevice
from helpers.in_memory import reference_of
from helpers.kmer_cases import KMER_CASES, tables_of
from helpers.opened_backends import GENOME, REPEATS, OpenedBackend, close_all, refused
from helpers.search_cases import ANY, ONE_PAGE, STRANDS, SearchCase
from helpers.text_cases import TEXT_CASES, TextCase
from helpers.watched_device import WatchedDevice

from mummergpu.errors import BackendError
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.input.reference import record_lookup
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.runtime.stats import Stats

WHOLE = SearchCase("genome", GENOME.records, GENOME.queries, GENOME.minimum_length, ONE_PAGE)


def test_columns_are_numbered_after_those_before(compiler):
    case = TEXT_CASES[2]
    expected = columns_of_host(case)
    expected["query"] = expected["query"] + np.uint32(70_000)
    expected["offsets"] = expected["offsets"] + (1 << 33)
    device = HostDevice(1 << 32)
    columns = columns_of_device(device, compiler, case, 70_000, 1 << 33)
    assert difference(on_host(columns), expected) is None
    assert not device.buffers and len(device.shared) == len(fields(columns))
    del columns
    assert not device.shared


Open = Callable[..., OpenedBackend[KmerCudaBackend]]


@pytest.fixture
def opened(compiler):
    """Opens backends with a case loaded; closes them."""
    every = []

    def open_backend(case, memory=None, kmer_length=1):
        device, stats, notices = WatchedDevice(), Stats(), list[str]()
        backend = KmerCudaBackend(
            device, compiler, stats, notices.append, memory, closes_device=True
        )
        reference = reference_of(case.records)
        backend.set_records(record_lookup(reference.record_starts, reference.codes.size))
        backend.load_pages(tables_of(case, KmerSampling(kmer_length)), case.minimum_length)
        every.append(OpenedBackend(backend, device, stats, notices))
        return every[-1]

    yield open_backend
    gc.collect()
    close_all(every)
    assert not any(one.device.shared for one in every)


def expected_columns(given, case, block, strands=STRANDS):
    mems = given.backend.find_mems(block, strands, ANY)
    assert mems is not None
    return columns_of_host(TextCase("", reference_of(case.records), block, mems))


def in_parts(block, *ends):
    bounds = [0, *ends, block.query_count]
    return [block.part(begin, end) for begin, end in pairwise(bounds)]


@pytest.mark.parametrize(
    "case", [one for one in KMER_CASES if one.page_size == ONE_PAGE], ids=lambda case: case.name
)
def test_a_search_leaves_what_it_would_return(opened, case):
    given, block = opened(case), case.block()
    for strands in (STRANDS, STRANDS[:1], STRANDS[1:]):
        columns = given.backend.find_columns([block], strands)
        found, expected = on_host(columns), expected_columns(given, case, block, strands)
        assert difference(found, expected) is None, strands


@pytest.mark.parametrize("ends", [(), (1,), (0, 5, 5, 9), tuple(range(13))])
def test_blocks_are_joined_in_order(opened, ends):
    given, block = opened(WHOLE), WHOLE.block()
    columns = given.backend.find_columns(in_parts(block, *ends), STRANDS)
    assert difference(on_host(columns), expected_columns(given, WHOLE, block)) is None
    # The parts are not kept.
    assert len(given.device.shared) == len(fields(columns))


def test_without_blocks_there_is_an_offset(opened):
    columns = on_host(opened(WHOLE).backend.find_columns([], STRANDS))
    assert columns["offsets"].tolist() == [0]
    assert all(column.size == 0 for name, column in columns.items() if name != "offsets")


def test_the_first_block_decides_nothing_before_it_is_asked_for(opened):
    given, drawn = opened(WHOLE), list[int]()

    def blocks():
        for number, part in enumerate(in_parts(WHOLE.block(), 3, 7)):
            assert given.device.launches.count("write_row_offsets") == number
            drawn.append(number)
            yield part

    given.backend.find_columns(blocks(), STRANDS)
    assert drawn == [0, 1, 2]


def test_columns_outlive_the_backend(opened):
    given, block = opened(WHOLE), WHOLE.block()
    expected = expected_columns(given, WHOLE, block)
    columns = given.backend.find_columns([block], STRANDS)
    given.backend.close()
    assert given.device.closed and given.device.shared
    assert difference(on_host(columns), expected) is None
    length = taken(columns.length)
    del columns
    assert len(given.device.shared) == 1
    assert np.array_equal(length, expected["length"])
    del length
    assert not given.device.shared


def test_pages_decide_whether_columns_are_left(opened):
    given = opened(WHOLE)
    whole, parts = tables_of(WHOLE, KmerSampling(3)), tables_of(GENOME, KmerSampling(3))
    for pages in (parts, whole, parts[:2], parts[:1]):
        given.backend.load_pages(pages, WHOLE.minimum_length)
        assert given.backend.leaves_columns == (len(pages) == 1)
    given.backend.release_pages()
    assert not given.backend.leaves_columns


def test_without_room_for_the_records_no_columns_are_left(opened):
    given = opened(WHOLE)
    pages = tables_of(WHOLE, KmerSampling(3))
    with refused(given.device, lambda number, size: False):
        given.backend.load_pages(pages, WHOLE.minimum_length)
        requests = given.device.requests
    for wanted in (requests - 1, requests):
        with refused(given.device, lambda number, size, wanted=wanted: number == wanted):
            given.backend.load_pages(pages, WHOLE.minimum_length)
        assert not given.backend.leaves_columns
        assert given.find(WHOLE.block()) == WHOLE.expected(STRANDS[0])


def test_any_request_may_be_refused_and_nothing_is_lost(opened):
    """Without room for the work a block is halved; without room for columns there is an error."""
    given, block = opened(WHOLE), WHOLE.block()
    expected = expected_columns(given, WHOLE, block)
    for searcher in given.backend._searchers:
        searcher.release()
    parts = in_parts(block, 5)
    with refused(given.device, lambda number, size: False):
        given.backend.find_columns(parts, STRANDS)
        requests = given.device.requests
    errors = 0
    for wanted in range(1, requests + 1):
        for searcher in given.backend._searchers:
            searcher.release()
        with refused(given.device, lambda number, size, wanted=wanted: number == wanted):
            try:
                columns = given.backend.find_columns(parts, STRANDS)
            except BackendError as error:
                assert "do not fit the device's memory" in error.message
                errors += 1
            else:
                assert difference(on_host(columns), expected) is None
                del columns
        assert not given.device.shared
    assert errors == 3 * 7
    assert len(given.halved) == requests - errors


def test_blocks_that_do_not_fit_are_halved_down_to_a_query(opened, small_blocks):
    given, block = opened(REPEATS, small_blocks), REPEATS.block()
    columns = given.backend.find_columns([block], STRANDS)
    assert given.halved[0] == 16
    assert difference(on_host(columns), expected_columns(given, REPEATS, block)) is None
    del columns
    long = SearchCase("long", REPEATS.records, ("A" * 3000,), 5)
    with pytest.raises(BackendError, match="a query of 3,000 bases, or its matches, do not fit"):
        given.backend.find_columns([block, long.block()], STRANDS)
    assert not given.device.shared


def test_a_failing_device_leaves_no_columns(opened):
    given = opened(WHOLE)
    parts = in_parts(WHOLE.block(), 4)
    for kernel in ("write_kmer_mems", "write_match_columns", "write_row_offsets"):
        for number in (1, 2):
            launches = 0

            def fail(name, kernel=kernel, number=number):
                nonlocal launches
                launches += name == kernel
                if launches == number:
                    raise BackendError("cuda", "the device failed: played")

            given.device.before_launch = fail
            with pytest.raises(BackendError, match="played"):
                given.backend.find_columns(parts, STRANDS)
            assert not given.device.shared
    given.device.before_launch = lambda kernel: None
    assert given.find(WHOLE.block()) == WHOLE.expected(STRANDS[0])


def test_a_closed_backend_leaves_no_columns(opened):
    given = opened(WHOLE)
    given.backend.close()
    with pytest.raises(BackendError, match="the backend is closed"):
        given.backend.find_columns([WHOLE.block()], STRANDS)
