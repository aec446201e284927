"""The kernels that leave columns or text, on the host, beside the host's own."""

import gc
from collections import Counter
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from helpers import text_cases
from helpers.device_cases import (
    test_the_columns_are_those_of_the_host,  # noqa: F401
    test_the_text_is_that_of_the_host,  # noqa: F401
)
from helpers.device_columns import columns_of_device, columns_of_host, difference, on_host, taken
from helpers.host_device import HostDevice
from helpers.in_memory import reference_of
from helpers.kmer_cases import KMER_CASES, tables_of
from helpers.opened_backends import GENOME, REPEATS, refused
from helpers.search_cases import ANY, ONE_PAGE, STRANDS, SearchCase

from mummergpu.errors import BackendError
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.input.reference import record_lookup
from mummergpu.matching.kmer import cuda_consumers
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.output.matches.mummer import MummerFormatter

WHOLE = SearchCase("genome", GENOME.records, GENOME.queries, GENOME.minimum_length, ONE_PAGE)
BLOCK = WHOLE.block()


def test_columns_are_numbered_after_those_before(compiler):
    case = text_cases.TEXT_CASES[2]
    expected = columns_of_host(case)
    expected["query"] = expected["query"] + np.uint32(70_000)
    expected["offsets"] = expected["offsets"] + (1 << 33)
    device = HostDevice(1 << 32)
    columns = columns_of_device(device, compiler, case, 70_000, 1 << 33)
    assert difference(on_host(columns), expected) is None
    assert not device.buffers and len(device.shared) == len(fields(columns))
    del columns
    assert not device.shared


@pytest.fixture
def with_records(opened_tables):
    """Opens backends with a case loaded; in the end no column is left on their devices."""
    every = []

    def open_with_records(case, memory=None, kmer_length=1):
        every.append(opened_tables(memory=memory))
        reference, backend = reference_of(case.records), every[-1].backend
        backend.set_records(record_lookup(reference.record_starts, reference.codes.size))
        every[-1].load_pages(case, kmer_length)
        return every[-1]

    yield open_with_records
    gc.collect()
    assert not any(one.device.shared for one in every)


def expected_columns(given, case, block, strands=STRANDS):
    mems = given.backend.find_mems(block, strands, ANY)
    assert mems is not None
    return columns_of_host(text_cases.TextCase("", reference_of(case.records), block, mems))


def in_parts(block, *ends):
    return [block.part(begin, end) for begin, end in pairwise([0, *ends, block.query_count])]


@pytest.mark.parametrize(
    "case", [one for one in KMER_CASES if one.page_size == ONE_PAGE], ids=lambda case: case.name
)
def test_a_search_leaves_what_it_would_return(with_records, case):
    given, block = with_records(case), case.block()
    for strands in (STRANDS, STRANDS[:1], STRANDS[1:]):
        columns = given.backend.find_columns([block], strands)
        found, expected = on_host(columns), expected_columns(given, case, block, strands)
        assert difference(found, expected) is None, strands


@pytest.mark.parametrize("ends", [(), (1,), (0, 5, 5, 9), tuple(range(13))])
def test_blocks_are_joined_in_order(with_records, ends):
    given, block = with_records(WHOLE), WHOLE.block()
    columns = given.backend.find_columns(in_parts(block, *ends), STRANDS)
    assert difference(on_host(columns), expected_columns(given, WHOLE, block)) is None
    # The parts are not kept.
    assert len(given.device.shared) == len(fields(columns))


def test_without_blocks_there_is_an_offset(with_records):
    columns = on_host(with_records(WHOLE).backend.find_columns([], STRANDS))
    assert columns["offsets"].tolist() == [0]
    assert all(column.size == 0 for name, column in columns.items() if name != "offsets")


def test_the_first_block_decides_nothing_before_it_is_asked_for(with_records):
    given, drawn = with_records(WHOLE), []

    def blocks():
        for number, part in enumerate(in_parts(WHOLE.block(), 3, 7)):
            assert given.device.launches.count("write_row_offsets") == number
            drawn.append(number)
            yield part

    given.backend.find_columns(blocks(), STRANDS)
    assert drawn == [0, 1, 2]


def test_columns_outlive_the_backend(with_records):
    given, block = with_records(WHOLE), WHOLE.block()
    expected = expected_columns(given, WHOLE, block)
    columns = given.backend.find_columns([block], STRANDS)
    given.backend.close()
    assert given.device.closed and given.device.shared
    assert difference(on_host(columns), expected) is None
    length = taken(columns.length)
    del columns
    assert len(given.device.shared) == 1 and np.array_equal(length, expected["length"])
    del length
    assert not given.device.shared


