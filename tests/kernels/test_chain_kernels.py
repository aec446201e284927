"""The kernels of chains, run on the host: the scores, paths and posteriors of the processor."""

from contextlib import contextmanager

import pytest
from helpers.chain_cases import *  # noqa: F403
from helpers.chain_cases import WIDE
from helpers.hidden_models import symbol_block
from helpers.host_device import HostCompiler, HostDevice, everything_given_back

from mummergpu.hmm.language.device import DeviceChains
from mummergpu.hmm.language.evaluation import CompiledModel, evaluate
from mummergpu.hmm.language.program import Algorithm
from mummergpu.runtime.stats import Stats


@pytest.fixture
def open_chains(cxx, library_folder):
    @contextmanager
    def opened(double, stats):
        device = HostDevice()
        cache = HostCompiler(library_folder)
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
