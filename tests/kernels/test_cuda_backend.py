"""The cuda backend around its kernels: groups of pages, many threads, what is counted, the end.

The device is the host's, the kernels are their own source. What the kernels find under every
policy is for `test_host_kernels.py`; here little is searched.
"""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from helpers.host_device import everything_given_back
from helpers.in_memory import block_of
from helpers.opened_backends import FORWARD, GENOME, REPEATS
from helpers.search_cases import ANY, STRANDS, find_on, rows_of
from helpers.watched_device import WatchedDevice

from mummergpu.errors import BackendError
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.backends.cuda_streams import STREAMS
from mummergpu.matching.tree import cuda as resident
from mummergpu.matching.tree import cuda_program
from mummergpu.matching.tree.cpu import TreeCpuBackend
from mummergpu.matching.tree.cuda import KERNELS, TreeCudaBackend
from mummergpu.matching.tree.cuda_program import tree_program
from mummergpu.runtime.stats import Stats


def test_both_strands_are_searched(opened_trees):
    given = opened_trees()
    given.load_pages(GENOME)
    for strand in STRANDS:
        assert given.find(GENOME.block(), strand=strand) == GENOME.expected(strand)
    assert given.halved == []


@pytest.mark.parametrize("code", ["m", "QRT"])
def test_a_block_is_sent_once_for_both_strands(opened_trees, code):
    given = opened_trees(code)
    given.load_pages(GENOME)
    block = GENOME.block()
    moved = [given.stats.bytes["to_device"]]
    found = []
    for strands in ((FORWARD,), STRANDS, STRANDS[::-1], (STRANDS[1],)):
        found.append(given.backend.find_mems(block, strands, ANY))
        assert found[-1] is not None and list(found[-1]) == list(strands)
        moved.append(given.stats.bytes["to_device"])
        for strand, columns in found[-1].items():
            assert rows_of(columns) == GENOME.expected(strand)
    sent = {after - before for before, after in pairwise(moved)}
    assert sent == {block.codes.nbytes + block.offsets.nbytes}
    assert Counter(given.device.launches)["reverse_complement"] == 3
    assert all(len(columns) in (1, 2) for columns in found)


def test_more_matches_on_both_strands_than_there_may_be_are_none(opened_trees):
    given = opened_trees()
    given.load_pages(GENOME)
    counts = [sum(map(len, GENOME.expected(strand))) for strand in STRANDS]
    assert given.backend.find_mems(GENOME.block(), STRANDS, sum(counts)) is not None
    assert given.backend.find_mems(GENOME.block(), STRANDS, sum(counts) - 1) is None
    assert given.backend.find_mems(GENOME.block(), STRANDS, counts[0]) is None


def groups_of(pages):
    return [pages[:2], pages[2:3], pages[3:], pages[-1:], pages]


def test_groups_of_pages_take_each_others_place(opened_trees):
    given = opened_trees()
    pages = GENOME.pages(Layout.of(given.policy))
    assert len(pages) >= 5
    block = GENOME.block()
    cpu = TreeCpuBackend(Stats())
    held = []
    for group in groups_of(pages):
        given.backend.load_pages(group, GENOME.minimum_length)
        held.append(given.device.used)
        # The tree and the bases of each page, and all bases where a match can go on.
        goes_on = group[0].page.end < pages[-1].page.end
        assert len(given.device.buffers) == 2 * len(group) + goes_on
    assert held[-1] == max(held)
    for group, used in zip(groups_of(pages), held, strict=True):
        other = opened_trees()
        other.backend.load_pages(group, GENOME.minimum_length)
        assert other.device.used == used, "nothing is left of the groups before"
        given.backend.load_pages(group, GENOME.minimum_length)
        cpu.load_pages(group, GENOME.minimum_length)
        expected = find_on(cpu, block)
        assert expected is not None and expected.count > 0
        assert given.find(block) == rows_of(expected)
    assert given.find(block) == GENOME.expected(FORWARD)


def test_each_format_is_compiled_once(opened_trees, compiler):
    given = opened_trees()
    before = len(compiler.asked)
    for wide in (False, True, False, True):
        given.load_pages(GENOME, wide)
        assert given.find(GENOME.block()) == GENOME.expected(FORWARD)
    wanted = [tree_program(given.policy, wide, False) for wide in (False, True)]
    assert compiler.asked[before:] == wanted
    assert given.stats.stages["kernels_compiled"].count == 2


