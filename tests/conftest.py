"""Which tests run, in how many processes; and what they share: real data, MUMmer, NVRTC."""

import ctypes
import gc
import os
import shutil
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers.first_tests import in_order
from helpers.requirements import do_without, program_of
from helpers.tiers import is_in, listed
from hypothesis import HealthCheck, settings

from mummergpu.runtime.processors import processor_count

SHARED_DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
"""Real genomes and reads; they lie beside a checkout, never in it."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

for name, examples in (("quick", 50), ("thorough", 1000)):
    settings.register_profile(
        name,
        max_examples=examples,
        # The same ones for each change, so that none fails for what another one brought.
        derandomize=name == "quick",
        deadline=None,
        # The first example compiles; others run on a loaded machine.
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        print_blob=True,
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
"""The name of this process among those that share the tests."""

MOST_WORKERS = 8
"""Processes beyond so many wait for each other's memory and files."""


@pytest.fixture(autouse=True, scope="session")
def tables_at_first():
    """Loads the libraries of tables before all tests, if they are installed.

    A worker that had run thousands of tests went on without the library of polars, and another one
    ended where it loaded that of pyarrow. Both happened once, and nobody knows why.
    """
    for name in ("pyarrow", "polars"):
        with suppress(ImportError):
            import_module(name)


@pytest.fixture(autouse=True, scope="module")
def free_memory_given_back():
    """Gives the system the memory back that a file's tests have freed: glibc keeps gigabytes."""
    yield
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@pytest.fixture(autouse=True, scope="session")
def dask_folder(tmp_path_factory):
    """Lets clusters of Dask write where all of it is removed at the end."""
    os.environ["DASK_TEMPORARY_DIRECTORY"] = str(tmp_path_factory.mktemp("dask"))


def pytest_collection():
    """Collect without the garbage collector: a million objects come, and none of them goes."""
    gc.disable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Let every other process collect files from the last to the first.

    Each compiles half of the modules and of the tests' assertions then, and finds the other half.
    """
    report = yield
    if isinstance(collector, pytest.Directory) and WORKER[-1:] in tuple("13579"):
        report.result.reverse()
    return report


def pytest_collection_finish():
    """Collect garbage again, but rarely, and none of what has been collected: numba makes much."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


def pytest_addoption(parser):
    parser.addoption("--ci", action="store_true", help="run the tests that CI runs")
    parser.addoption("--all", action="store_true", help="run the tests of the night too")


def _names_tests(config):
    """Tell whether files or tests are named, not whole folders."""
    return any("::" in word or word.endswith(".py") for word in config.args)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Run folders of tests on all processors that are ours, and single files in this process."""
    told = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS", "")
    if told.isdecimal():
        return int(told)
    processors = processor_count()
    return 0 if processors == 1 or _names_tests(config) else min(processors, MOST_WORKERS)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave out tests of other tiers, unless an option, ``-m`` or their name asks for them.

    Tests of the tier of CI run with ``--ci``, and where their file is named; slow ones run with
    ``--all``, at night. A name of a test is enough for both.
    """
    if WORKER:
        items.sort(key=lambda item: item.path)
    tiers = config.rootpath / "tests" / "tiers"
    for tier, name in (("ci", "ci.txt"), ("slow", "night.txt")):
        tests = listed(tiers / name)
        for item in items:
            if is_in(item.nodeid, tests):
                item.add_marker(tier)
    given = config.option
    named = tuple(word.split("::", 1)[1] for word in config.args if "::" in word)
    left_out = set()
    for tier, is_wanted in (
        ("slow", given.all),
        ("ci", given.all or given.ci or _names_tests(config)),
    ):
        if not is_wanted and tier not in given.markexpr:
            left_out |= {
                item
                for item in items
                if item.get_closest_marker(tier)
                and not item.nodeid.split("::", 1)[1].startswith(named)
            }
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[:] = in_order(items, processes, lambda item: item.nodeid.removeprefix("tests/"))


@pytest.fixture
def told(monkeypatch):
    """Collects the options that the main job is told, instead of doing it."""
    from mummergpu.pipeline import match

    collected = []
    monkeypatch.setattr(match, "run", lambda options, *others: collected.append(options))
    return collected


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real genomes and reads; skips where there is none."""
    if not SHARED_DATA.is_dir():
        do_without("there is no ../shared/data beside this checkout", "SHARED_DATA")
    return SHARED_DATA


def _program(name, source=None):
    """Make a fixture that is the path of a program, or skips the test."""

    @pytest.fixture(scope="session")
    def path():
        return program_of(name, source=source)

    return path


mummer_binary = _program("mummer")
"""The program of MUMmer 3.23 to agree with."""

samtools_binary = _program("samtools")
bedtools_binary = _program("bedtools")
dwgsim_binary = _program("dwgsim")
multiqc_binary = _program("multiqc", "pip install multiqc")


@pytest.fixture(scope="session")
def browser_binary():
    """The path of a Chromium, which opens the pages of reports without a window."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    return path or program_of("chromium", "BROWSER")


@pytest.fixture(scope="session")
def nvrtc():
    """For tests that compile the kernels, for which no GPU is needed."""
    from mummergpu.cuda.nvrtc import nvrtc_version
    from mummergpu.errors import BackendError

    try:
        nvrtc_version()
    except BackendError as error:
        do_without(error.message, "NVRTC")


@pytest.fixture(scope="session")
def mkdocs():
    """For tests that build the site of the documentation."""
    for name in ("mkdocs", "material", "mkdocstrings_handlers.python"):
        try:
            found = find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            do_without(f"{name} is not installed (pip install '.[docs]')", "DOCS")


def pytest_configure():
    """Keep compiled code where the environment says now, whatever tests do to it later."""
    from mummergpu.runtime.cache_dir import processor_code_places
    from mummergpu.runtime.compiled.store import keep_code_in

    keep_code_in(processor_code_places(os.environ))
