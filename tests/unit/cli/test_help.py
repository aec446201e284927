"""The help is short: options that repeat others are accepted, and stand in the documentation."""

from __future__ import annotations

import click
import pytest
from generate.verbs import ALSO_ACCEPTED, Verb, all_verbs

from mummergpu.cli.main import commands
from mummergpu.cli.map import ALL_PLACEMENTS
from mummergpu.cli.session import Session
from mummergpu.index.tree.policy import LETTERS

MAX_SHOWN = {"match": 45, "map": 38, "align": 37}


def verb_named(name: str) -> Verb:
    return next(verb for verb in all_verbs() if verb.name == name)


def parsed(name: str, *words: str) -> dict[str, object]:
    command = commands.commands[name]
    with command.make_context(name, ["r.fa", "q.fa", *words], obj=Session([])) as context:
        return dict(context.params)


@pytest.mark.parametrize("name", MAX_SHOWN)
def test_the_help_shows_few_options_below_titles(name: str) -> None:
    sections = dict(verb_named(name).sections)
    hidden = sections.pop(ALSO_ACCEPTED)
    assert sum(map(len, sections.values())) <= MAX_SHOWN[name]
    assert len(sections) >= 6
    command = commands.commands[name]
    text = command.get_help(click.Context(command, info_name=name))
    for option in hidden:
        assert f"  {option.names} " not in text and f"  {option.names}\n" not in text
    assert "--no-progress" in {option.names for option in hidden}


@pytest.mark.parametrize(
    ("name", "words", "parameter", "value"),
    [
        ("match", "-C", "cpu", True),
        ("map", "-C", "comments", True),
        ("map", "-a", "all_placements", True),
        ("map", "-N all", "max_secondary", ALL_PLACEMENTS),
        ("map", "--no-read-group", "no_read_group", True),
        ("align", "--min-length 5", "min_alignment_length", 5),
        ("align", "--min-alignment-length 5", "min_alignment_length", 5),
        ("align", "-mumreference", "mumreference", True),
        *(("match", f"--{name.replace('_', '-')}", name, True) for name in LETTERS),
    ],
)
def test_what_is_not_shown_is_accepted(
    name: str, words: str, parameter: str, value: object
) -> None:
    assert parsed(name, *words.split())[parameter] == value


def test_what_is_not_shown_is_documented() -> None:
    of_align = [option.names for option in verb_named("align").sections[ALSO_ACCEPTED]]
    assert "-mumreference, --mumreference" in of_align and "--min-length" in of_align
    of_match = [option.names for option in verb_named("match").sections[ALSO_ACCEPTED]]
    assert "--merged-tree / --no-merged-tree" in of_match
    assert not {"--block-size", "--rows-by-reference"} & {one.split(" ")[0] for one in of_match}
