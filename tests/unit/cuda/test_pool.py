"""Devices of a pool: opened once, borrowed by many, closed once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers.host_device import HostDevice

from mummergpu.cuda.pool import DevicePool
from mummergpu.errors import BackendError


class Machine:
    """Two devices, and the order in which they are opened and closed."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def open_device(self, number: int) -> HostDevice:
        if number > 1:
            raise BackendError("cuda", f"there is no device {number}")
        self.told.append(f"open {number}")
        # Long enough for others to ask in the meantime.
        time.sleep(0.02)
        return NumberedDevice(number, self.told)


class NumberedDevice(HostDevice):
    def __init__(self, number: int, told: list[str]) -> None:
        super().__init__()
        self.number = number
        self._told = told

    def close(self) -> None:
        super().close()
        self._told.append(f"close {self.number}")


def test_a_device_is_opened_when_it_is_first_asked_for_and_once() -> None:
    machine = Machine()
    with DevicePool(machine.open_device) as pool:
        assert (pool.numbers, machine.told) == ((), [])
        first, second = pool.device(1), pool.device(0)
        assert pool.device(1) is first and pool.device(0) is second
        assert pool.numbers == (1, 0)
        assert not first.closed and not second.closed  # type: ignore[attr-defined]
    assert machine.told == ["open 1", "open 0", "close 0", "close 1"]


def test_closing_twice_closes_once() -> None:
    machine = Machine()
    pool = DevicePool(machine.open_device)
    pool.device(0)
    pool.close()
    pool.close()
    assert machine.told == ["open 0", "close 0"]
    assert pool.numbers == ()
    with pytest.raises(ValueError, match="is closed"):
        pool.device(0)


def test_a_device_that_cannot_be_opened_leaves_the_others() -> None:
    machine = Machine()
    with DevicePool(machine.open_device) as pool:
        device = pool.device(0)
        with pytest.raises(BackendError, match="no device 2"):
            pool.device(2)
        assert pool.numbers == (0,)
        assert pool.device(0) is device
    assert machine.told == ["open 0", "close 0"]


def test_a_device_that_cannot_be_closed_leaves_no_other_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine()
    pool = DevicePool(machine.open_device)
    first, second = pool.device(0), pool.device(1)

    def fail() -> None:
        raise BackendError("cuda", "the device failed")

    monkeypatch.setattr(second, "close", fail)
    with pytest.raises(BackendError, match="the device failed"):
        pool.close()
    assert first.closed  # type: ignore[attr-defined]
    pool.close()
    assert machine.told == ["open 0", "open 1", "close 0"]


def test_devices_are_closed_after_a_failure() -> None:
    machine = Machine()
    with pytest.raises(KeyError), DevicePool(machine.open_device) as pool:
        pool.device(0)
        raise KeyError
    assert machine.told == ["open 0", "close 0"]


def test_threads_that_ask_at_once_get_one_device() -> None:
    machine = Machine()
    meeting = threading.Barrier(8, timeout=60)

    def ask(turn: int) -> int:
        meeting.wait()
        return id(pool.device(turn % 2))

    with DevicePool(machine.open_device) as pool, ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(ask, range(8)))) == 2
    assert sorted(machine.told) == ["close 0", "close 1", "open 0", "open 1"]