def test_any_request_may_be_refused_and_nothing_is_lost(with_records):
    """Without room for the work a block is halved; without room for columns there is an error."""
    given, block = with_records(WHOLE), WHOLE.block()
    expected = expected_columns(given, WHOLE, block)
    given.release()
    parts = in_parts(block, 5)
    errors = 0
    for _ in given.refusals(lambda: given.backend.find_columns(parts, STRANDS)):
        try:
            columns = given.backend.find_columns(parts, STRANDS)
        except BackendError as error:
            assert "do not fit the device's memory" in error.message
            errors += 1
        else:
            assert difference(on_host(columns), expected) is None
            del columns
        assert not given.device.shared
    assert errors == 3 * 7 and len(given.halved) == given.device.refusals - errors


def test_blocks_that_do_not_fit_are_halved_down_to_a_query(with_records, small_blocks):
    given, block = with_records(REPEATS, small_blocks), REPEATS.block()
    columns = given.backend.find_columns([block], STRANDS)
    assert given.halved[0] == 16
    assert difference(on_host(columns), expected_columns(given, REPEATS, block)) is None
    del columns
    long = SearchCase("long", REPEATS.records, ("A" * 3000,), 5)
    with pytest.raises(BackendError, match="a query of 3,000 bases, or its matches, do not fit"):
        given.backend.find_columns([block, long.block()], STRANDS)
    assert not given.device.shared


def test_a_failing_device_leaves_no_columns(with_records):
    given = with_records(WHOLE)
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


@pytest.mark.parametrize("window_bytes", [1, 1000, 1 << 12, 70_001])
@pytest.mark.parametrize("piece_bytes", [1, 999, 1 << 14])
def test_windows_and_pieces_of_any_size_join_to_the_whole(
    compiler, monkeypatch, window_bytes, piece_bytes
):
    monkeypatch.setattr(cuda_consumers, "WINDOW_BYTES", window_bytes)
    case = text_cases.TEXT_CASES[1]
    formatter = MummerFormatter(case.reference, text_cases.STYLES[-1], piece_bytes)
    device = HostDevice()
    text = text_cases.text_of_device(device, compiler, formatter, case.block, case.columns)
    assert text == case.text(text_cases.STYLES[-1])
    assert (device.launches.count("write_text") > 1) == (window_bytes < len(text))


@pytest.fixture
def with_format(opened_tables):
    """Opens backends with a case loaded, each with the host's text."""

    def open_with_format(case, style=text_cases.STYLES[-1], memory=None, with_columns=False):
        given = opened_tables(memory=memory)
        formatter = MummerFormatter(reference_of(case.records), style)
        given.backend.set_format(formatter.row_format(with_columns))
        given.load_pages(case)

        def expected(block):
            rows = {strand: text_cases.columns_of(case.expected(strand)) for strand in STRANDS}
            return b"".join(piece.tobytes() for piece in formatter.format_block(block, rows))

        return given, expected

    return open_with_format


def joined(text):
    return b"".join(piece.tobytes() for piece in text.pieces)


