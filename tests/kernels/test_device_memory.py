"""How device memory is divided, and how the buffers of one block of queries come and go."""

import pytest
from helpers.host_device import ALIGNMENT, HostDevice

from mummergpu.cuda.device import DeviceMemoryError
from mummergpu.cuda.stream_worker import SMALLEST_BUFFER, Workspace
from mummergpu.errors import BackendError
from mummergpu.matching.backends.memory_plan import (
    FREE_PART,
    LARGEST_BLOCK,
    SMALLEST_BLOCK,
    WORK_BYTES_PER_BASE,
    divide_memory,
)

GIB = 1 << 30
LEAST = 2 * 3 * SMALLEST_BLOCK * WORK_BYTES_PER_BASE


@pytest.mark.parametrize("free", [LEAST, LEAST + 1, 1 * GIB, 5 * GIB, 80 * GIB])
@pytest.mark.parametrize("streams", [1, 2, 3])
def test_blocks_and_trees_share_the_memory(free, streams):
    plan = divide_memory(free, free, streams)
    assert plan.search_bytes == plan.block_bases * WORK_BYTES_PER_BASE
    assert streams * plan.search_bytes + plan.tree_bytes == free
    assert plan.tree_bytes >= free // 2
    larger = (plan.block_bases + 1) * WORK_BYTES_PER_BASE
    assert plan.block_bases == LARGEST_BLOCK or streams * larger > free // 2


def test_large_devices_take_the_largest_block_and_leave_the_rest_to_trees():
    plan = divide_memory(140 * GIB, None, 3)
    assert plan.block_bases == LARGEST_BLOCK
    assert plan.tree_bytes == int(140 * GIB * FREE_PART) - 3 * LARGEST_BLOCK * WORK_BYTES_PER_BASE
    assert divide_memory(140 * GIB, None, 3, 100_000).block_bases == 100_000


@pytest.mark.parametrize(
    ("free", "limit", "budget"),
    [
        (10 * GIB, None, 9 * GIB),
        (10 * GIB, 2 * GIB, 2 * GIB),
        (10 * GIB, 10 * GIB, 10 * GIB),
        (10 * GIB, 80 * GIB, 10 * GIB),
    ],
)
def test_no_more_is_taken_than_is_allowed_or_free(free, limit, budget):
    plan = divide_memory(free, limit, 3)
    assert 3 * plan.search_bytes + plan.tree_bytes == budget


def test_too_little_memory_is_an_error_that_names_what_would_do():
    with pytest.raises(BackendError) as caught:
        divide_memory(GIB, LEAST - 1, 3)
    assert caught.value.message == (
        f"{LEAST - 1:,} bytes of device memory are too few; {LEAST:,} are the least "
        "(--gpu-memory), or use --backend cpu"
    )
    assert divide_memory(GIB, LEAST, 3).block_bases == SMALLEST_BLOCK
    with pytest.raises(BackendError, match="are too few"):
        divide_memory(LEAST, None, 3)


def test_a_buffer_is_kept_while_it_suffices():
    device = HostDevice()
    workspace = Workspace(device, GIB)
    addresses = [workspace.buffer("codes", size) for size in (4000, 1, 3999, 4000, 4400)]
    assert len(set(addresses)) == 1, "there is some slack for a little more"
    assert [buffer.size for buffer in device.buffers] == [workspace.size] == [4500]
    assert workspace.buffer("names", 4000) != addresses[0]
    assert len(device.buffers) == 2
    workspace.free()


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 10_007])
def test_buffers_are_large_enough_and_aligned(size):
    device = HostDevice()
    workspace = Workspace(device, GIB)
    assert workspace.buffer("codes", size) % ALIGNMENT == 0
    assert workspace.size >= max(size, SMALLEST_BUFFER)
    workspace.free()
    assert (workspace.size, device.buffers) == (0, [])


def test_a_buffer_that_grows_is_given_back_first():
    device = HostDevice(memory_bytes=10_000)
    workspace = Workspace(device, 10_000)
    workspace.buffer("codes", 6_000)
    workspace.buffer("codes", 9_000)
    assert len(device.buffers) == 1
    assert 9_000 <= workspace.size <= 10_000
    workspace.free()


def test_all_buffers_together_stay_below_the_limit():
    device = HostDevice()
    workspace = Workspace(device, 10_000)
    workspace.buffer("codes", 5_000)
    workspace.buffer("names", 3_000)
    assert workspace.size == device.used <= 10_000
    left = 10_000 - workspace.size
    with pytest.raises(DeviceMemoryError, match=f"{left + 1} bytes for counts, and {left} are"):
        workspace.buffer("counts", left + 1)
    workspace.buffer("counts", left)
    assert workspace.size == device.used == 10_000
    assert device.refusals == 0, "the device was not even asked"
    workspace.free()
    workspace.buffer("counts", 10_000)
    workspace.free()
    assert device.buffers == []


def test_what_the_device_does_not_have_is_refused_too():
    device = HostDevice(memory_bytes=10_000)
    workspace = Workspace(device, 1 << 40)
    workspace.buffer("codes", 5_000)
    with pytest.raises(DeviceMemoryError):
        workspace.buffer("names", 6_000)
    assert device.refusals == 1
    workspace.free()
    assert device.buffers == []
