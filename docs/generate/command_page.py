"""Renders the command line as a page of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from generate.verbs import OptionText, Verb, all_verbs, keeps_lines, paragraphs

from mummergpu.cli.main_group import MAIN_VERB

HEAD = """# Command line

This page is made from the program itself, and says what `mummergpu --help` and the `--help` of each
command say. `make man` writes the same as a manual page, `mummergpu.1`.
"""

_SPECIAL = re.compile(r"([\\`*_<>\[\]|#])")


def command_page() -> str:
    """Return the page, with a section for each verb."""
    return "\n".join([HEAD, *(line for verb in all_verbs() for line in _verb_lines(verb))])


def _verb_lines(verb: Verb) -> Iterator[str]:
    title = "mummergpu" if verb.name == MAIN_VERB else f"mummergpu {verb.name}"
    yield f"## {title}\n"
    yield f"    {verb.usage}\n"
    yield from map(_paragraph, paragraphs(verb.description))
    for section, options in verb.sections.items():
        yield f"### {section} {{ #{verb.name}-{_slug(section)} }}\n"
        yield from map(_option, options)
    yield from map(_paragraph, paragraphs(verb.notes))


def _option(option: OptionText) -> str:
    return f"`{option.names}`\n:   {_SPECIAL.sub(_escaped, option.help)}\n"


def _paragraph(text: str) -> str:
    if keeps_lines(text):
        return f"```text\n{text}\n```\n"
    return _SPECIAL.sub(_escaped, text) + "\n"


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found.group()}"


def _slug(title: str) -> str:
    return re.sub(r"[^a-z]+", "-", title.lower()).strip("-")
