"""The kernels of chains on a device: the scores, paths and posteriors of the processor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from helpers.chain_cases import *  # noqa: F403
from helpers.chain_cases import OpenChains

from mummergpu.cuda.device import Device
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.hmm.language.device import DeviceChains
from mummergpu.runtime.stats import Stats

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.fixture
def open_chains(device: Device, cache: KernelCache) -> OpenChains:
    @contextmanager
    def opened(double: bool, stats: Stats) -> Iterator[DeviceChains]:
        with device.current():
            chains = DeviceChains(device, cache, 1 << 26, stats, double)
            yield chains
            chains.close()

    return opened
