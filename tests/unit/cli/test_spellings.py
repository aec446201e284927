"""Words of the command line before click reads them, and the help that shows them."""

import click
import pytest
from helpers.loops import each
from helpers.tables import table

from mummergpu.cli.main import commands
from mummergpu.cli.main_group import Spellings, verb_meant
from mummergpu.cli.option_types import HELP_NAMES

EVERY = {name: Spellings(command.params, HELP_NAMES) for name, command in commands.commands.items()}
MATCH = EVERY["match"]
SPELLINGS = MATCH.with_others(EVERY.values())


def test_no_spelling_takes_a_value_in_one_command_and_none_in_another():
    """Else no one could tell whether what stands behind it is the verb.

    Before the verb, -L, -b, -c and -r are those of MUMmer's mummer. Those of bwa mem, among them
    the penalty of clipping, and those of nucmer, the break length and the least cluster, stand
    behind. So do Parquet and TSV of hmm, which name no file there.
    """
    behind = {"map": {"-L"}, "align": {"-b", "-c"}}
    formats = {"--parquet", "--tsv"}
    for name, one in EVERY.items():
        for other_name, other in EVERY.items():
            allowed = behind.get(name, set()) | (formats if other_name == "hmm" else set())
            assert one.with_value & other.flags <= allowed
    assert formats <= SPELLINGS.with_value & EVERY["hmm"].flags
    for name, spellings in behind.items():
        assert spellings <= MATCH.flags & EVERY[name].with_value
        assert spellings <= SPELLINGS.flags
    assert SPELLINGS.with_value & SPELLINGS.flags == set()
    assert {"-l", "--threads", "--policy", "--seed"} <= SPELLINGS.with_value
    assert {"-b", "-maxmatch", "--no-merged-tree", "--info", "-help"} <= SPELLINGS.flags


@each("words, expected", table(__file__, "next words"))
def test_whether_the_next_word_is_a_value(words, expected):
    for word in words.split():
        assert SPELLINGS.wants_next(word) is (expected == "yes"), word


def test_values_and_what_follows_two_dashes_have_no_position():
    words = ["-b", "-l", "20", "r.fa", "-", "-bo", "-x", "--stats=s", "q.fa", "--", "-r"]
    positions = list(SPELLINGS.positions(words))
    assert [words[at] for at, is_option in positions if is_option] == [
        *("-b", "-l", "-bo", "--stats=s")
    ]
    assert [words[at] for at, is_option in positions if not is_option] == ["r.fa", "-", "q.fa"]


@pytest.mark.parametrize(
    "words",
    [
        *("-b", "-bl 20", "-l20", "-bl20", "-bcL", "-scFLbl 20", "-t4", "-maxmatch", "-mumcand"),
        *("-o out", "-oresult.txt", "-oout", "-bo out", "-o/tmp/out", "-help", "-bh", "-l -3"),
        *("--min-length=20", "-lmany", "-z", "--nonsense", "- -", "-- -maxmach", "-o -maxmach"),
    ],
)
def test_these_words_are_left_to_click(words):
    MATCH.refuse_unknown(words.split())


@pytest.mark.parametrize(("words", "message"), table(__file__, "long words"))
def test_long_words_are_not_taken_apart(words, message):
    with pytest.raises(click.UsageError) as caught:
        MATCH.refuse_unknown(words.split())
    assert caught.value.message == message


@each("word, meant", table(__file__, "verbs"))
def test_a_verb_that_was_meant(word, meant):
    assert (verb_meant(word, commands.commands) or "") == meant


def test_a_file_is_no_misspelt_verb(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "doctr").touch()
    assert verb_meant("doctr", commands.commands) is None


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