@pytest.mark.parametrize("style", text_cases.STYLES)
def test_a_search_returns_the_text_of_its_matches(with_format, style):
    given, expected = with_format(WHOLE, style)
    block = text_cases.awkwardly_named(WHOLE.block())
    assert given.backend.makes_text
    found = given.backend.find_text(block, STRANDS, ANY)
    count = sum(len(rows) for strand in STRANDS for rows in WHOLE.expected(strand))
    assert joined(found) == expected(block) and found.count == count
    # The order of the strands that are asked for does not matter.
    assert joined(given.backend.find_text(block, STRANDS[::-1], count)) == expected(block)
    for most in (0, 1, count // 2, count - 1):
        assert given.backend.find_text(block, STRANDS, most) is None


def test_every_launch_and_byte_of_a_text_is_accounted_for(with_format):
    given, _ = with_format(WHOLE)
    block = text_cases.awkwardly_named(WHOLE.block())
    given.device.launches.clear()
    before = dict(given.stats.bytes)
    text = joined(given.backend.find_text(block, STRANDS, ANY))
    launches = {name: kernel.launches for name, kernel in given.stats.kernels.items()}
    used = {name: count for name, count in launches.items() if count > 0}
    assert Counter(given.device.launches) == used and used["count_text"] == used["write_text"] == 1
    assert given.stats.stages["text_kernel"].count == 2
    assert given.stats.stages["kmer_kernel"].count == sum(used.values()) - 2
    # Two strands have two headers for each query.
    tiles = -(-text.count(b"\n") // 32)
    assert given.stats.bytes["from_device"] == len(text) + 8 * (tiles + 1)
    sent = given.stats.bytes["to_device"] - before["to_device"]
    names = block.names.nbytes + block.name_offsets.nbytes
    assert sent == block.codes.nbytes + block.offsets.nbytes + names
    for kernel in KmerCudaBackend.kernels:
        assert given.stats.kernels[kernel].resources["registers"] == 1


@pytest.fixture(params=["columns", "text"])
def with_output(request):
    """A backend, whether it leaves columns or text, how, and the requests of the records."""
    if request.param == "columns":
        given = request.getfixturevalue("with_records")(WHOLE)
        search = given.backend.find_columns
        return given, lambda: given.backend.leaves_columns, lambda: search([BLOCK], STRANDS), 2
    given, _ = request.getfixturevalue("with_format")(WHOLE)
    search = given.backend.find_text
    return given, lambda: given.backend.makes_text, lambda: search(BLOCK, STRANDS, ANY), 4


def test_pages_decide_whether_there_is_output(with_output):
    given, has_output, _, _ = with_output
    whole, parts = tables_of(WHOLE, KmerSampling(3)), tables_of(GENOME, KmerSampling(3))
    assert has_output() and len(parts) > 1
    for pages in (parts, whole, parts[:2], parts[:1]):
        given.backend.load_pages(pages, WHOLE.minimum_length)
        assert has_output() == (len(pages) == 1)
    given.backend.release_pages()
    assert not has_output()


def test_without_room_for_the_records_there_is_no_output(with_output):
    given, has_output, _, of_records = with_output
    pages = tables_of(WHOLE, KmerSampling(3))
    with refused(given.device, lambda number, size: False):
        given.backend.load_pages(pages, WHOLE.minimum_length)
        requests = given.device.requests
    for wanted in range(requests - of_records + 1, requests + 1):
        with refused(given.device, lambda number, size, wanted=wanted: number == wanted):
            given.backend.load_pages(pages, WHOLE.minimum_length)
        assert not has_output()
        assert given.find(BLOCK) == WHOLE.expected(STRANDS[0])


def test_a_closed_backend_has_no_output(with_output):
    given, _, search, _ = with_output
    given.backend.close()
    with pytest.raises(BackendError, match="the backend is closed"):
        search()


def test_any_request_may_be_refused_and_no_text_is_lost(with_format):
    given, expected = with_format(WHOLE)
    block = text_cases.awkwardly_named(WHOLE.block())
    text = expected(block)
    for _ in given.refusals(lambda: given.backend.find_text(block, STRANDS, ANY)):
        assert joined(given.backend.find_text(block, STRANDS, ANY)) == text
    assert given.halved == [13] * given.device.refusals and given.device.refusals > 20


def test_blocks_that_do_not_fit_are_halved_and_a_query_that_does_not_has_no_text(
    with_format, small_blocks
):
    given, expected = with_format(REPEATS, memory=small_blocks)
    block = text_cases.awkwardly_named(REPEATS.block())
    assert joined(given.backend.find_text(block, STRANDS, ANY)) == expected(block)
    assert given.halved[0] == 16
    long = SearchCase("long", REPEATS.records, ("A" * 3000,), 5)
    assert given.backend.find_text(text_cases.awkwardly_named(long.block()), STRANDS, ANY) is None


def assert_same_columns(found, backend, block):
    expected = backend.find_mems(block, STRANDS, ANY)
    assert set(found.mems) == set(expected) == set(STRANDS)
    for strand, columns in expected.items():
        for name, values in columns._asdict().items():
            np.testing.assert_array_equal(getattr(found.mems[strand], name), values)
    assert sum(columns.count for columns in found.mems.values()) == found.count


def test_text_comes_with_columns_where_these_are_needed(with_format, small_blocks):
    for case, memory in ((WHOLE, None), (REPEATS, small_blocks)):
        given, expected = with_format(case, memory=memory, with_columns=True)
        block = text_cases.awkwardly_named(case.block())
        found = given.backend.find_text(block, STRANDS, ANY)
        assert joined(found) == expected(block) and bool(given.halved) == (memory is not None)
        assert_same_columns(found, given.backend, block)
        empty = block.part(0, 0)
        assert_same_columns(given.backend.find_text(empty, STRANDS, ANY), given.backend, empty)


def test_text_without_columns_copies_none(with_format):
    given, _ = with_format(WHOLE)
    found = given.backend.find_text(text_cases.awkwardly_named(WHOLE.block()), STRANDS, ANY)
    assert found is not None and not found.mems


def test_halves_that_are_too_long_together_are_no_text(with_format, small_blocks, monkeypatch):
    given, expected = with_format(REPEATS, memory=small_blocks)
    block = text_cases.awkwardly_named(REPEATS.block())
    size = len(expected(block))
    for limit in (size - 1, size):
        monkeypatch.setattr(cuda_consumers, "MAX_TEXT_BYTES", limit)
        assert (given.backend.find_text(block, STRANDS, ANY) is None) == (limit < size)
    assert given.halved
