"""The kernels that filter proteins, run on the host: the numbers of the compiled functions."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

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
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.runtime.stats import Stats


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as found:
        yield found


@pytest.fixture
def opened(cxx: str, library_folder: Path, executor: ThreadPoolExecutor) -> Iterator[Any]:
    """Opens filters on a device of the host, and sees to it that everything is given back."""
    every: list[tuple[DeviceFilters, HostDevice]] = []

    def open_filters(
        some: list[Profile],
        thresholds: FilterThresholds | None = None,
        memory: int = 1 << 28,
        shared_bytes: int = 227 << 10,
    ) -> DeviceFilters:
        device, compiler = HostDevice(), HostCompiler(library_folder)
        device.shared_bytes = shared_bytes
        cache: Any = compiler
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
def test_the_scores_are_those_of_the_processor(nodes: int, opened: Any) -> None:
    profile = built(nodes)
    check_numbers(opened([profile]), tried(profile, 30))


def test_the_scores_of_real_profiles_are_those_of_the_processor(opened: Any) -> None:
    for profile in profiles()[::3]:
        check_numbers(opened([profile]), tried(profile, 20))


@pytest.mark.parametrize(
    "lanes, registers", [(8, 1), (8, 11), (8, 25), (16, 1), (16, 29), (32, 2), (32, 20)]
)
def test_the_scores_do_not_depend_on_the_shape_of_rows(
    lanes: int, registers: int, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = RowShape(lanes, registers)
    monkeypatch.setattr(device_filters, "byte_shape", lambda nodes: shape)
    profile = built(shape.nodes - 1)
    check_numbers(opened([profile]), tried(profile, 10))


@pytest.mark.slow
@pytest.mark.parametrize("lanes, most", [(8, 25), (16, 29), (32, 59)])
def test_the_scores_of_all_shapes_are_those_of_the_processor(
    lanes: int, most: int, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for registers in range(1, most + 1):
        shape = RowShape(lanes, registers)
        monkeypatch.setattr(device_filters, "byte_shape", lambda nodes, shape=shape: shape)
        for nodes in (shape.nodes, shape.nodes - 2 * lanes + 1):
            check_numbers(opened([built(nodes)]), tried(built(nodes), 5))


def test_the_least_cells_are_those_of_the_processor(opened: Any) -> None:
    some = [built(nodes) for nodes in (1, 40, 300)]
    found: DeviceFilters = opened(some, FilterThresholds(F1=0.02))
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


def mixed_block() -> ProteinBlock:
    """Sequences like several profiles', empty ones among them."""
    every = [one for nodes in (5, 120, 270) for one in sequences_like(built(nodes), 30)]
    every += [one for profile in profiles()[:3] for one in sequences_like(profile, 30)]
    order = np.random.default_rng(1).permutation(len(every))
    return block_of([every[number][:700] for number in order])


@pytest.mark.parametrize("thresholds", THRESHOLDS, ids=repr)
def test_the_survivors_are_those_of_the_processor(
    thresholds: FilterThresholds, opened: Any
) -> None:
    # KR has no composition.
    some = [*profiles()[:3], *(one for one in profiles() if one.composition is None)]
    some += [built(nodes) for nodes in (270, 5, 120, 6)]
    block, stats = mixed_block(), Stats()
    expected = [ProfileFilter(one, thresholds).survivors(block, stats) for one in some]
    assert sum(one.size for one in expected) > 20
    found: DeviceFilters = opened(some, thresholds)
    for here, there in zip(expected, found.survivors(block), strict=True):
        assert here.tolist() == there.tolist()
    assert found._stats.counts == stats.counts


def test_little_memory_and_long_rows_change_nothing(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several launches of SSV; profiles that the processor filters wholly, or by Viterbi."""
    some, block = [built(nodes) for nodes in (270, 5, 120, 640)], mixed_block()
    thresholds = FilterThresholds(F1=0.5, F2=0.1)
    expected = [ProfileFilter(one, thresholds).survivors(block, Stats()) for one in some]
    monkeypatch.setattr(device_work, "MAX_PAIRS", 2 * block.offsets.size)
    for shared_bytes in (227 << 10, 48 << 10, 20 << 10, 2 << 10):
        found: DeviceFilters = opened(some, thresholds, shared_bytes=shared_bytes)
        for here, there in zip(expected, found.survivors(block), strict=True):
            assert here.tolist() == there.tolist()
    with pytest.raises(BackendError, match="memory of the GPU"):
        opened(some, thresholds, memory=1 << 16).survivors(block)


def test_a_block_without_residues_has_no_survivors(opened: Any) -> None:
    found: DeviceFilters = opened([built(5), built(6)])
    block = block_of([np.zeros(0, dtype=np.uint8)] * 2)
    assert [one.size for one in found.survivors(block)] == [0, 0]
