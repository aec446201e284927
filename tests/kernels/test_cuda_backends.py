"""The cuda backends around their kernels: memory that runs out, many threads, what is counted."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import pytest
from helpers.host_device import HostDevice, everything_given_back
from helpers.in_memory import block_of
from helpers.kmer_cases import dense_case, far_case, tables_of
from helpers.opened_backends import FORWARD, GENOME, REPEATS
from helpers.search_cases import ANY, CASES, ONE_PAGE, STRANDS, SearchCase, find_on, rows_of
from helpers.watched_device import WatchedDevice

from mummergpu.cuda import pinned_staging
from mummergpu.cuda.device import DeviceMemoryError
from mummergpu.errors import BackendError
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.backends import stream_searcher as searching
from mummergpu.matching.backends.cuda_streams import STREAMS
from mummergpu.matching.backends.stream_searcher import HostColumns
from mummergpu.matching.kmer import cuda as kmer_cuda
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.kmer.cuda import KERNELS as KMER_KERNELS
from mummergpu.matching.kmer.cuda_program import KMER_PROGRAM, TEXT_KERNELS
from mummergpu.matching.tree import cuda as resident
from mummergpu.matching.tree import cuda_program
from mummergpu.matching.tree.cpu import TreeCpuBackend
from mummergpu.matching.tree.cuda import KERNELS as TREE_KERNELS
from mummergpu.matching.tree.cuda import TreeCudaBackend
from mummergpu.matching.tree.cuda_program import tree_program
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.bit_planes import bit_planes_bytes


class Search(NamedTuple):
    """A search, and what is too much for it."""

    open: Callable
    pages: str
    first_kernel: str
    counting_kernel: str
    min_requests: int
    """A block of the genome takes more requests for memory than these."""
    long_query: int
    refused_size: int
    page_requests: int
    """The requests of the pages of the genome."""


TREE_REQUESTS = {"m": 11, "QRT": 31, "QRTmrt": 11}


@pytest.fixture(params=["tables", *TREE_REQUESTS])
def search(request):
    """The k-mer search, or that of the trees of a policy."""
    if request.param == "tables":
        opened = request.getfixturevalue("opened_tables")
        # The reference and its codes, which go when they are packed, and two arrays a part.
        requests = 2 + 2 * len(tables_of(GENOME, KmerSampling(3)))
        kernels = "mark_queries", "count_kmer_mems"
        return Search(opened, "tables", *kernels, 12, 3000, 20_000, requests)
    opened = partial(request.getfixturevalue("opened_trees"), request.param)
    kernels, requests = ("match_kernel", "match_kernel"), TREE_REQUESTS[request.param]
    return Search(opened, "trees", *kernels, 15, 2000, 30_000, requests)


def test_what_is_planned_is_told(search, small_blocks):
    given = search.open(device=WatchedDevice(2 << 30), memory=small_blocks)
    assert given.notices == [
        "device host (sm_90) through host, 2.0 GiB free; 3 blocks of 300 bases at once"
    ]
    assert given.backend.sizes.block_bases == given.backend.sizes.batch_bases == 300
    assert given.backend.page_memory == small_blocks // 2
    assert given.stats.settings["device_memory"] == 2 << 30


@pytest.mark.parametrize("who", ["the plan", "the device"])
def test_blocks_that_do_not_fit_are_halved(search, small_blocks, who):
    given = search.open(memory=small_blocks if who == "the plan" else None)
    given.load_pages(REPEATS)
    if who == "the device":
        given.device.refuse = lambda number, size: size > 20_000
    assert given.find(REPEATS.block()) == REPEATS.expected(FORWARD)
    assert (given.device.refusals > 0) == (who == "the device")
    assert given.halved[0] == 16 and Counter(given.halved)[8] == 2
    launched = Counter(given.device.launches)[search.counting_kernel]
    counted = given.stats.kernels[search.counting_kernel].launches
    assert launched > counted, "what came to nothing is not counted"
    assert given.find(block_of(REPEATS.queries[:1])) == REPEATS.expected(FORWARD)[:1]


@pytest.mark.parametrize("who", ["the plan", "the device"])
def test_a_single_query_that_does_not_fit_is_an_error(search, small_blocks, who):
    given = search.open(memory=small_blocks if who == "the plan" else None)
    given.load_pages(REPEATS)
    if who == "the device":
        given.device.refuse = lambda number, size: size > search.refused_size
    block = block_of(("A" * 20, "A" * search.long_query, "A" * 30))
    for _ in range(STREAMS + 1):
        with pytest.raises(BackendError, match="the matches of one query do not fit") as caught:
            given.find(block)
        assert "use --backend cpu, or look for longer matches" in caught.value.message
    assert given.find(REPEATS.block()) == REPEATS.expected(FORWARD), "no searcher is lost"


def test_any_request_may_be_refused_and_no_match_is_lost(search):
    given = search.open()
    given.load_pages(GENOME)
    block = GENOME.block()
    textures = len(given.device.textures)
    for wanted in given.refusals(lambda: given.find(block)):
        assert given.find(block) == GENOME.expected(FORWARD)
        assert given.halved == [13] * wanted and len(given.device.textures) == textures
    assert wanted > search.min_requests


def test_pages_that_do_not_fit_are_an_error_and_leave_nothing(search):
    given = search.open()
    given.load_pages(GENOME)
    held = given.device.used
    for _ in given.refusals(lambda: given.load_pages(GENOME)):
        with pytest.raises(BackendError, match=f"the {search.pages} do not fit the device's"):
            given.load_pages(GENOME)
        assert not given.device.buffers and not given.device.textures
    assert given.device.refusals == search.page_requests
    given.load_pages(GENOME)
    assert given.device.used == held
    assert given.find(GENOME.block()) == GENOME.expected(FORWARD)


@pytest.mark.parametrize("halving", [False, True], ids=["whole", "in halves"])
@pytest.mark.parametrize("page_size", [ONE_PAGE, 120])
def test_more_matches_than_there_may_be_are_none(search, small_blocks, page_size, halving):
    case = SearchCase("repeats", REPEATS.records, REPEATS.queries, 5, page_size)
    given = search.open(memory=small_blocks if halving else None)
    given.load_pages(case)
    expected = REPEATS.expected(FORWARD)
    count = sum(map(len, expected))
    assert given.find(case.block(), count) == expected
    for most in (0, 1, count // 3, count // 2, count - 1):
        assert given.find(case.block(), most) is None
    assert given.find(case.block(), count) == expected and bool(given.halved) == halving


def test_blocks_are_halved_beside_each_other(search, small_blocks):
    given = search.open(memory=small_blocks)
    given.load_pages(REPEATS)
    parts = [REPEATS.queries[: 1 + number % 8] for number in range(12)]
    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(lambda part: given.find(block_of(part)), parts))
    assert found == [REPEATS.expected(FORWARD)[: len(part)] for part in parts] and given.halved


def test_as_many_blocks_are_under_way_as_there_are_streams(search):
    given = search.open()
    case = SearchCase("one page", GENOME.records, GENOME.queries, 6)
    given.load_pages(case)
    meeting = threading.Barrier(STREAMS, timeout=60)

    def before_launch(kernel):
        if kernel == search.first_kernel:
            meeting.wait()

    given.device.before_launch = before_launch
    given.device.max_users = 0
    queries = [case.queries[number:] for number in range(3 * STREAMS)]
    with ThreadPoolExecutor(3 * STREAMS) as pool:
        found = list(pool.map(lambda part: given.find(block_of(part)), queries))
    assert found == [case.expected(FORWARD)[number:] for number in range(3 * STREAMS)]
    assert given.device.max_users == STREAMS and len(given.device.streams) == 1 + STREAMS


def test_pages_go_through_pinned_pieces(search, monkeypatch):
    monkeypatch.setattr(pinned_staging, "PIECE_BYTES", 100)
    monkeypatch.setattr(pinned_staging, "BYTES_PER_THREAD", 1)
    monkeypatch.setattr(pinned_staging, "LEAST_BYTES", 1)
    monkeypatch.setattr(kmer_cuda, "UPLOAD_BASES", 256)
    pinned = []

    def pinned_by(device, count, dtype):
        pinned.append(count)
        return HostDevice.pinned(device, count, dtype)

    monkeypatch.setattr(WatchedDevice, "pinned", pinned_by)
    given = search.open(threads=5)
    for _ in range(2):
        given.load_pages(GENOME)
        assert given.find(GENOME.block()) == GENOME.expected(FORWARD)
    # Up to two pieces for each thread in both loads, and for each search.
    assert 2 * 2 < pinned.count(100) <= 2 * 2 * 5 + 2 * STREAMS


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
    assert compiler.asked[before:] == wanted and given.stats.stages["kernels_compiled"].count == 2


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
    assert given.find(REPEATS.block()) == REPEATS.expected(FORWARD) and given.halved
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
        assert set(counted) == {"match_kernel", "find_mems"}
        # Every suffix that is long enough comes to a node, and every match from a leaf.
        assert counted["match_kernel"] >= 16 * 96
        assert counted["find_mems"] >= sum(map(len, REPEATS.expected(FORWARD)))
        given.find(REPEATS.block())
        for name, visits in counted.items():
            assert visits_of(given)[name] == 2 * visits
        # What matches nothing is for the first kernel alone.
        assert given.find(block_of(["C" * 20])) == [[]]
        grown = {name for name in counted if (visits_of(given)[name] or 0) > 2 * counted[name]}
        assert grown == {"match_kernel"}
        seen.append(once)
    assert seen[0] == seen[1] == seen[2]


def test_every_launch_and_byte_of_trees_is_accounted_for(opened_trees):
    given = opened_trees()
    given.load_pages(GENOME)
    trees = sum(page.tree.byte_count for page in GENOME.pages(Layout.of(given.policy)))
    assert given.stats.bytes == {"to_device": trees}
    block = GENOME.block()
    found = given.find(block)
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
    for kernel in TREE_KERNELS:
        assert given.stats.kernels[kernel].resources["registers"] == 1


LONG_LISTS = SearchCase("long lists", ("ACGGATTACAGT" * 90,), ("GATTACA", "TTACAGTACGG"), 7)
"""Each match occurs 90 times."""

BRANCHING = {"long chains of suffixes", "over page ends", "homopolymers", "palindromes"}


@pytest.mark.parametrize(
    ("nodes", "code"),
    [
        *((32, "QRTmrt"), (40, "m")),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in ((32, "m"), (35, "m"), (35, "QRTmrt"), (40, "QRTmrt"))
        ),
    ],
)
def test_searches_go_on_where_no_more_nodes_can_wait(opened_trees, monkeypatch, code, nodes):
    """Then a warp searches below one node at a time, as the paper's kernel does."""
    monkeypatch.setattr(cuda_program, "WAITING_NODES", nodes)
    cases = [case for case in CASES if case.name in BRANCHING or case.name.startswith("random")]
    for case in (REPEATS, GENOME, *cases):
        given = opened_trees(code, WatchedDevice(1 << 30, 1))
        given.load_pages(case)
        assert given.find(case.block()) == case.expected(FORWARD)