def test_closing_gives_everything_back(opened_trees):
    for searches in range(3):
        given = opened_trees("QRTmrt")
        for _ in range(searches):
            given.load_pages(GENOME)
            given.find(GENOME.block())
        given.backend.close()
        assert everything_given_back(given.device)


def test_a_device_that_is_borrowed_stays_open(compiler):
    device, policy = WatchedDevice(), Policy.from_code("m")
    for _ in range(2):
        backend = TreeCudaBackend(device, compiler, policy, Stats(), lambda line: None)
        backend.load_pages(GENOME.pages(Layout.of(policy)), GENOME.minimum_length)
        columns = find_on(backend, GENOME.block())
        assert columns is not None and rows_of(columns) == GENOME.expected(FORWARD)
        backend.close()
        assert not device.closed and not device.buffers and not device.streams


def test_closing_waits_for_the_searches_under_way(opened_trees):
    given = opened_trees()
    given.load_pages(GENOME)
    begun, go_on = threading.Event(), threading.Event()

    def before_launch(kernel):
        begun.set()
        assert go_on.wait(60)

    given.device.before_launch = before_launch
    with ThreadPoolExecutor(2) as pool:
        search = pool.submit(given.find, GENOME.block())
        assert begun.wait(60)
        closing = pool.submit(given.backend.close)
        with pytest.raises(TimeoutError):
            closing.result(0.2)
        assert not given.device.closed
        assert len(given.device.buffers) > 5 and len(given.device.streams) == 1 + STREAMS
        go_on.set()
        assert search.result(60) == GENOME.expected(FORWARD)
        closing.result(60)
    assert everything_given_back(given.device)


def test_searches_that_wait_for_a_stream_end_with_the_backend(opened_trees):
    given = opened_trees()
    given.load_pages(GENOME)
    begun, go_on = threading.Semaphore(0), threading.Event()

    def before_launch(kernel):
        begun.release()
        assert go_on.wait(60)

    given.device.before_launch = before_launch
    with ThreadPoolExecutor(STREAMS + 6) as pool:
        under_way = [pool.submit(given.find, GENOME.block()) for _ in range(STREAMS)]
        for _ in under_way:
            assert begun.acquire(timeout=60)
        waiting = [pool.submit(given.find, GENOME.block()) for _ in range(5)]
        closing = pool.submit(given.backend.close)
        go_on.set()
        closing.result(60)
        for search in [*under_way, *waiting]:
            # Those that got a stream before the end have what they wanted.
            if search.exception(60) is None or search in under_way:
                assert search.result() == GENOME.expected(FORWARD)
            else:
                assert "the backend is closed" in str(search.exception())
    assert everything_given_back(given.device)


def test_a_search_after_the_end_is_an_error(opened_trees):
    given = opened_trees()
    given.load_pages(GENOME)
    given.backend.close()
    for _ in range(2):
        with pytest.raises(BackendError, match="the backend is closed"):
            given.find(GENOME.block())


@pytest.mark.parametrize(
    ("code", "resident_textures", "of_search"),
    [("m", 0, 0), ("Q", 0, 1), ("QRT", 3, 1), ("QRTmrt", 2, 1)],
)
def test_textures_are_made_for_what_the_policy_says(
    opened_trees, small_blocks, code, resident_textures, of_search
):
    given = opened_trees(code, memory=small_blocks)
    given.load_pages(REPEATS)
    held = list(given.device.textures)
    assert len(held) == given.device.textures_made == resident_textures
    for number in range(1, 4):
        given.find(block_of(REPEATS.queries[:1]))
        assert given.device.textures_made == resident_textures + number * of_search
        assert given.device.textures == held
    assert given.find(block_of(REPEATS.queries[:1]), 3) is None
    assert given.find(REPEATS.block()) == REPEATS.expected(FORWARD)
    assert given.halved
    assert given.device.textures == held


def visits_of(given):
    return {name: kernel.node_visits for name, kernel in given.stats.kernels.items()}


