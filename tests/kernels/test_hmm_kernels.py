"""The kernels of profiles and chains, on the host: the scores and paths of the processor."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest
from helpers.chain_cases import *  # noqa: F403
from helpers.chain_cases import WIDE
from helpers.hidden_models import symbol_block
from helpers.host_device import UNOPTIMISED, HostCompiler, HostDevice, everything_given_back
from helpers.pairwise import pairwise_rows
from helpers.profile_scores import check_numbers, tried
from helpers.profiles import block_of, built, profiles, sequences_like
from helpers.studies import Steps

from mummergpu.cuda.kernel_cache import Programs
from mummergpu.errors import BackendError, OptionError
from mummergpu.hmm import device_filters, device_work, filter_variants
from mummergpu.hmm.byte_filters import minimal_cells
from mummergpu.hmm.device_filters import DeviceFilters
from mummergpu.hmm.filter_programs import RowShape
from mummergpu.hmm.filters import ProfileFilter, lengths_up_to
from mummergpu.hmm.language.device import DeviceChains
from mummergpu.hmm.language.evaluation import CompiledModel, evaluate
from mummergpu.hmm.language.program import Algorithm
from mummergpu.hmm.options import FilterThresholds
from mummergpu.hmm.tile_filter import AUTO, TileFilter, tile_policy
from mummergpu.runtime.stats import Stats
from mummergpu.studies.profiles.bench import DeviceBench, ProfileSweepOptions, sweep
from mummergpu.studies.profiles.data import ProfileData, chosen, suitable
from mummergpu.studies.profiles.device_scores import DeviceScores
from mummergpu.studies.profiles.policies import device_policy_of, filter_of
from mummergpu.studies.records import SweepMachine, read_study


@pytest.fixture
def executor():
    with ThreadPoolExecutor(2) as found:
        yield found


@pytest.fixture
def make_filters(cxx, library_folder, executor):
    """Opens filters on a device of the host, and sees to it that everything is given back."""
    every = []

    def make(some, thresholds=None, memory=1 << 28, shared_bytes=227 << 10):
        device = HostDevice()
        device.shared_bytes = shared_bytes
        programs = Programs(device, HostCompiler(library_folder))
        filters = [ProfileFilter(one, thresholds or FilterThresholds()) for one in some]
        made = DeviceFilters(device, programs, filters, memory, Stats(), executor)
        every.append((made, device))
        return made

    yield make
    for made, device in every:
        made.close()
        device.close()
        assert everything_given_back(device)


@pytest.mark.parametrize("nodes", [1, 2, 16, 17, 64, 65, 99, 130, 249, 250, 330])
def test_the_scores_are_those_of_the_processor(nodes, make_filters):
    profile = built(nodes)
    check_numbers(make_filters([profile]), tried(profile, 30))


def test_the_scores_of_real_profiles_are_those_of_the_processor(make_filters):
    for profile in profiles()[::3]:
        check_numbers(make_filters([profile]), tried(profile, 20))


@pytest.mark.parametrize(
    "lanes, registers", [(8, 1), (8, 11), (8, 25), (16, 1), (16, 29), (32, 2), (32, 20)]
)
def test_the_scores_do_not_depend_on_the_shape_of_rows(lanes, registers, make_filters, monkeypatch):
    shape = RowShape(lanes, registers)
    monkeypatch.setattr(device_filters, "byte_shape", lambda nodes: shape)
    profile = built(shape.nodes - 1)
    check_numbers(make_filters([profile]), tried(profile, 10))


@pytest.mark.slow
@pytest.mark.parametrize("lanes, most", [(8, 25), (16, 29), (32, 59)])
def test_the_scores_of_all_shapes_are_those_of_the_processor(
    lanes, most, make_filters, monkeypatch
):
    for registers in range(1, most + 1):
        shape = RowShape(lanes, registers)
        monkeypatch.setattr(device_filters, "byte_shape", lambda nodes, shape=shape: shape)
        for nodes in (shape.nodes, shape.nodes - 2 * lanes + 1):
            check_numbers(make_filters([built(nodes)]), tried(built(nodes), 5))


def test_the_least_cells_are_those_of_the_processor(make_filters):
    some = [built(nodes) for nodes in (1, 40, 300)]
    found = make_filters(some, FilterThresholds(F1=0.02))
    lengths = lengths_up_to(3000)
    with found._worker() as worker:
        least = worker.buffer("least", 3 * 3000)
        null = worker.upload("null", lengths.null[:3000])
        move = worker.upload("move", lengths.move[:3000].astype(np.uint32))
        arguments = (found._limits.address, 3, null, move, 3000, least)
        worker.launcher.launch_on(found._sequence_program, "bound_cells", 9000, arguments)
        cells = worker.fetch(least, 9000, np.uint8).reshape(3, -1)
    for one, own in zip(found._own, cells, strict=True):
        assert np.array_equal(own[1:], minimal_cells(one.bytes, lengths, one.scores.msv)[1:3000])


THRESHOLDS = (
    FilterThresholds(),
    FilterThresholds(F1=0.3, F2=0.1),
    FilterThresholds(bias_filter=False),
    FilterThresholds(F1=1.0),
    FilterThresholds(F1=1e-6, F2=1e-9),
)


def mixed_block():
    """Sequences like several profiles', empty ones among them."""
    every = [one for nodes in (5, 120, 270) for one in sequences_like(built(nodes), 30)]
    every += [one for profile in profiles()[:3] for one in sequences_like(profile, 30)]
    order = np.random.default_rng(1).permutation(len(every))
    return block_of([every[number][:700] for number in order])