@pytest.mark.parametrize("rows", [64, 4096])
def test_long_lists_of_matches_are_sorted_with_and_without_shared_memory(
    opened_trees, monkeypatch, rows
):
    monkeypatch.setattr(cuda_program, "SHARED_ROWS", rows)
    given = opened_trees()
    given.load_pages(LONG_LISTS)
    found = given.find(LONG_LISTS.block())
    assert found == LONG_LISTS.expected(FORWARD)
    assert max(Counter(start for start, *_ in found[0]).values()) > 64


def test_matches_that_exceed_their_room_are_found_again(opened_trees):
    given = opened_trees(device=WatchedDevice(1 << 30, 1), profile=True)
    given.load_pages(REPEATS)
    visits = []
    # There are four matches of each candidate, and room for one, until they are known.
    for launches in (2, 1):
        given.device.launches.clear()
        assert given.find(REPEATS.block()) == REPEATS.expected(FORWARD)
        assert Counter(given.device.launches)["find_mems"] == launches
        visits.append(visits_of(given)["find_mems"])
    assert visits[1] == 2 * visits[0] > 0


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


def test_the_reference_takes_what_is_planned_for_it(opened_tables):
    given = opened_tables()
    pages = tables_of(GENOME, KmerSampling(3))
    bases = pages[0].joined_reference.size
    given.backend.load_pages(pages, GENOME.minimum_length)
    tables = sum(page.table.byte_count for page in pages)
    left = given.backend.memory_for_pages(bases)
    assert len(pages) > 1 and given.device.used == tables + given.backend.page_memory - left
    assert given.backend.memory_for_pages(1 << 50) == 0


