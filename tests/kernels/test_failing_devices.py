"""Several devices as one backend, on the host: what goes wrong on one of them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from helpers.host_device import everything_given_back
from helpers.opened_backends import FORWARD, GENOME, refused
from helpers.several_devices import WHOLE, NamedDevice, OpenDevices

from mummergpu.errors import BackendError
from mummergpu.matching.backends.streaming import STREAMS
from mummergpu.matching.tree.cuda import TreeCudaBackend


def test_a_device_without_memory_for_the_pages_is_named(opened_devices: OpenDevices) -> None:
    given = opened_devices(0, 1, 2)
    expected = r"device 1 \(card 1\): the trees do not fit the device's memory"
    with (
        refused(given.devices[1], lambda number, size: True),
        pytest.raises(BackendError, match=expected),
    ):
        given.load_pages()
    # The others have their pages, but the run is over.
    with pytest.raises(BackendError, match=expected):
        given.find()
    given.backend.close()


def test_a_device_that_fails_in_a_search_is_named(opened_devices: OpenDevices) -> None:
    given = opened_devices(0, 1)
    given.load_pages()
    given.fail_on(1)
    assert given.find() == GENOME.expected(FORWARD)
    for _ in range(3):
        with pytest.raises(BackendError) as caught:
            given.find()
        assert str(caught.value) == ("backend 'cuda': device 1 (card 1): the device failed: played")
    given.backend.close()
    assert "device_blocks" not in given.stats.settings


def test_an_unforeseen_error_ends_the_other_searches(opened_devices: OpenDevices) -> None:
    given = opened_devices(0, 1)
    given.load_pages()

    def before_launch(kernel: str) -> None:
        raise ValueError("unforeseen")

    given.devices[0].before_launch = before_launch
    with pytest.raises(ValueError, match="unforeseen"):
        given.find()
    with pytest.raises(BackendError, match=r"device 0 \(card 0\): ValueError: unforeseen"):
        given.find()


def test_threads_that_wait_for_a_stream_end_when_a_device_fails(
    opened_devices: OpenDevices,
) -> None:
    """All streams are busy and many threads wait; then one device fails, the other hangs on."""
    given = opened_devices(0, 1)
    given.load_pages(WHOLE)
    busy = threading.Barrier(2 * STREAMS + 1, timeout=60)
    fail, go_on = threading.Event(), threading.Event()

    def wait_and_fail(kernel: str) -> None:
        if kernel == "match_kernel":
            busy.wait()
            assert fail.wait(60)
            raise BackendError("cuda", "the device failed: played")

    def wait(kernel: str) -> None:
        if kernel == "match_kernel":
            busy.wait()
            assert go_on.wait(60)

    given.devices[0].before_launch, given.devices[1].before_launch = wait_and_fail, wait
    with ThreadPoolExecutor(20) as threads:
        searches = [threads.submit(given.find, WHOLE) for _ in range(20)]
        busy.wait()
        fail.set()
        failed = []
        # All but those on the second device, whose streams are busy until later.
        while len(failed) < 20 - STREAMS:
            failed = [search for search in searches if search.done()]
            assert not go_on.wait(0.01)
        for search in failed:
            assert isinstance(search.exception(), BackendError)
            assert "device 0 (card 0): the device failed: played" in str(search.exception())
        go_on.set()
        rest = [search for search in searches if search not in failed]
        assert [search.result(60) for search in rest] == [GENOME.expected(FORWARD)] * STREAMS
    given.backend.close()


def test_threads_that_wait_for_a_stream_end_when_all_is_closed(opened_devices: OpenDevices) -> None:
    given = opened_devices(0)
    given.load_pages(WHOLE)
    busy, go_on = threading.Barrier(STREAMS + 1, timeout=60), threading.Event()

    def wait(kernel: str) -> None:
        if kernel == "match_kernel":
            busy.wait()
            assert go_on.wait(60)

    given.devices[0].before_launch = wait
    with ThreadPoolExecutor(STREAMS + 3) as threads:
        under_way = [threads.submit(given.find, WHOLE) for _ in range(STREAMS)]
        busy.wait()
        waiting = [threads.submit(given.find, WHOLE) for _ in range(2)]
        closing = threads.submit(given.backend.close)
        for search in waiting:
            with pytest.raises(BackendError, match="the backend is closed"):
                search.result(60)
        assert not closing.done()
        go_on.set()
        assert [search.result(60) for search in under_way] == [GENOME.expected(FORWARD)] * STREAMS
        closing.result(60)


def test_a_device_that_cannot_be_closed_is_named_and_the_others_are_closed(
    opened_devices: OpenDevices,
) -> None:
    given = opened_devices(0, 1, 2)
    given.load_pages()
    given.devices[1].closing_fails = True
    with pytest.raises(BackendError, match="the device failed: closing"):
        given.backend.close()
    assert all(map(everything_given_back, given.devices.values()))


def test_memory_that_cannot_be_freed_names_the_device(
    opened_devices: OpenDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = opened_devices(0, 1)
    given.load_pages()
    plain = TreeCudaBackend._let_go

    def let_go(backend: TreeCudaBackend) -> None:
        plain(backend)
        if backend.device is given.devices[0]:
            raise BackendError("cuda", "the device failed: freeing")

    monkeypatch.setattr(TreeCudaBackend, "_let_go", let_go)
    with pytest.raises(BackendError, match=r"device 0 \(card 0\): the device failed: freeing"):
        given.backend.close()
    assert all(device.closed for device in given.devices.values())
    assert everything_given_back(given.devices[1])
    given.devices[0].streams.clear()


def test_closing_after_a_failure_raises_no_other_error(opened_devices: OpenDevices) -> None:
    given = opened_devices(0, 1)
    given.load_pages()
    given.fail_on(0)
    with pytest.raises(BackendError, match="played"):
        given.find()
    given.devices[0].closing_fails = True
    given.backend.close()


def test_a_device_that_cannot_be_used_is_named_and_leaves_nothing(
    opened_devices: OpenDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices: list[NamedDevice] = []
    plain = NamedDevice.new_stream

    def new_stream(device: NamedDevice) -> Any:
        devices.append(device)
        if device.name == "card 1":
            raise BackendError("cuda", "the device failed: no stream")
        return plain(device)

    monkeypatch.setattr(NamedDevice, "new_stream", new_stream)
    with pytest.raises(BackendError, match=r"device 1 \(card 1\): the device failed: no stream"):
        opened_devices(0, 1)
    assert {device.name for device in devices} == {"card 0", "card 1"}
    # The pool is for `open_cuda_backend` to close.
    assert not any([*device.streams, *device.buffers] for device in devices)
