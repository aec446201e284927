from __future__ import annotations

import ctypes
from typing import Any

import pytest

from mummergpu.cuda.driver import LIBRARY, ask_for_context


class Driver:
    """Stands in for the driver's library; answers every call with a code."""

    def __init__(self, answers: dict[str, int]) -> None:
        self.answers = answers
        self.calls: list[str] = []
        self.devices: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name == "cuDeviceGet":
                self.devices.add(arguments[1])
            return self.answers.get(name, 0)

        return call


def calls_with(monkeypatch: pytest.MonkeyPatch, answers: dict[str, int]) -> list[str]:
    driver = Driver(answers)
    loaded: list[str] = []

    def load(name: str) -> Driver:
        loaded.append(name)
        return driver

    monkeypatch.setattr(ctypes, "CDLL", load)
    ask_for_context(2).join(10)
    assert loaded == [LIBRARY] and driver.devices <= {2}
    return driver.calls


def test_the_primary_context_is_retained(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls_with(monkeypatch, {}) == ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]


def test_nothing_is_asked_of_a_driver_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls_with(monkeypatch, {"cuInit": 100}) == ["cuInit"]
    assert calls_with(monkeypatch, {"cuDeviceGet": 101}) == ["cuInit", "cuDeviceGet"]


def test_no_driver_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Driver:
        raise OSError(f"{name}: not found")

    monkeypatch.setattr(ctypes, "CDLL", load)
    thread = ask_for_context(0)
    thread.join(10)
    assert not thread.is_alive()
