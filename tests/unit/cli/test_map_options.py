"""The options of ``map``, from words to the options of the job."""

import shlex

import click
import pytest
from helpers.loops import each
from helpers.tables import table

from mummergpu.cli.main import commands
from mummergpu.cli.map import map_options
from mummergpu.cli.option_types import Session
from mummergpu.errors import MummergpuError
from mummergpu.input.blocks.read_files import MateFiles, ReadFile
from mummergpu.mapping.options import InsertSizes
from mummergpu.viterbi.recurrence.model import Costs


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


@each(
    "words, sources",
    [
        ("a.fq", (ReadFile("a.fq"),)),
        ("a.fq b.fq", (MateFiles("a.fq", "b.fq"),)),
        ("a.fq b.fq c.fq d.fq", (MateFiles("a.fq", "b.fq"), MateFiles("c.fq", "d.fq"))),
        ("a.fq b.fq -p", (ReadFile("a.fq", True), ReadFile("b.fq", True))),
        (
            "a.fq b.fq c.fq --single",
            tuple(ReadFile(name, ignores_flags=True) for name in ("a.fq", "b.fq", "c.fq")),
        ),
    ],
)
def test_two_and_two_files_are_mates(words, sources):
    assert options_of(f"r.fa {words}").sources == sources


@each("words, output", table(__file__))
def test_the_name_or_the_option_decides_on_the_format(words, output):
    (found,) = options_of(f"r.fa a.fq {words}").outputs
    assert f"{found.path} {found.format} {found.compression}" == output


def test_scores_are_those_of_the_letters():
    found = options_of("r.fa a.fq -A 2 -B 5 -O 7,8 -E 2,3 -L 4 -U 9 -T 20 -k 19")
    # The first number is that of deletions, as bwa has it.
    assert found.costs == Costs(
        match=2,
        mismatch=5,
        insertion_open=8,
        insertion_extend=3,
        deletion_open=7,
        deletion_extend=2,
        end_bonus=4,
    )
    assert (found.unpaired, found.min_score, found.seed_length) == (9, 20, 19)


@each(
    "text, sizes",
    [
        ("400", InsertSizes(400.0, 40.0, 240, 560)),
        ("400,50", InsertSizes(400.0, 50.0, 200, 600)),
        ("400,50,900", InsertSizes(400.0, 50.0, 200, 900)),
        ("400,50,900,100", InsertSizes(400.0, 50.0, 100, 900)),
    ],
)
def test_insert_sizes_of_the_user(text, sizes):
    assert options_of(f"r.fa a.fq -I {text}").insert_sizes == sizes


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