def test_a_length_that_no_kernel_takes_finds_nothing(opened_tables):
    given = opened_tables()
    given.backend.load_pages(tables_of(GENOME, KmerSampling(3)), 1 << 40)
    assert not any(given.find(GENOME.block()) or ())


def test_a_block_of_too_many_bases_is_halved(opened_tables, monkeypatch):
    monkeypatch.setattr(searching, "MAX_BASES", GENOME.block().base_count - 1)
    given = opened_tables()
    given.load_pages(GENOME)
    assert given.find(GENOME.block()) == GENOME.expected(FORWARD) and given.halved == [13]
    with pytest.raises(DeviceMemoryError):
        given.backend._searchers[0].use_matches(
            given.backend._context, GENOME.block(), ANY, HostColumns((FORWARD,))
        )


def test_groups_of_parts_take_each_others_place(opened_tables):
    """Together the groups find each match once, in whichever its first query_kmer lies."""
    given = opened_tables()
    pages = tables_of(GENOME, KmerSampling(3))
    assert len(pages) >= 4
    block = GENOME.block()
    cpu = KmerCpuBackend(Stats())
    for group in (pages[:2], pages[2:3], pages[3:], pages[-1:], pages):
        given.backend.load_pages(group, GENOME.minimum_length)
        cpu.load_pages(group, GENOME.minimum_length)
        # Two arrays a part, and the whole reference.
        assert len(given.device.buffers) == 2 * len(group) + 1
        tables = sum(page.table.byte_count for page in group)
        assert given.device.used == tables + bit_planes_bytes(pages[0].joined_reference.size)
        expected, found = (find_on(one, block) for one in (cpu, given.backend))
        given.release()
    # Those of a group are others: the processor's k-mers begin with a query, here with the block.
    assert rows_of(found) == rows_of(expected) == GENOME.expected(FORWARD)


