"""The documentation becomes a site and a manual page; all links lead somewhere."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from generate.manual_page import manual_page
from generate.verbs import all_verbs
from helpers.doc_pages import ROOT, name_of

from mummergpu.cli.main import commands

_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.fixture(scope="module")
def site(mkdocs, tmp_path_factory):
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    # A warning is an error (--strict), and mkdocs.yml has a warning for each broken link.
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_site_has_every_verb(site):
    text = (site / "reference" / "command-line" / "index.html").read_text()
    for verb in set(commands.commands) - {"match"}:
        assert f'id="mummergpu-{verb}"' in text


def test_site_has_the_python_interface(site):
    text = (site / "reference" / "python" / "index.html").read_text()
    for name in ("Index.build", "Index.stream", "Matches.to_arrow"):
        assert f".{name}" in text


def test_site_has_nothing_of_what_makes_it(site):
    assert not list(site.rglob("*.py"))


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_from_the_top_lead_to_files(name):
    page = ROOT / name
    missing = [link for link in _LINK.findall(page.read_text()) if not (ROOT / link).exists()]
    assert not missing, f"{name_of(page)}: {missing}"


@pytest.fixture(scope="module")
def page():
    return manual_page()


def test_sections_are_those_of_manual_pages(page):
    sections = re.findall(r'^\.SH "?([A-Z ]+)"?$', page, re.MULTILINE)
    assert sections[:5] == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS"]
    assert sections[5:] == ["EXIT STATUS", "ENVIRONMENT", "SEE ALSO"]


def test_every_option_of_every_verb_is_there(page):
    plain = page.replace("\\-", "-")
    for verb in all_verbs():
        for options in verb.sections.values():
            for option in options:
                assert f"\n.B {option.names}\n" in plain


def test_tables_of_the_documentation_are_there(page):
    assert "\n.B 130\n" in page and "\n.B MUMMERGPU_CACHE_DIR\n" in page


def test_lines_that_are_text_are_no_requests(page):
    known = {"TH", "SH", "SS", "TP", "B", "BR", "PP", "br", "nf", "fi"}
    assert {line[1:].split(" ")[0] for line in page.split("\n") if line.startswith(".")} <= known
    assert not [line for line in page.split("\n") if line.startswith("'")]


def test_groff_finds_nothing_wrong(page):
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed (Debian: apt-get install groff-base)")
    # Words that are longer than a line, such as a list of formats, cannot be adjusted (break).
    command = [groff, "-man", "-Tutf8", "-ww", "-Wbreak"]
    done = subprocess.run(command, input=page.encode(), capture_output=True)
    assert done.returncode == 0 and done.stderr == b""
    assert b"Report every maximal exact match" in done.stdout
