"""Profiles on a device beside the processor: the numbers of the filters, and the rows."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from helpers.gpu_turns import in_turn
from helpers.hmmer import write_input
from helpers.profile_scores import check_numbers, tried
from helpers.profiles import block_of, built, profiles, sequences_like

from mummergpu.cuda.bindings_device import BindingsDevice
from mummergpu.hmm.device_filters import DeviceFilters
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.options import FilterThresholds
from mummergpu.runtime.stats import Stats

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def current_device(cuda_device):
    """The first device, which is current."""
    with in_turn(False):
        device = BindingsDevice(0)
    with closing(device), device.current():
        yield device


def opened(device, cache, some, thresholds):
    filters = [ProfileFilter(one, thresholds) for one in some]
    with ThreadPoolExecutor(4) as executor:
        return DeviceFilters(device, cache, filters, 4 << 30, Stats(), executor)


@pytest.mark.parametrize(
    "nodes", [1, 2, 16, 17, 64, 65, 99, 100, 130, 249, 250, 400, 641, 803, 1100, 1600, 2405, 3000]
)
def test_the_scores_are_those_of_the_processor(current_device, cache, nodes):
    profile = built(nodes)
    with closing(opened(current_device, cache, [profile], FilterThresholds())) as found:
        check_numbers(found, tried(profile, 400))


def test_the_scores_of_real_profiles_are_those_of_the_processor(current_device, cache):
    for profile in profiles():
        with closing(opened(current_device, cache, [profile], FilterThresholds())) as found:
            check_numbers(found, tried(profile, 400))


@pytest.mark.parametrize(
    "thresholds",
    [FilterThresholds(), FilterThresholds(F1=0.3, F2=0.1), FilterThresholds(bias_filter=False)],
    ids=repr,
)
def test_the_survivors_are_those_of_the_processor(current_device, cache, thresholds):
    some = [*profiles(), *map(built, (5, 300, 99, 100, 700, 4000))]
    every = [one for profile in some for one in sequences_like(profile, 500)]
    long = np.random.default_rng(2).integers(0, 20, 100_000).astype(np.uint8)
    order = np.random.default_rng(3).permutation(len(every))
    block = block_of([long, *(every[number] for number in order)])
    expected = [ProfileFilter(one, thresholds).survivors(block, Stats()) for one in some]
    assert sum(one.size for one in expected) > 500
    with closing(opened(current_device, cache, some, thresholds)) as found:
        for _ in range(3):
            for here, there in zip(expected, found.survivors(block), strict=True):
                assert here.tolist() == there.tolist()


@pytest.mark.parametrize("verb", ["hmmsearch", "hmmscan"])
@pytest.mark.parametrize("words", ["", "--nobias --F1 0.1 --F2 0.01"])
def test_both_backends_write_the_same(cuda_device, tmp_path, verb, words):
    def rows(*further):
        given = [verb, *map(str, write_input(tmp_path)), "--domtblout", "-", "-q"]
        command = [sys.executable, "-m", "mummergpu", *given, *words.split(), *further]
        done = subprocess.run(command, capture_output=True, check=True)
        return [line for line in done.stdout.splitlines() if not line.startswith(b"#")]

    expected = rows("-C")
    assert rows("--backend", "cuda") == expected and len(expected) > 5
