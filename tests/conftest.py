"""Which tests run, in how many processes; and what they share: real data, MUMmer, NVRTC."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from mummergpu.runtime.processors import processor_count

SHARED_DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
"""Real genomes and reads; they lie beside a checkout, never in it."""

REQUIRE_MUMMER = "MUMMERGPU_REQUIRE_MUMMER"
"""Set to 1 where a missing ``mummer`` must fail the tests that need it."""

REQUIRE_SAMTOOLS = "MUMMERGPU_REQUIRE_SAMTOOLS"
"""Set to 1 where a missing ``samtools`` must fail the tests that need it."""

REQUIRE_BEDTOOLS = "MUMMERGPU_REQUIRE_BEDTOOLS"
"""Set to 1 where a missing ``bedtools`` must fail the tests that need it."""

REQUIRE_DWGSIM = "MUMMERGPU_REQUIRE_DWGSIM"
"""Set to 1 where a missing ``dwgsim`` must fail the tests that simulate reads with it."""

REQUIRE_BROWSER = "MUMMERGPU_REQUIRE_BROWSER"
"""Set to 1 where a missing browser must fail the tests that open a page in one."""

REQUIRE_DOCS = "MUMMERGPU_REQUIRE_DOCS"
"""Set to 1 where tests that build the documentation must not be skipped."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

REQUIRE_MULTIQC = "MUMMERGPU_REQUIRE_MULTIQC"
"""Set to 1 where a missing MultiQC must fail the tests that give it files."""

REQUIRE_NVRTC = "MUMMERGPU_REQUIRE_NVRTC"
"""Set to 1 where tests that compile the kernels must not be skipped."""


MOST_WORKERS = 8
"""Processes beyond so many wait for each other's memory and files."""


@pytest.fixture(autouse=True, scope="session")
def tables_at_first() -> None:
    """Loads the libraries of tables before all tests, if they are installed.

    A worker that had run thousands of tests went on without the library of polars, and another one
    ended where it loaded that of pyarrow. Both happened once, and nobody knows why.
    """
    for name in ("pyarrow", "polars"):
        with suppress(ImportError):
            import_module(name)


@pytest.fixture(autouse=True, scope="session")
def no_configuration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hides what the developer has tuned: tests see the configuration of a new user."""
    before = os.environ.get("XDG_CONFIG_HOME")
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("configuration"))
    yield
    if before is None:
        del os.environ["XDG_CONFIG_HOME"]
    else:
        os.environ["XDG_CONFIG_HOME"] = before


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that runs everything."""
    parser.addoption("--all", action="store_true", help="run the tests that are marked slow too")


def _names_tests(config: pytest.Config) -> bool:
    """Tell whether files or tests are named, not whole folders."""
    return any("::" in word or word.endswith(".py") for word in config.args)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run folders of tests on all processors that are ours, and single files in this process."""
    told = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS", "")
    if told.isdecimal():
        return int(told)
    processors = processor_count()
    return 0 if processors == 1 or _names_tests(config) else min(processors, MOST_WORKERS)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked slow, unless ``--all`` is given, ``-m slow``, or the test's name."""
    if config.option.all or "slow" in config.option.markexpr:
        return
    named = tuple(word.split("::", 1)[1] for word in config.args if "::" in word)
    left_out = [
        item
        for item in items
        if item.get_closest_marker("slow") and not item.nodeid.split("::", 1)[1].startswith(named)
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real genomes and reads; skips where there is none."""
    if not SHARED_DATA.is_dir():
        pytest.skip("there is no ../shared/data beside this checkout")
    return SHARED_DATA


@pytest.fixture(scope="session")
def mummer_binary() -> str:
    """The path of MUMmer 3.23's ``mummer``, the program to agree with.

    Without it the test is skipped, or fails where `REQUIRE_MUMMER` is set to 1.
    """
    path = shutil.which("mummer")
    if path is not None:
        return path
    _do_without("mummer is not installed (Debian: apt-get install mummer)", REQUIRE_MUMMER)


@pytest.fixture(scope="session")
def samtools_binary() -> str:
    """The path of ``samtools``, which says what is a whole file of alignments.

    Without it the test is skipped, or fails where `REQUIRE_SAMTOOLS` is set to 1.
    """
    path = shutil.which("samtools")
    if path is not None:
        return path
    _do_without("samtools is not installed (Debian: apt-get install samtools)", REQUIRE_SAMTOOLS)


@pytest.fixture(scope="session")
def bedtools_binary() -> str:
    """The path of ``bedtools``, which reads BED.

    Without it the test is skipped, or fails where `REQUIRE_BEDTOOLS` is set to 1.
    """
    path = shutil.which("bedtools")
    if path is not None:
        return path
    _do_without("bedtools is not installed (Debian: apt-get install bedtools)", REQUIRE_BEDTOOLS)


@pytest.fixture(scope="session")
def dwgsim_binary() -> str:
    """The path of ``dwgsim``, which simulates reads.

    Without it the test is skipped, or fails where `REQUIRE_DWGSIM` is set to 1.
    """
    path = shutil.which("dwgsim")
    if path is not None:
        return path
    _do_without("dwgsim is not installed (Debian: apt-get install dwgsim)", REQUIRE_DWGSIM)


@pytest.fixture(scope="session")
def browser_binary() -> str:
    """The path of a Chromium, which opens the pages of reports without a window.

    Without it the test is skipped, or fails where `REQUIRE_BROWSER` is set to 1.
    """
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is not None:
        return path
    _do_without("there is no browser (Debian: apt-get install chromium)", REQUIRE_BROWSER)


@pytest.fixture(scope="session")
def multiqc_binary() -> str:
    """The path of ``multiqc``, which makes one page of the files of many programs.

    Without it the test is skipped, or fails where `REQUIRE_MULTIQC` is set to 1.
    """
    path = shutil.which("multiqc")
    if path is not None:
        return path
    _do_without("multiqc is not installed (pip install multiqc)", REQUIRE_MULTIQC)


@pytest.fixture(scope="session")
def nvrtc() -> None:
    """For tests that compile the kernels, for which no GPU is needed.

    Without NVRTC the test is skipped, or fails where `REQUIRE_NVRTC` is set to 1.
    """
    from mummergpu.cuda.nvrtc import nvrtc_version
    from mummergpu.errors import BackendError

    try:
        nvrtc_version()
    except BackendError as error:
        _do_without(error.message, REQUIRE_NVRTC)


@pytest.fixture(scope="session")
def mkdocs() -> None:
    """For tests that build the site of the documentation.

    Without mkdocs, its theme or mkdocstrings the test is skipped, or fails where `REQUIRE_DOCS` is
    set to 1.
    """
    for name in ("mkdocs", "material", "mkdocstrings_handlers.python"):
        try:
            found = find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            _do_without(f"{name} is not installed (pip install '.[docs]')", REQUIRE_DOCS)


def _do_without(reason: str, variable: str) -> NoReturn:
    """Skip the test, or fail it where the variable asks for that."""
    if os.environ.get(variable) == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def pytest_configure() -> None:
    """Keep compiled code where the environment says now, whatever tests do to it later."""
    from mummergpu.runtime.cache_places import processor_code_places
    from mummergpu.runtime.compiled.code_cache import keep_code_in

    keep_code_in(processor_code_places(os.environ))
