"""What the command line offers: its verbs and their options, read from click."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from mummergpu.cli.exit_on_signal import PROGRAM
from mummergpu.cli.main import commands
from mummergpu.cli.main_group import MAIN_VERB
from mummergpu.cli.option_types import SectionedCommand

WIDTH = 1000
"""The width of usage lines, so that none is broken."""


@dataclass(frozen=True)
class OptionText:
    """An option as its help shows it.

    Attributes
    ----------
    names : str
        Its spellings and the name of its value, such as ``-o, --output FILE``.
    help : str
        What it does, in one line, with its default.
    """

    names: str
    help: str


@dataclass(frozen=True)
class Verb:
    """A command.

    Attributes
    ----------
    name : str
        Its name; that of the main job may be left out.
    usage : str
        Its usage line.
    summary : str
        Its purpose in one line, without a full stop.
    description : str
        Its help: paragraphs between empty lines (`paragraphs`).
    sections : mapping of str to tuple of OptionText
        Its options below their titles.
    notes : str
        What its help says below the options; empty for most.
    """

    name: str
    usage: str
    summary: str
    description: str
    sections: Mapping[str, tuple[OptionText, ...]]
    notes: str


def all_verbs() -> list[Verb]:
    """Return all verbs: the main job first, the others by name."""
    root = click.Context(commands, info_name=PROGRAM)
    names = sorted(commands.commands, key=lambda name: (name != MAIN_VERB, name))
    return [_verb(root, name, commands.commands[name]) for name in names]


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a help text, without the marks that click needs."""
    return [part.strip("\n") for part in text.replace("\b\n", "").split("\n\n") if part.strip()]


def keeps_lines(paragraph: str) -> bool:
    """Tell whether the lines of a paragraph are those of a list or of an example."""
    return any(line.startswith(" ") for line in paragraph.split("\n"))


def _verb(root: click.Context, name: str, command: click.Command) -> Verb:
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    context = click.Context(command, parent=root, info_name=name, **settings)
    usage = command.get_usage(context).removeprefix("Usage: ")
    return Verb(
        name,
        " ".join(usage.split()),
        command.get_short_help_str(WIDTH).rstrip("."),
        inspect.cleandoc(command.help or ""),
        _sections(command, context),
        inspect.cleandoc(command.epilog or ""),
    )


def _sections(
    command: click.Command, context: click.Context
) -> Mapping[str, tuple[OptionText, ...]]:
    titled = {"Options": command.params}
    if isinstance(command, SectionedCommand):
        titled = command.sections
    sections = {title: _texts(options, context) for title, options in titled.items()}
    if help_option := command.get_help_option(context):
        last = next(reversed(sections))
        sections[last] = (*sections[last], *_texts([help_option], context))
    return {title: texts for title, texts in sections.items() if texts}


def _texts(parameters: Sequence[click.Parameter], context: click.Context) -> tuple[OptionText, ...]:
    # Some versions of click have records of arguments, too, which only repeat their names.
    options = [parameter for parameter in parameters if isinstance(parameter, click.Option)]
    records = [option.get_help_record(context) for option in options]
    return tuple(OptionText(names, " ".join(text.split())) for names, text in filter(None, records))
