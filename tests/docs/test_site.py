"""The documentation becomes a site without a warning, and all links lead somewhere."""

import os
import re
import subprocess
import sys

import pytest
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