@pytest.mark.parametrize("thresholds", THRESHOLDS, ids=repr)
def test_the_survivors_are_those_of_the_processor(thresholds, make_filters):
    # KR has no composition.
    some = [*profiles()[:3], *(one for one in profiles() if one.composition is None)]
    some += [built(nodes) for nodes in (270, 5, 120, 6)]
    block, stats = mixed_block(), Stats()
    expected = [ProfileFilter(one, thresholds).survivors(block, stats) for one in some]
    assert sum(one.size for one in expected) > 20
    found = make_filters(some, thresholds)
    for here, there in zip(expected, found.survivors(block), strict=True):
        assert here.tolist() == there.tolist()
    assert found._stats.counts == stats.counts
    # For a report, each filter is counted.
    for one, reached in zip(some, found.filtered(block, True), strict=True):
        expected = ProfileFilter(one, thresholds).filtered(block, Stats(), True)
        assert [*map(list, reached)] == [*map(list, expected)]


def test_little_memory_and_long_rows_change_nothing(make_filters, monkeypatch):
    """Several launches of SSV; profiles that the processor filters wholly, or by Viterbi."""
    some, block = [built(nodes) for nodes in (270, 5, 120, 640)], mixed_block()
    thresholds = FilterThresholds(F1=0.5, F2=0.1)
    expected = [ProfileFilter(one, thresholds).survivors(block, Stats()) for one in some]
    monkeypatch.setattr(device_work, "MAX_PAIRS", 2 * block.offsets.size)
    for shared_bytes in (227 << 10, 48 << 10, 20 << 10, 2 << 10):
        found = make_filters(some, thresholds, shared_bytes=shared_bytes)
        for here, there in zip(expected, found.survivors(block), strict=True):
            assert here.tolist() == there.tolist()
    with pytest.raises(BackendError, match="memory of the GPU"):
        make_filters(some, thresholds, memory=1 << 16).survivors(block)


def test_a_block_without_residues_has_no_survivors(make_filters):
    found = make_filters([built(5), built(6)])
    block = block_of([np.zeros(0, dtype=np.uint8)] * 2)
    assert [one.size for one in found.survivors(block)] == [0, 0]


NODES = 45


@cache
def data_of(nodes=NODES, count=40):
    """A profile, and proteins with pieces of it in most letters."""
    found = []
    for sequence in sequences_like(built(nodes), count):
        letters = np.where(sequence >= 26, sequence % 20, sequence)
        found.append(np.where(letters == 20, 3, letters).astype(np.uint8)[:200])
    # So short a protein may pass a profile of one node again.
    found.append(np.full(2, built(nodes).matches[0].argmax(), dtype=np.uint8))
    block = block_of(found)
    one = ProfileFilter(built(nodes), FilterThresholds())
    return ProfileData(f"made-{nodes}", one, chosen(block, suitable(block)))


@pytest.fixture
def device():
    found = HostDevice()
    yield found
    found.close()
    assert everything_given_back(found)


@pytest.fixture
def cache_of_kernels(cxx, library_folder):
    return HostCompiler(library_folder, (UNOPTIMISED,))


def check(data, codes, device, cache):
    scores = DeviceScores(device, cache, data)
    expected = {kind: data.expected(kind, map).tolist() for kind in filter_variants.FILTERS}
    left = 0
    for code in codes:
        policy = device_policy_of(code)
        found = scores.run(scores.prepare(policy))
        kind = filter_of(policy)
        assert data.settled(kind, found.scores).tolist() == expected[kind], code
        left += found.again
    assert len(set(expected["V"])) > 10
    assert left > 0 or not any(code.startswith("t") for code in codes)
    scores.close()


