from __future__ import annotations

import ctypes
from typing import Any

import pytest

from mummergpu.cuda.warm_up import LIBRARY, ask_for_contexts


class Driver:
    """Stands in for the driver's library; answers every call with a code."""

    device_count = 3

    def __init__(self, answers: dict[str, int]) -> None:
        self.answers = answers
        self.calls: list[str] = []
        self.devices: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name == "cuDeviceGetCount":
                # The argument is a reference made by `ctypes.byref`.
                arguments[0]._obj.value = self.device_count
            if name == "cuDeviceGet":
                self.devices.add(arguments[1])
            return self.answers.get(name, 0)

        return call


def calls_with(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, int],
    devices: tuple[int, ...] | None = (0,),
) -> list[str]:
    return driver_with(monkeypatch, answers, devices).calls


def driver_with(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, int], devices: tuple[int, ...] | None
) -> Driver:
    driver = Driver(answers)
    loaded: list[str] = []

    def load(name: str) -> Driver:
        loaded.append(name)
        return driver

    monkeypatch.setattr(ctypes, "CDLL", load)
    ask_for_contexts(devices).join(10)
    assert loaded == [LIBRARY]
    return driver


def test_the_primary_context_is_retained(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls_with(monkeypatch, {}) == ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]


@pytest.mark.parametrize("devices", [(0, 2), (1,), None])
def test_each_device_gets_its_context(
    monkeypatch: pytest.MonkeyPatch, devices: tuple[int, ...] | None
) -> None:
    driver = driver_with(monkeypatch, {}, devices)
    expected = {0, 1, 2} if devices is None else set(devices)
    assert driver.devices == expected
    assert driver.calls.count("cuDevicePrimaryCtxRetain") == len(expected)
    assert driver.calls.count("cuInit") == 1


def test_a_driver_that_does_not_count_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls_with(monkeypatch, {"cuDeviceGetCount": 3}, None) == ["cuInit", "cuDeviceGetCount"]


def test_nothing_is_asked_of_a_driver_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls_with(monkeypatch, {"cuInit": 100}) == ["cuInit"]
    assert calls_with(monkeypatch, {"cuDeviceGet": 101}) == ["cuInit", "cuDeviceGet"]


def test_no_driver_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Driver:
        raise OSError(f"{name}: not found")

    monkeypatch.setattr(ctypes, "CDLL", load)
    thread = ask_for_contexts((0,))
    thread.join(10)
    assert not thread.is_alive()
