"""The kernels that make text, on the host, beside the text of the host's own formatter."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from helpers.device_cases import test_the_text_is_that_of_the_host  # noqa: F401
from helpers.host_device import HostDevice
from helpers.in_memory import reference_of
from helpers.kmer_cases import tables_of
from helpers.opened_backends import GENOME, REPEATS, OpenedBackend, close_all, refused
from helpers.search_cases import ANY, ONE_PAGE, STRANDS, SearchCase
from helpers.text_cases import STYLES, TEXT_CASES, awkwardly_named, columns_of, text_of_device
from helpers.watched_device import WatchedDevice

from mummergpu.errors import BackendError
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.matching.kmer import cuda_consumers
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.output.matches.mummer import MummerFormatter
from mummergpu.runtime.stats import Stats

WHOLE = SearchCase("genome", GENOME.records, GENOME.queries, GENOME.minimum_length, ONE_PAGE)


@pytest.mark.parametrize("window_bytes", [1, 1000, 1 << 12, 70_001])
@pytest.mark.parametrize("piece_bytes", [1, 999, 1 << 14])
def test_windows_and_pieces_of_any_size_join_to_the_whole(
    compiler, monkeypatch, window_bytes, piece_bytes
):
    monkeypatch.setattr(cuda_consumers, "WINDOW_BYTES", window_bytes)
    case = TEXT_CASES[1]
    formatter = MummerFormatter(case.reference, STYLES[-1], piece_bytes)
    device = HostDevice()
    text = text_of_device(device, compiler, formatter, case.block, case.columns)
    assert text == case.text(STYLES[-1])
    assert (device.launches.count("write_text") > 1) == (window_bytes < len(text))


Open = Callable[..., tuple[OpenedBackend[KmerCudaBackend], Callable[..., bytes]]]


@pytest.fixture
def opened(compiler):
    """Opens backends with a case loaded, each with the host's text; closes them."""
    every = []

    def open_backend(case, style=STYLES[-1], memory=None, with_columns=False):
        device, stats, notices = WatchedDevice(), Stats(), list[str]()
        backend = KmerCudaBackend(
            device, compiler, stats, notices.append, memory, closes_device=True
        )
        formatter = MummerFormatter(reference_of(case.records), style)
        row_format = formatter.row_format(with_columns)
        assert row_format is not None
        backend.set_format(row_format)
        backend.load_pages(tables_of(case, KmerSampling(3)), case.minimum_length)
        every.append(OpenedBackend(backend, device, stats, notices))

        def expected(block):
            rows = {strand: columns_of(case.expected(strand)) for strand in STRANDS}
            return b"".join(piece.tobytes() for piece in formatter.format_block(block, rows))

        return every[-1], expected

    yield open_backend
    close_all(every)


def joined(text):
    assert text is not None
    return b"".join(piece.tobytes() for piece in text.pieces)


