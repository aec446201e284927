"""The cuda backend finds what the cpu backend finds, under every policy and in both formats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mummergpu.backends.cuda.device import Device
from mummergpu.backends.cuda.kernel_cache import KernelCache

from both_backends import ALL_POLICIES, differences, random_case  # isort: skip

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def device(cuda_device: None) -> Iterator[Device]:
    from mummergpu.backends.cuda.pycuda_device import PycudaDevice

    found = PycudaDevice(0)
    yield found
    found.close()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> KernelCache:
    folder: Path = tmp_path_factory.mktemp("kernels")
    return KernelCache(folder, print)


@pytest.mark.parametrize("wide", [False, True], ids=["paper", "wide"])
@pytest.mark.parametrize("seed", range(2))
def test_all_policies_agree(device: Device, cache: KernelCache, wide: bool, seed: int) -> None:
    # A wide two-dimensional tree takes a strip of 24 MiB for each page: no tiny pages there.
    case = random_case(seed)
    assert differences(device, cache, case, ALL_POLICIES, wide) == []


@pytest.mark.parametrize("seed", range(2, 14))
def test_many_cases_agree(device: Device, cache: KernelCache, seed: int) -> None:
    policies = ALL_POLICIES[seed * 7 % 128 :: 37]
    assert differences(device, cache, random_case(seed), policies, False) == []
