"""Words of the command line before click reads them, the help, and the options of ``map``."""

import shlex

import click
import pytest
from helpers.loops import each
from helpers.tables import table

from mummergpu.cli.main import commands
from mummergpu.cli.main_group import Spellings, verb_meant
from mummergpu.cli.map import map_options
from mummergpu.cli.option_types import HELP_NAMES, Session
from mummergpu.errors import MummergpuError
from mummergpu.input.blocks.read_files import MateFiles, ReadFile
from mummergpu.mapping.options import InsertSizes
from mummergpu.viterbi.recurrence.model import Costs

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


def options_of(words):
    command = commands.commands["map"]
    with command.make_context("map", shlex.split(words), obj=Session([])) as context:
        return map_options(context.params, "mummergpu map")


def test_the_defaults_are_those_of_bwa():
    found = options_of("r.fa a.fq")
    assert found.costs == Costs()
    assert (found.min_score, found.unpaired, found.seed_length) == (30, 17, None)
    (output,) = found.outputs
    assert (output.path, output.format, found.sort) == ("-", "sam", None)
    assert found.insert_sizes is None
    assert found.read_group is not None and found.read_group.name == "a"


SOURCES = {
    "a.fq": (ReadFile("a.fq"),),
    "a.fq b.fq": (MateFiles("a.fq", "b.fq"),),
    "a.fq b.fq c.fq d.fq": (MateFiles("a.fq", "b.fq"), MateFiles("c.fq", "d.fq")),
    "a.fq b.fq -p": (ReadFile("a.fq", True), ReadFile("b.fq", True)),
    "a.fq b.fq --single": tuple(ReadFile(name, ignores_flags=True) for name in ("a.fq", "b.fq")),
}


@each("words, sources", SOURCES.items())
def test_two_and_two_files_are_mates(words, sources):
    assert options_of(f"r.fa {words}").sources == sources


@each("words, output", table(__file__, "formats of map"))
def test_the_name_or_the_option_decides_on_the_format(words, output):
    (found,) = options_of(f"r.fa a.fq {words}").outputs
    assert f"{found.path} {found.format} {found.compression}" == output


def test_scores_are_those_of_the_letters():
    found = options_of("r.fa a.fq -A 2 -B 5 -O 7,8 -E 2,3 -L 4 -U 9 -T 20 -k 19")
    # The first number is that of deletions, as bwa has it.
    gaps = {"insertion_open": 8, "insertion_extend": 3, "deletion_open": 7, "deletion_extend": 2}
    assert found.costs == Costs(match=2, mismatch=5, end_bonus=4, **gaps)
    assert (found.unpaired, found.min_score, found.seed_length) == (9, 20, 19)


@each(
    "text, sizes",
    [
        *(("400", (400.0, 40.0, 240, 560)), ("400,50", (400.0, 50.0, 200, 600))),
        *(("400,50,900", (400.0, 50.0, 200, 900)), ("400,50,900,100", (400.0, 50.0, 100, 900))),
    ],
)
def test_insert_sizes_of_the_user(text, sizes):
    assert options_of(f"r.fa a.fq -I {text}").insert_sizes == InsertSizes(*sizes)


@each("text", ["x", "1,2,3,4,5", "0", "-5", "400,", "400,50,100,200", "nan"])
def test_wrong_insert_sizes(text):
    with pytest.raises(MummergpuError, match="insert_size"):
        options_of(f"r.fa a.fq -I {text}")


@each("words", ["-p --single", "b.fq c.fq"])
def test_what_cannot_be_together(words):
    with pytest.raises(click.UsageError):
        options_of(f"r.fa a.fq {words}")


def test_sorting_is_asked_for():
    found = options_of("r.fa a.fq -o x.bam --sort --mark-duplicates --sort-memory 64M -t 3").sort
    assert found is not None and found.by_coordinate and found.mark_duplicates
    assert (found.memory_bytes, found.threads) == (64 << 20, 3)
    found = options_of("r.fa a.fq -o x.bam --mark-duplicates").sort
    assert found is not None and not found.by_coordinate