def test_the_kernels_are_compiled_once(opened_tables, compiler):
    given = opened_tables()
    before = len(compiler.asked)
    for case, kmer_length in ((GENOME, 3), (far_case(0), 5), (dense_case(0), 1), (GENOME, 6)):
        given.load_pages(case, kmer_length)
        assert given.find(case.block()) == case.expected(FORWARD)
    assert compiler.asked[before:] == [KMER_PROGRAM]
    assert given.stats.stages["kernels_compiled"].count == 1


def test_every_launch_and_byte_is_accounted_for(opened_tables):
    given = opened_tables()
    given.load_pages(GENOME)
    pages = tables_of(GENOME, KmerSampling(3))
    held = sum(page.table.byte_count for page in pages) + pages[0].joined_reference.size
    assert given.stats.bytes == {"to_device": held}
    # What the reference is packed by is no part of a search.
    given.device.launches.clear()
    block = GENOME.block()
    found = given.find(block)
    launches = {name: kernel.launches for name, kernel in given.stats.kernels.items()}
    used = {name: count for name, count in launches.items() if count > 0}
    assert Counter(given.device.launches) == used
    # Seeds are chosen by searches with windows only.
    assert set(KMER_KERNELS) - {"choose_query_seeds", *TEXT_KERNELS} <= set(used)
    assert used["count_kmer_mems"] == len(pages)
    stage = given.stats.stages["kmer_kernel"]
    assert stage.count == sum(used.values()) and stage.seconds == pytest.approx(stage.count / 1000)
    rows = sum(map(len, found))
    assert given.stats.bytes["from_device"] == len(pages) * (8 * len(found) + 8) + 24 * rows
    moved = given.stats.bytes["to_device"] - held
    assert block.codes.size <= moved - block.offsets.nbytes <= block.codes.size + 32
    for kernel in KMER_KERNELS:
        assert given.stats.kernels[kernel].resources["registers"] == 1