def pairwise_threads():
    """Policies in which every two letters that go together are together.

    A compiler for the host unrolls as it likes, so these letters are taken in turn.
    """
    found = []
    for number, row in enumerate(pairwise_rows([4, 2, 3, 3, 4, 3])):
        letters = [word[at] for word, at in zip(_WITHOUT_UNROLL, row, strict=True)]
        found.append(letters[0] + "1248"[number % 4] + "".join(letters[1:]))
    for number, (schedule, order, steps, emissions) in enumerate(pairwise_rows([2, 3, 4, 3])):
        parts = "ch"[schedule], "ris"[order], "gcsr"[steps], "r", "gts"[emissions]
        found.append("t" + "1248"[number % 4] + "".join(parts))
    return found


_WITHOUT_UNROLL = [word for name, word in filter_variants.CHOICES.items() if name != "unroll"]


def test_every_choice_finds_the_scores_of_the_processor(device, cache_of_kernels):
    """Each letter of every choice at least once: a policy is a program, which takes a second."""
    check(data_of(), ["g1crggg", "c2hicct", "p4cssss", "l8hrgrg"], device, cache_of_kernels)
    check(data_of(), ["t1crgrg", "t2hicrt", "t4cssrs", "t8hrrrs"], device, cache_of_kernels)
    check(data_of(), ["Srcs8", "Mscc16", "Vsts32", "Slcc32", "Mlts8"], device, cache_of_kernels)
    check(data_of(), ["Sbcs8", "Sbcc32"], device, cache_of_kernels)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 8, 9, NODES, 64, 130, 300])
def test_profiles_of_any_length_suit_all_policies(nodes, device, cache_of_kernels):
    codes = [*pairwise_threads(), *(one.code for one in filter_variants.every_row_policy())]
    check(data_of(nodes, 20), codes, device, cache_of_kernels)


@pytest.mark.slow
@pytest.mark.parametrize("scores", filter_variants.CHOICES["scores"])
def test_all_policies_of_threads_find_the_scores_of_the_processor(scores, device, cache_of_kernels):
    codes = [one.code for one in filter_variants.every_thread_policy() if one.scores == scores]
    check(data_of(NODES, 20), codes, device, cache_of_kernels)


def test_what_a_device_has_no_room_for_is_told(device, cache_of_kernels):
    device.shared_bytes = 3 << 10
    scores = DeviceScores(device, cache_of_kernels, data_of())
    assert scores.program_of(filter_variants.ThreadPolicy.from_code("g1crggg")) is not None
    assert scores.program_of(filter_variants.ThreadPolicy.from_code("g1crggs")) is None
    with pytest.raises(OptionError, match="'Vrcs32' does not suit 45 nodes"):
        scores.prepare(device_policy_of("Vrcs32"))
    scores.close()


@pytest.mark.parametrize(
    ("asked", "memory"), [("t1hrrrs", 1 << 28), ("t1crsrg", 1 << 28), ("t1hrrrs", 1 << 20)]
)
def test_searches_find_the_same_with_threads(asked, memory, device, cache_of_kernels):
    some = [built(nodes) for nodes in (NODES, 5, NODES + 1)]
    sequences = [one[:300] for profile in some for one in sequences_like(profile, 30)]
    # One that threads would be the last with.
    block = block_of([*sequences, np.concatenate([one for one in sequences[:8] for _ in range(3)])])
    thresholds = FilterThresholds(F1=0.5, F2=0.1)
    filters = [ProfileFilter(one, thresholds) for one in some]
    expected = [one.survivors(block, Stats()).tolist() for one in filters]
    assert sum(map(len, expected)) > 10
    with ThreadPoolExecutor(2) as executor:
        programs = Programs(device, cache_of_kernels)
        found = DeviceFilters(device, programs, filters, memory, Stats(), executor, asked)
        assert [one.tolist() for one in found.survivors(block)] == expected
        found.close()
    # With little memory there is none for what tiles hand on.
    assert ("score_in_tiles" in device.launches) == (memory > 1 << 20)


