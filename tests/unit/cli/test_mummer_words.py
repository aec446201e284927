"""The command line of MUMmer 3.23's ``mummer``."""

from __future__ import annotations

import pytest
from helpers.loops import each

from mummergpu.cli.mummer_words import MummerCommand, parse_mummer_words
from mummergpu.errors import MummerUsageError


def parsed(line: str) -> MummerCommand:
    found = parse_mummer_words(line.split())
    assert found is not None
    return found


def test_defaults() -> None:
    assert parsed("r.fa q.fa") == MummerCommand("r.fa", ("q.fa",), 20, "-mumreference", ())


def test_all_options() -> None:
    found = parsed("-mum -n -l 9 -b -s -c -F -L r.fa one.fa two.fa")
    flags = ("-n", "-b", "-s", "-c", "-F", "-L")
    assert found == MummerCommand("r.fa", ("one.fa", "two.fa"), 9, "-mum", flags)
    assert found.acgt_only


def test_mumcand_is_mumreference() -> None:
    assert parsed("-mumcand r q").mode == parsed("-mumcand -mumreference r q").mode
    assert parsed("-mumcand r q").mode == "-mumreference"


def test_words_behind_a_file_are_files() -> None:
    assert parsed("r.fa q.fa -b -l 5").queries == ("q.fa", "-b", "-l", "5")


@each("text, number", [("7", 7), (" 7", 7), ("+7", 7), ("7abc", 7), ("9" * 60, 1 << 40)])
def test_lengths_are_read_as_c_reads_them(text: str, number: int) -> None:
    found = parse_mummer_words(["-l", text, "r", "q"])
    assert found is not None
    assert found.minimum_length == number


@each("line", ["", "-h", "-help", "-l 5 -help", "-mum -maxmatch -h", "-h -x", "-h r.fa"])
def test_help(line: str) -> None:
    assert parse_mummer_words(line.split()) is None


@each(
    "line, message",
    [
        ("-x r q", 'illegal option "-x"'),
        ("- r q", 'illegal option "-"'),
        ("-l10 r q", 'illegal option "-l10"'),
        ("-bc r q", 'illegal option "-bc"'),
        ("--maxmatch r q", 'illegal option "--maxmatch"'),
        ("-l", "missing argument for option -l"),
        ("-l 20", "missing argument for option -l"),
        ("-l 0 r q", "argument 0 for option -l is not a positive integer"),
        ("-l -5 r q", "argument -5 for option -l is not a positive integer"),
        ("-l many r q", "argument many for option -l is not a positive integer"),
        ("-mum -mum r q", 'option "-mum" already set'),
        ("-l 5 -l 5 r q", 'option "-l" already set'),
        ("-b -b r q", 'option "-b" already set'),
        ("-mum -maxmatch r q", "option -mum and option -maxmatch exclude each other"),
        ("-b -r r q", "option -b and option -r exclude each other"),
        ("-c r q", "option -c requires either option -b or -r"),
        ("r", "missing file arguments"),
        ("-mum", "missing file arguments"),
    ],
)
def test_refused(line: str, message: str) -> None:
    with pytest.raises(MummerUsageError) as error:
        parse_mummer_words(line.split())
    assert str(error.value) == message
    assert error.value.exit_code == 1
