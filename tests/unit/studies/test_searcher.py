"""The backend of a study, and the facts about its machine."""

import io
from concurrent.futures import ThreadPoolExecutor

import pytest

from mummergpu.errors import BackendError
from mummergpu.matching import open_cuda
from mummergpu.matching.options import DeviceOptions
from mummergpu.studies import gathers, machine
from mummergpu.studies.searcher import StudySearcher, open_searcher


def no_device(*given):
    raise BackendError("cuda", "there is no device")


def test_the_processor_is_opened_without_a_look_at_devices(monkeypatch):
    monkeypatch.setattr(open_cuda, "open_cuda_backend", None)
    searcher = open_searcher(DeviceOptions(backend="cpu"), lambda line: None)
    assert type(searcher) is StudySearcher and not searcher.is_device
    searcher.set_policy("QRT", True)
    searcher.compile_programs(["QRT"], False, True)
    assert searcher.block_size == searcher.backend.sizes.block_bases
    searcher.close()


def test_without_a_device_the_processor_is_taken(monkeypatch):
    monkeypatch.setattr(open_cuda, "open_cuda_backend", no_device)
    notices = []
    searcher = open_searcher(DeviceOptions(backend="auto"), notices.append)
    assert type(searcher) is StudySearcher
    assert notices == ["no cuda backend: there is no device"]


def test_a_device_that_is_asked_for_has_to_be_there(monkeypatch):
    monkeypatch.setattr(open_cuda, "open_cuda_backend", no_device)
    with pytest.raises(BackendError, match="there is no device"):
        open_searcher(DeviceOptions(backend="cuda"), lambda line: None)


def test_the_processor_is_measured(monkeypatch):
    monkeypatch.setattr(gathers, "PROCESSOR_GATHERS", 1 << 10)
    with ThreadPoolExecutor(2) as pool:
        rates = StudySearcher().gathers_per_second(10_000, 2, pool.map)
    told = StudySearcher().machine(2, rates)
    assert (told.backend, told.threads, told.gathers_per_second) == ("cpu", 2, rates)
    assert told.device == machine.processor_name()
    assert told.architecture and told.memory_bytes > 1 << 28
    assert (told.multiprocessors, told.clocks_megahertz) == (0, {})


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("processor\t: 0\nmodel name\t: A: fast one\nmodel name\t: Another\n", "A: fast one"),
        ("processor\t: 0\n", None),
        (None, None),
    ],
)
def test_the_name_of_the_processor(monkeypatch, text, name):
    monkeypatch.setattr(machine, "open", opener(text), raising=False)
    if name is None:
        assert machine.processor_name()
    else:
        assert machine.processor_name() == name


def opener(text):
    """What opens a file of the system that has a text, or that is not there."""

    def open_file(*given, **more):
        if text is None:
            raise FileNotFoundError
        return io.StringIO(text)

    return open_file


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NVRM version: NVIDIA UNIX Module  580.82.07  Release\nGCC version 1.2\n", "580.82.07"),
        ("NVRM version: unknown\n", None),
        ("", None),
        (None, None),
    ],
)
def test_the_version_of_the_driver(monkeypatch, text, expected):
    monkeypatch.setattr(machine, "open", opener(text), raising=False)
    assert machine._kernel_driver() == ({} if expected is None else {"driver": expected})


def test_libraries_that_are_missing_have_no_version():
    found = machine._versions(("numpy", "no-such-library"))
    assert set(found) == {"python", "system", "numpy"}