def test_tiles_are_for_short_profiles_and_many_sequences():
    tiles = filter_variants.ThreadPolicy.from_code("t8hrrrs")
    for nodes, fewest in ((1, 12_500), (23, 12_500), (24, 25_000), (600, 100_000)):
        assert tile_policy(AUTO, nodes, fewest) == tiles
        assert tile_policy(AUTO, nodes, fewest - 1) is None
    assert tile_policy(AUTO, 601, 10**9) is None and tile_policy("warp", 1, 10**9) is None
    assert tile_policy("t4crrrs", 900, 1) == filter_variants.ThreadPolicy.from_code("t4crrrs")


@pytest.mark.parametrize("code", ["g1crggg", "t1hsrrs", "t1hrcrs", "Vrcs32", "all", ""])
def test_policies_of_studies_are_none_of_searches(code):
    with pytest.raises(OptionError, match="polic"):
        tile_policy(code, 1, 1)


def test_schedulers_have_equally_many_warps():
    """Of 2 multiprocessors, with 4 schedulers each."""
    warps = [filter_variants.tile_blocks(items, 2) for items in (0, 1, 8, 9, 15, 16, 23, 24, 1000)]
    assert warps == [1, 1, 8, 8, 8, 16, 16, 24, 24] and filter_variants.tile_blocks(5, 0) == 4


def test_the_longest_sequences_are_left_to_warps(device):
    found = TileFilter(device, [], AUTO, pytest.fail)
    assert found._long_count(np.array([900, 500, *[200] * 8])) == 1
    assert found._long_count(np.array([300] * 4)) == 0
    # Each scheduler of the only multiprocessor works on 64 sequences at once: with four times as
    # many, one that is as long as four of them is not long.
    assert found._long_count(np.array([900, *[200] * 256])) == 1
    assert found._long_count(np.array([900, *[200] * 1024])) == 0


class HostMachine:
    """A machine whose GPU is the host."""

    backend = "cuda"

    def __init__(self, device, cache):
        self.executor = ThreadPoolExecutor(2)
        self._opened = device, cache

    def facts(self):
        return SweepMachine("cuda", "host", "sm_90", 1 << 30, 1, 2, {}, {}, {})

    def bench(self, data):
        return DeviceBench(data, self.executor, *self._opened)


def test_a_sweep_records_what_kernels_cost(device, cache_of_kernels, tmp_path):
    machine = HostMachine(device, cache_of_kernels)
    options = ProfileSweepOptions(("g1crggg", "t1hsrrs", "Vrcs32"), runs=2, control_runs=1)
    assert sweep(data_of(), options, machine, tmp_path, Steps()) == 7
    assert sweep(data_of(), options, machine, tmp_path, Steps()) == 0
    study = read_study(tmp_path)
    assert {run.digest for run in study.runs} == {study.runs[0].digest}
    tiled = next(run for run in study.runs if run.policy == "t1hsrrs")
    assert tiled.again > 0 and set(tiled.kernels) == {"score_in_tiles", "score_paths"}
    assert tiled.kernel_seconds == pytest.approx(0.002)
    machine.executor.shutdown()


def test_other_scores_end_a_sweep(device, cache_of_kernels, tmp_path, monkeypatch):
    machine = HostMachine(device, cache_of_kernels)
    scored = DeviceScores.run

    def wrong(self, prepared):
        found = scored(self, prepared)
        return found._replace(scores=found.scores + 1)

    monkeypatch.setattr(DeviceScores, "run", wrong)
    options = ProfileSweepOptions(("g1crggg",), runs=1, control_runs=0)
    with pytest.raises(BackendError, match="'g1crggg' finds other scores"):
        sweep(data_of(), options, machine, tmp_path, Steps())
    machine.executor.shutdown()


@pytest.fixture
def open_chains(cxx, library_folder):
    @contextmanager
    def opened(double, stats):
        device = HostDevice()
        cache = HostCompiler(library_folder, (UNOPTIMISED,))
        chains = DeviceChains(device, cache, 1 << 26, stats, double)
        yield chains
        chains.close()
        device.close()
        assert everything_given_back(device)

    return opened


def test_what_no_block_has_room_for_is_the_processor_s(cxx, library_folder):
    cache = HostCompiler(library_folder)
    device = HostDevice()
    device.shared_bytes = 2 << 10
    chains = DeviceChains(device, cache, 1 << 26, Stats(), False)
    compiled, block = CompiledModel(WIDE["hubs"]), symbol_block([[0, 1, 2]])
    assert not chains.supports(compiled.chain.shape)
    found = evaluate(compiled, Algorithm.FORWARD, block, device=chains)
    assert found.scores == evaluate(compiled, Algorithm.FORWARD, block).scores
    assert not device.launches
    chains.close()
