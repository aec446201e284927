"""Renders the command line as a manual page.

``make man`` runs this module: it writes the page to standard output. The sections on exit codes and
on the environment are the tables of two pages of the documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from generate.verbs import OptionText, Verb, all_verbs, keeps_lines, paragraphs

from mummergpu.cli.exit_on_signal import PROGRAM
from mummergpu.cli.main_group import MAIN_VERB
from mummergpu.version import __version__

REFERENCE_PAGES = Path(__file__).resolve().parent.parent / "reference"

_TABLES = {"EXIT STATUS": "exit-codes.md", "ENVIRONMENT": "environment.md"}


def manual_page() -> str:
    """Return the page, as input of ``man``."""
    main, *others = all_verbs()
    lines = [
        f'.TH {PROGRAM.upper()} 1 "" "{PROGRAM} {__version__}" "User Commands"',
        ".SH NAME",
        _text(f"{PROGRAM} - find every maximal exact match between sequences and a reference"),
        ".SH SYNOPSIS",
        *_usage(main),
    ]
    for verb in others:
        lines += [".br", *_usage(verb)]
    lines += [".SH DESCRIPTION", *_paragraphs(main.description), ".SH OPTIONS"]
    for title, options in main.sections.items():
        lines += [f'.SS "{_text(title)}"', *_options(options)]
    lines += _paragraphs(main.notes)
    lines.append(".SH COMMANDS")
    for verb in others:
        lines += [f'.SS "{_text(f"{PROGRAM} {verb.name}")}"', *_paragraphs(verb.description)]
        lines += [line for options in verb.sections.values() for line in _options(options)]
    for title, name in _TABLES.items():
        lines += [f'.SH "{title}"', *_table(REFERENCE_PAGES / name)]
    lines += [".SH SEE ALSO", ".BR mummer (1),", ".BR samtools (1)"]
    return "\n".join(lines) + "\n"


def _usage(verb: Verb) -> Iterator[str]:
    words = verb.usage.removeprefix(PROGRAM)
    if verb.name != MAIN_VERB:
        yield f".B {PROGRAM} {verb.name}"
        yield _text(words.removeprefix(f" {verb.name}").strip())
    else:
        yield f".B {PROGRAM}"
        yield _text(words.strip())


def _options(options: tuple[OptionText, ...]) -> Iterator[str]:
    for option in options:
        yield from (".TP", f".B {_text(option.names)}", _text(option.help))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in paragraphs(text):
        if keeps_lines(paragraph):
            yield from (".PP", ".nf", *map(_text, paragraph.split("\n")), ".fi")
        else:
            yield from (".PP", _text(" ".join(paragraph.split())))


def _table(page: Path) -> Iterator[str]:
    """Yield the rows of the tables on a page: what is in the first column, and the rest."""
    for line in page.read_text().split("\n"):
        cells = [_plain(cell) for cell in line.strip("| ").split(" | ")]
        if line.startswith("|") and len(cells) > 1 and line.startswith("| `"):
            yield from (".TP", f".B {_text(cells[0])}", _text(" ".join(cells[1:])))


def _plain(markdown: str) -> str:
    """Return the text of a cell without the marks of Markdown."""
    without_links = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown)
    return without_links.replace("`", "").replace("**", "").strip()


def _text(line: str) -> str:
    """Return a line of text in which nothing has a meaning for ``man``."""
    line = line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace('"', "\\(dq")
    return f"\\&{line}" if line.startswith(".") else line


if __name__ == "__main__":
    print(manual_page(), end="")
