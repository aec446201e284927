"""The kernels that filter proteins, run on the host: the numbers of the compiled functions."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers.host_device import HostCompiler, HostDevice, everything_given_back
from helpers.profile_scores import check_numbers, tried
from helpers.profiles import block_of, built, profiles, sequences_like

from mummergpu.errors import BackendError
from mummergpu.hmm import device_filters, device_work
from mummergpu.hmm.byte_filters import minimal_cells
from mummergpu.hmm.device_filters import DeviceFilters
from mummergpu.hmm.filter_programs import RowShape
from mummergpu.hmm.filters import ProfileFilter, lengths_up_to
from mummergpu.hmm.options import FilterThresholds
from mummergpu.runtime.stats import Stats


@pytest.fixture
def executor():
    with ThreadPoolExecutor(2) as found:
        yield found


@pytest.fixture
def opened(cxx, library_folder, executor):
    """Opens filters on a device of the host, and sees to it that everything is given back."""
    every = []

    def open_filters(some, thresholds=None, memory=1 << 28, shared_bytes=227 << 10):
        device, compiler = HostDevice(), HostCompiler(library_folder)
        device.shared_bytes = shared_bytes
        cache = compiler
        filters = [ProfileFilter(one, thresholds or FilterThresholds()) for one in some]
        made = DeviceFilters(device, cache, filters, memory, Stats(), executor)
        every.append((made, device))
        return made

    yield open_filters
    for made, device in every:
        made.close()
        device.close()
        assert everything_given_back(device)


@pytest.mark.parametrize("nodes", [1, 2, 16, 17, 64, 65, 99, 130, 249, 250, 330])
def test_the_scores_are_those_of_the_processor(nodes, opened):
    profile = built(nodes)
    check_numbers(opened([profile]), tried(profile, 30))


def test_the_scores_of_real_profiles_are_those_of_the_processor(opened):
    for profile in profiles()[::3]:
        check_numbers(opened([profile]), tried(profile, 20))


@pytest.mark.parametrize(
    "lanes, registers", [(8, 1), (8, 11), (8, 25), (16, 1), (16, 29), (32, 2), (32, 20)]
)
def test_the_scores_do_not_depend_on_the_shape_of_rows(lanes, registers, opened, monkeypatch):
    shape = RowShape(lanes, registers)
    monkeypatch.setattr(device_filters, "byte_shape", lambda nodes: shape)
    profile = built(shape.nodes - 1)
    check_numbers(opened([profile]), tried(profile, 10))


@pytest.mark.slow
@pytest.mark.parametrize("lanes, most", [(8, 25), (16, 29), (32, 59)])
def test_the_scores_of_all_shapes_are_those_of_the_processor(lanes, most, opened, monkeypatch):
    for registers in range(1, most + 1):
        shape = RowShape(lanes, registers)
        monkeypatch.setattr(device_filters, "byte_shape", lambda nodes, shape=shape: shape)
        for nodes in (shape.nodes, shape.nodes - 2 * lanes + 1):
            check_numbers(opened([built(nodes)]), tried(built(nodes), 5))


def test_the_least_cells_are_those_of_the_processor(opened):
    some = [built(nodes) for nodes in (1, 40, 300)]
    found = opened(some, FilterThresholds(F1=0.02))
    lengths = lengths_up_to(3000)
    with found._worker() as worker:
        least = worker.buffer("least", 3 * 3000)
        null = worker.upload("null", lengths.null[:3000])
        move = worker.upload("move", lengths.move[:3000].astype(np.uint32))
        arguments = (found._limits.address, 3, null, move, 3000, least)
        worker.launcher.launch_on(found._sequence_program, "bound_cells", 9000, arguments)
        cells = worker.fetch(least, 9000, np.uint8).reshape(3, -1)
    for one, own in zip(found._own, cells, strict=True):
        expected = minimal_cells(one.bytes, lengths, one.scores.msv)
        assert np.array_equal(own[1:], expected[1:3000])


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
def test_the_survivors_are_those_of_the_processor(thresholds, opened):
    # KR has no composition.
    some = [*profiles()[:3], *(one for one in profiles() if one.composition is None)]
    some += [built(nodes) for nodes in (270, 5, 120, 6)]
    block, stats = mixed_block(), Stats()
    expected = [ProfileFilter(one, thresholds).survivors(block, stats) for one in some]
    assert sum(one.size for one in expected) > 20
    found = opened(some, thresholds)
    for here, there in zip(expected, found.survivors(block), strict=True):
        assert here.tolist() == there.tolist()
    assert found._stats.counts == stats.counts


def test_little_memory_and_long_rows_change_nothing(opened, monkeypatch):
    """Several launches of SSV; profiles that the processor filters wholly, or by Viterbi."""
    some, block = [built(nodes) for nodes in (270, 5, 120, 640)], mixed_block()
    thresholds = FilterThresholds(F1=0.5, F2=0.1)
    expected = [ProfileFilter(one, thresholds).survivors(block, Stats()) for one in some]
    monkeypatch.setattr(device_work, "MAX_PAIRS", 2 * block.offsets.size)
    for shared_bytes in (227 << 10, 48 << 10, 20 << 10, 2 << 10):
        found = opened(some, thresholds, shared_bytes=shared_bytes)
        for here, there in zip(expected, found.survivors(block), strict=True):
            assert here.tolist() == there.tolist()
    with pytest.raises(BackendError, match="memory of the GPU"):
        opened(some, thresholds, memory=1 << 16).survivors(block)


def test_a_block_without_residues_has_no_survivors(opened):
    found = opened([built(5), built(6)])
    block = block_of([np.zeros(0, dtype=np.uint8)] * 2)
    assert [one.size for one in found.survivors(block)] == [0, 0]
