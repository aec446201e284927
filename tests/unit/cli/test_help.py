"""The help shows every option, below titles."""

import click
import pytest

from mummergpu.cli.main import commands

SECTIONED = ("match", "map", "align", "hmmsearch", "hmmscan")


@pytest.mark.parametrize("name", commands.commands)
def test_the_help_shows_every_option(name):
    command = commands.commands[name]
    text = command.get_help(click.Context(command, info_name=name))
    for option in command.params:
        if isinstance(option, click.Option):
            assert not option.hidden and option.opts[0] in text


@pytest.mark.parametrize("name", SECTIONED)
def test_options_stand_below_titles(name):
    command = commands.commands[name]
    text = command.get_help(click.Context(command, info_name=name))
    titles = [line for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert len(titles) >= 6
