"""The manual page tells every verb and option, and `man` can read it."""

import re
import shutil
import subprocess

import pytest
from generate.manual_page import manual_page
from generate.verbs import all_verbs


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
    assert "\n.B 130\n" in page
    assert "\n.B MUMMERGPU_CACHE_DIR\n" in page


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
    assert done.returncode == 0
    assert done.stderr == b""
    assert b"Report every maximal exact match" in done.stdout
