"""The examples in Python on the pages of the documentation do what the pages say."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from helpers.doc_pages import PAGES, blocks_of, name_of


def _session_of(page: Path) -> str:
    """Return the examples of a page, each at its own line, so that failures name that line."""
    lines: list[str] = []
    for block in blocks_of(page):
        if block.language == "python" and ">>>" in block.text:
            lines += [""] * (block.line - 1 - len(lines)) + block.text.split("\n")[:-1]
    return "\n".join(lines)


WITH_EXAMPLES = [page for page in PAGES if _session_of(page)]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples_show_what_they_print(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(_session_of(page), {}, page.name, str(page), 0)
    assert test.examples

    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=report.append)

    assert not report, "".join(report)


def test_there_are_examples() -> None:
    assert "docs/tutorials/python.md" in map(name_of, WITH_EXAMPLES)
