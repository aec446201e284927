"""The examples in Python on the pages of the documentation do what the pages say."""

import doctest

import pytest
from helpers.doc_pages import PAGES, blocks_of, name_of


def _session_of(page):
    """Return the examples of a page, each at its own line, so that failures name that line."""
    lines = []
    for block in blocks_of(page):
        if block.language == "python" and ">>>" in block.text:
            lines += [""] * (block.line - 1 - len(lines)) + block.text.split("\n")[:-1]
    return "\n".join(lines)


WITH_EXAMPLES = [page for page in PAGES if _session_of(page)]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples_show_what_they_print(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(_session_of(page), {}, page.name, str(page), 0)
    assert test.examples

    report = []
    doctest.DocTestRunner(verbose=False).run(test, out=report.append)

    assert not report, "".join(report)


def test_there_are_examples():
    assert "docs/tutorials/python.md" in map(name_of, WITH_EXAMPLES)
