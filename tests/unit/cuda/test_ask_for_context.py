import ctypes

from mummergpu.cuda.driver import LIBRARY, ask_for_context


class Driver:
    """Stands in for the driver's library; answers every call with a code."""

    def __init__(self, answers):
        self.answers = answers
        self.calls = []
        self.devices = set()

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            if name == "cuDeviceGet":
                self.devices.add(arguments[1])
            return self.answers.get(name, 0)

        return call


def calls_with(monkeypatch, answers):
    driver = Driver(answers)
    loaded = []

    def load(name):
        loaded.append(name)
        return driver

    monkeypatch.setattr(ctypes, "CDLL", load)
    ask_for_context(2).join(10)
    assert loaded == [LIBRARY] and driver.devices <= {2}
    return driver.calls


def test_the_primary_context_is_retained(monkeypatch):
    assert calls_with(monkeypatch, {}) == ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]


def test_nothing_is_asked_of_a_driver_that_fails(monkeypatch):
    assert calls_with(monkeypatch, {"cuInit": 100}) == ["cuInit"]
    assert calls_with(monkeypatch, {"cuDeviceGet": 101}) == ["cuInit", "cuDeviceGet"]


def test_no_driver_is_no_error(monkeypatch):
    def load(name):
        raise OSError(f"{name}: not found")

    monkeypatch.setattr(ctypes, "CDLL", load)
    thread = ask_for_context(0)
    thread.join(10)
    assert not thread.is_alive()
