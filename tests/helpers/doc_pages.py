"""The pages of the documentation, and the blocks of code in them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"

PAGES = sorted(DOCS.rglob("*.md"))
ALL_TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]

_FENCE = re.compile(r"^ *```(\w*)$")


@dataclass(frozen=True)
class Block:
    """A block of code, fenced with a language; its first line, counted from 1, and its lines."""

    language: str
    line: int
    text: str


def name_of(page):
    """Return the name of a page for reports of tests."""
    return str(page.relative_to(ROOT))


def blocks_of(page):
    """Yield the fenced blocks of a page."""
    language, begin, lines = None, 0, []
    for number, line in enumerate(page.read_text().split("\n"), 1):
        fence = _FENCE.match(line)
        if fence and language is None:
            language, begin, lines = fence[1], number + 1, []
        elif fence:
            yield Block(language or "", begin, "\n".join(lines) + "\n")
            language = None
        else:
            lines.append(line)
    assert language is None, f"{name_of(page)} has a block that does not end"