@pytest.mark.parametrize("style", STYLES)
def test_a_search_returns_the_text_of_its_matches(opened, style):
    given, expected = opened(WHOLE, style)
    block = awkwardly_named(WHOLE.block())
    assert given.backend.makes_text
    found = given.backend.find_text(block, STRANDS, ANY)
    assert found is not None
    count = sum(len(rows) for strand in STRANDS for rows in WHOLE.expected(strand))
    assert joined(found) == expected(block) and found.count == count
    # The order of the strands that are asked for does not matter.
    assert joined(given.backend.find_text(block, STRANDS[::-1], count)) == expected(block)
    for most in (0, 1, count // 2, count - 1):
        assert given.backend.find_text(block, STRANDS, most) is None


def test_every_launch_and_byte_of_a_text_is_accounted_for(opened):
    given, _ = opened(WHOLE)
    block = awkwardly_named(WHOLE.block())
    given.device.launches.clear()
    before = dict(given.stats.bytes)
    text = joined(given.backend.find_text(block, STRANDS, ANY))
    launches = {name: kernel.launches for name, kernel in given.stats.kernels.items()}
    used = {name: count for name, count in launches.items() if count > 0}
    assert Counter(given.device.launches) == used
    assert used["count_text"] == used["write_text"] == 1
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


def test_pages_decide_whether_there_is_text(opened):
    given, _ = opened(WHOLE)
    whole = tables_of(WHOLE, KmerSampling(3))
    parts = tables_of(GENOME, KmerSampling(3))
    assert given.backend.makes_text and len(parts) > 1
    for pages in (parts, whole, parts[:2], parts[:1]):
        given.backend.load_pages(pages, WHOLE.minimum_length)
        assert given.backend.makes_text == (len(pages) == 1)
    given.backend.release_pages()
    assert not given.backend.makes_text


def test_names_that_do_not_fit_leave_the_search_with_columns(opened):
    given, _ = opened(WHOLE)
    pages = tables_of(WHOLE, KmerSampling(3))
    with refused(given.device, lambda number, size: False):
        given.backend.load_pages(pages, WHOLE.minimum_length)
        requests = given.device.requests
    # The last four are those of the records.
    for wanted in range(requests - 3, requests + 1):
        with refused(given.device, lambda number, size, wanted=wanted: number == wanted):
            given.backend.load_pages(pages, WHOLE.minimum_length)
        assert not given.backend.makes_text
        assert given.find(WHOLE.block()) == WHOLE.expected(STRANDS[0])


def test_any_request_may_be_refused_and_no_text_is_lost(opened):
    given, expected = opened(WHOLE)
    block = awkwardly_named(WHOLE.block())
    text = expected(block)
    with refused(given.device, lambda number, size: False):
        assert joined(given.backend.find_text(block, STRANDS, ANY)) == text
        requests = given.device.requests
    assert requests > 20
    for searcher in given.backend._searchers:
        searcher.release()
    for wanted in range(1, requests + 1):
        with refused(given.device, lambda number, size, wanted=wanted: number == wanted):
            assert joined(given.backend.find_text(block, STRANDS, ANY)) == text
        for searcher in given.backend._searchers:
            searcher.release()
    assert given.halved == [13] * requests
    assert given.device.refusals == requests


def test_blocks_that_do_not_fit_are_halved_and_a_query_that_does_not_has_no_text(
    opened, small_blocks
):
    given, expected = opened(REPEATS, memory=small_blocks)
    block = awkwardly_named(REPEATS.block())
    assert joined(given.backend.find_text(block, STRANDS, ANY)) == expected(block)
    assert given.halved[0] == 16
    long = SearchCase("long", REPEATS.records, ("A" * 3000,), 5)
    assert given.backend.find_text(awkwardly_named(long.block()), STRANDS, ANY) is None


def assert_same_columns(found, backend, block):
    expected = backend.find_mems(block, STRANDS, ANY)
    assert found is not None and expected is not None
    assert set(found.mems) == set(expected) == set(STRANDS)
    for strand, columns in expected.items():
        for name, values in columns._asdict().items():
            np.testing.assert_array_equal(getattr(found.mems[strand], name), values)
    assert sum(columns.count for columns in found.mems.values()) == found.count


def test_text_comes_with_columns_where_these_are_needed(opened, small_blocks):
    for case, memory in ((WHOLE, None), (REPEATS, small_blocks)):
        given, expected = opened(case, memory=memory, with_columns=True)
        block = awkwardly_named(case.block())
        found = given.backend.find_text(block, STRANDS, ANY)
        assert joined(found) == expected(block)
        assert bool(given.halved) == (memory is not None)
        assert_same_columns(found, given.backend, block)
        empty = block.part(0, 0)
        assert_same_columns(given.backend.find_text(empty, STRANDS, ANY), given.backend, empty)


def test_text_without_columns_copies_none(opened):
    given, _ = opened(WHOLE)
    found = given.backend.find_text(awkwardly_named(WHOLE.block()), STRANDS, ANY)
    assert found is not None and not found.mems


def test_halves_that_are_too_long_together_are_no_text(opened, small_blocks, monkeypatch):
    given, expected = opened(REPEATS, memory=small_blocks)
    block = awkwardly_named(REPEATS.block())
    size = len(expected(block))
    for limit in (size - 1, size):
        monkeypatch.setattr(cuda_consumers, "MAX_TEXT_BYTES", limit)
        found = given.backend.find_text(block, STRANDS, ANY)
        assert (found is None) == (limit < size)
    assert given.halved


def test_a_closed_backend_makes_no_text(opened):
    given, _ = opened(WHOLE)
    given.backend.close()
    with pytest.raises(BackendError, match="the backend is closed"):
        given.backend.find_text(WHOLE.block(), STRANDS, ANY)
