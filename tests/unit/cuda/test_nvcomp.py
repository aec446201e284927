"""nvCOMP is called as its header says, in each version that is known; others are refused."""

import ctypes

import pytest

from mummergpu.cuda import nvcomp
from mummergpu.cuda.driver import DriverFacts
from mummergpu.cuda.nvcomp import DeflateWork, Nvcomp, load_nvcomp, nvcomp_error
from mummergpu.errors import BackendError, LibraryError

PREFIX = "nvcompBatchedDeflateCompress"
WORK = DeflateWork(3, 65_280, 0x1000, 0x2000, 0x3000, 77, 0x4000, 0x5000, 0x6000)


class PlayedNvcomp:
    """The functions of a version, which keep what they were given."""

    def __init__(self, version, status=0, without=""):
        self.version = version
        self.status = status
        self.given = {}
        sizing = "GetTempSize" if version >= 6000 else "GetTempSizeAsync"
        for name in (sizing, "GetMaxOutputChunkSize", "Async"):
            if name != without:
                setattr(self, PREFIX + name, self.function(name))

    def function(self, name):
        def call(*given):
            self.given[name] = [getattr(one, "value", one) for one in given]
            for one in given:
                # What `byref` points at.
                if isinstance(getattr(one, "_obj", None), ctypes.c_size_t):
                    one._obj.value = 4321
            return self.status

        return call

    def nvcompGetProperties(self, properties):  # noqa: N802
        properties._obj.version = self.version
        return 0


@pytest.mark.parametrize("version", [5010, 5300, 6000, 6123])
def test_each_function_gets_its_arguments(version):
    played = PlayedNvcomp(version)
    library = Nvcomp(played)
    assert library.max_bytes(65_280) == 4321
    size, options, _ = played.given["GetMaxOutputChunkSize"]
    assert size == 65_280 and (options.algorithm, bytes(options)[4:]) == (nvcomp.LEVEL, bytes(60))
    assert library.workspace_bytes(3, 65_280) == 4321
    name = "GetTempSize" if version >= 6000 else "GetTempSizeAsync"
    count, size, _, _, total, *stream = played.given[name]
    assert (count, size, total) == (3, 65_280, 3 * 65_280)
    assert stream == ([None] if version >= 6000 else [])
    library.deflate(0x7000, WORK)
    given = played.given["Async"]
    assert given[:8] == [0x1000, 0x2000, 65_280, 3, 0x3000, 77, 0x4000, 0x5000]
    assert given[8].algorithm == nvcomp.LEVEL and given[9:] == [0x6000, 0x7000]


def test_a_refusal_is_an_error():
    library = Nvcomp(PlayedNvcomp(6000, status=10))
    for call in (
        lambda: library.max_bytes(1),
        lambda: library.workspace_bytes(1, 1),
        lambda: library.deflate(0, WORK),
    ):
        with pytest.raises(BackendError, match="nvCOMP answers with status 10"):
            call()


@pytest.fixture
def found(monkeypatch):
    """What loads at the places where the library may be: a played one, or an error."""
    libraries = []
    monkeypatch.setattr(nvcomp, "_paths", lambda: iter([f"/p/{n}" for n in range(len(libraries))]))

    def load(path):
        library = libraries[int(path.rpartition("/")[2])]
        if isinstance(library, Exception):
            raise library
        return library

    monkeypatch.setattr(nvcomp.ctypes, "CDLL", load)
    load_nvcomp.cache_clear()
    yield libraries
    load_nvcomp.cache_clear()


def test_the_first_that_can_be_used_is_taken(found):
    found += [OSError("no file"), PlayedNvcomp(4000), PlayedNvcomp(6000, without="Async")]
    with pytest.raises(LibraryError, match=r"cannot be used: .*Async"):
        load_nvcomp()
    found += [PlayedNvcomp(5300)]
    assert load_nvcomp().max_bytes(1) == 4321


@pytest.mark.parametrize("version", [4000, 7000])
def test_other_versions_are_refused(found, version):
    found.append(PlayedNvcomp(version))
    with pytest.raises(LibraryError, match=f"cannot be used: version {version // 1000}"):
        load_nvcomp()


def test_without_any_the_error_says_so(found):
    with pytest.raises(LibraryError, match=r"compression on a GPU needs .*: not installed"):
        load_nvcomp()


@pytest.mark.parametrize(
    ("version", "library", "extra"),
    [
        (None, "nvidia-libnvcomp-cu13", "nvcomp"),
        ((13, 0), "nvidia-libnvcomp-cu13", "nvcomp"),
        ((12, 8), "nvidia-libnvcomp-cu12", "nvcomp12"),
    ],
)
def test_the_error_names_what_the_driver_can_use(version, library, extra, monkeypatch):
    monkeypatch.setattr(nvcomp, "driver_facts", lambda: DriverFacts(version, (), None))
    error = nvcomp_error("why")
    assert (error.library, error.extra, error.problem) == (library, extra, "why")


def test_the_places_are_of_the_known_versions():
    assert [path for path in nvcomp._paths() if "/" not in path] == [
        "libnvcomp.so.6",
        "libnvcomp.so.5",
    ]