def test_node_visits_are_counted_when_asked_for(opened_trees):
    seen = []
    for resident_blocks in (1, 2, 50):
        given = opened_trees("m", WatchedDevice(1 << 30, resident_blocks), profile=True)
        given.load_pages(REPEATS)
        assert given.find(REPEATS.block()) == REPEATS.expected(FORWARD)
        once = visits_of(given)
        counted = {name: visits for name, visits in once.items() if visits is not None}
        assert set(counted) == {"match_kernel", "count_mems", "write_mems"}
        # Every suffix that is long enough comes to a node, and every match from a leaf.
        assert counted["match_kernel"] >= 16 * 96
        assert counted["count_mems"] >= counted["write_mems"] > 0
        given.find(REPEATS.block())
        for name, visits in counted.items():
            assert visits_of(given)[name] == 2 * visits
        # What matches nothing is for the first kernel alone.
        assert given.find(block_of(["C" * 20])) == [[]]
        grown = {name for name in counted if (visits_of(given)[name] or 0) > 2 * counted[name]}
        assert grown == {"match_kernel"}
        # Few matches of a candidate are kept: the third kernel does not search for them again.
        given.load_pages(GENOME)
        before = visits_of(given)
        given.find(GENOME.block())
        more = {name: (visits_of(given)[name] or 0) - (before[name] or 0) for name in counted}
        assert more["count_mems"] > more["write_mems"]
        seen.append(once)
    assert seen[0] == seen[1] == seen[2]


def test_node_visits_are_not_counted_unasked(opened_trees):
    given = opened_trees()
    given.load_pages(REPEATS)
    given.find(REPEATS.block())
    assert set(visits_of(given)) >= set(KERNELS)
    assert set(visits_of(given).values()) == {None}


def test_every_launch_and_byte_is_accounted_for(opened_trees):
    given = opened_trees()
    given.load_pages(GENOME)
    trees = sum(page.tree.byte_count for page in GENOME.pages(Layout.of(given.policy)))
    assert given.stats.bytes == {"to_device": trees}
    block = GENOME.block()
    found = given.find(block)
    assert found is not None
    launches = {name: kernel.launches for name, kernel in given.stats.kernels.items()}
    assert Counter(given.device.launches) == Counter(launches)
    assert launches["match_kernel"] == len(GENOME.page_plan)
    times = given.stats.stages["match_kernel"], given.stats.stages["print_kernel"]
    assert [stage.count for stage in times] == [
        launches["match_kernel"],
        sum(launches.values()) - launches["match_kernel"],
    ]
    assert times[0].seconds == pytest.approx(times[0].count / 1000)
    assert given.stats.bytes["from_device"] == 8 * len(found) + 8 + 24 * sum(map(len, found))
    moved = given.stats.bytes["to_device"] - trees
    assert block.codes.size <= moved - block.offsets.nbytes <= block.codes.size + 32
    for kernel in KERNELS:
        assert given.stats.kernels[kernel].resources["registers"] == 1


@pytest.mark.parametrize(
    ("code", "module", "limit", "value", "message"),
    [
        ("QRT", cuda_program, "TEXTURE_PART_BITS", 4, "too large for textures"),
        ("QRTmrt", resident, "MAX_ARRAY_ROWS", 31, "too large for two-dimensional textures"),
    ],
    ids=["one dimension", "two dimensions"],
)
def test_trees_too_large_for_textures_are_an_error(
    opened_trees, monkeypatch, code, module, limit, value, message
):
    given = opened_trees(code)
    with monkeypatch.context() as patched:
        patched.setattr(module, limit, value)
        with pytest.raises(BackendError, match=f"{message}; use a smaller --page-size"):
            given.load_pages(GENOME)
    given.load_pages(GENOME)
    assert given.find(GENOME.block()) == GENOME.expected(FORWARD)


@pytest.mark.parametrize("free", [1 << 20, 79 << 20])
def test_a_device_with_too_little_memory_is_refused(compiler, free):
    device = WatchedDevice(free)
    with pytest.raises(BackendError, match="bytes of device memory are too few"):
        TreeCudaBackend(device, compiler, Policy(), Stats(), lambda line: None)
    assert not device.buffers and not device.streams
