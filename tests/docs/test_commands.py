"""The commands on the pages of the documentation have only options that there are."""

import re
import shlex

import click
import pytest
from helpers.doc_pages import ALL_TEXTS, blocks_of, name_of

from mummergpu.cli.main import commands
from mummergpu.cli.option_types import Session

_END_OF_COMMAND = {"|", "||", "&&", ";", ">", "<", "2>"}
_VARIABLE = re.compile(r"\$\w+")
_INDENTED = re.compile(r"^    (?=mummergpu )(.*)$", re.MULTILINE)


def _shell_text(page):
    """Return the commands of a page, in blocks and indented; a number stands for each variable."""
    blocks = [block.text for block in blocks_of(page) if block.language in ("sh", "bash")]
    text = "".join(blocks) + "".join(f"{line}\n" for line in _INDENTED.findall(page.read_text()))
    return _VARIABLE.sub("8", text.replace("\\\n", " "))


def _commands_of(page):
    """Yield the words of each call of mummergpu, up to a pipe or a redirection."""
    for line in _shell_text(page).split("\n"):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        words = list(lexer)
        while "mummergpu" in words:
            words = words[words.index("mummergpu") + 1 :]
            end = next((n for n, word in enumerate(words) if word in _END_OF_COMMAND), len(words))
            yield words[:end]


@pytest.fixture(autouse=True)
def no_work(monkeypatch):
    """Let every verb end as soon as its options are parsed."""
    for command in commands.commands.values():
        monkeypatch.setattr(command, "callback", lambda **_: None)


def _parse(words):
    """Parse a command line as the program does."""
    with commands.make_context("mummergpu", list(words), obj=Session(words)) as context:
        commands.invoke(context)


CALLS = [
    pytest.param(words, id=f"{name_of(page)}: {' '.join(words)}"[:100])
    for page in ALL_TEXTS
    for words in _commands_of(page)
    # A usage line, and those of other programs' configuration, are not commands.
    if words and "[options]" not in words
]


@pytest.mark.parametrize("words", CALLS)
def test_commands_can_be_parsed(words):
    _parse(words)


def test_an_option_that_is_missing_is_noticed():
    with pytest.raises(click.UsageError, match="--no-such-option"):
        _parse(["genome.fa", "reads.fq", "--no-such-option"])


def test_there_are_commands():
    assert len(CALLS) > 30
