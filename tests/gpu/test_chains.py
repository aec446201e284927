"""The kernels of chains on a device: the scores, paths and posteriors of the processor."""

from contextlib import contextmanager

import pytest
from helpers.chain_cases import *  # noqa: F403

from mummergpu.hmm.language.device import DeviceChains

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.fixture
def open_chains(device, cache):
    @contextmanager
    def opened(double, stats):
        with device.current():
            chains = DeviceChains(device, cache, 1 << 26, stats, double)
            yield chains
            chains.close()

    return opened
