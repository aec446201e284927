"""The command ``mummer-shim``: this program in the place of MUMmer 3.23's ``mummer``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NoReturn

import click

from mummergpu.cli.endings import PROGRAM
from mummergpu.cli.installed_mummer import CHOSEN, find_mummer, hand_over
from mummergpu.cli.main_group import MAIN_VERB, do_verb_of_shim, shim_command
from mummergpu.errors import MummergpuError

if TYPE_CHECKING:
    from mummergpu.cli.mummer_words import MummerCommand

MUMMER_VERB: Final = "mummer-shim"

_RNA: Final = "U"
_INSIDE_LINE: Final = ">"

_HELP: Final = f"""Do what MUMmer 3.23's 'mummer' does, with its command line.

A link to {PROGRAM} that is named 'mummer' does the same. Where it takes the place of 'mummer',
nucmer, dnadiff, run-mummer1, run-mummer3 and promer give the results that they gave before:

\b
  mkdir tools && cp /usr/bin/nucmer /usr/bin/mgaps /usr/bin/show-coords tools
  ln -s "$(command -v {PROGRAM})" tools/mummer
  sed -i "/BIN_DIR = /s,/usr/bin,$PWD/tools," tools/nucmer
  tools/nucmer -p out a.fna b.fna

Options come before the files. They are -mumreference (the default), -mumcand, -mum and -maxmatch,
-l N (20), -n, -b, -r, -s, -c, -F and -L, with mummer's meanings; -h shows them. The rows are
mummer's, in its order; with -maxmatch, rows of one query position are in the order of the
reference.

Without -n mummer also matches other letters than A, C, G and T, as in proteins, and to it U is not
T. If that could change a row, the job is handed to the mummer that {CHOSEN} names, or else to the
first one in PATH that is not this program; if there is none, the run ends with an error. In files
that mummer cannot read (FASTQ, BAM, compressed files, an index) other letters match nothing."""

_USAGE: Final = """\
Usage: mummer [options] REFERENCE QUERY...

Modes:
  -mumreference  matches whose letters occur once in the reference (default)
  -mumcand       the same as -mumreference
  -mum           matches whose letters occur once in the reference and once in the query
  -maxmatch      all matches
Options:
  -l N           matches of at least N letters (default: 20)
  -n             match only A, C, G and T, in upper or lower case
  -b             both strands
  -r             only the reverse complement
  -c             count positions of reverse matches on the forward strand
  -F             name the reference's record in each row
  -L             write the length of each query into its header
  -s             write the letters of each match
  -h, -help      show this text

This is mummergpu in the place of mummer; 'mummergpu mummer-shim --help' tells more."""


def run_mummer_shim(words: tuple[str, ...]) -> None:
    """Do the job of a command line of ``mummer``."""
    from mummergpu.cli.mummer_words import parse_mummer_words

    command = parse_mummer_words(words)
    if command is None:
        click.echo(_USAGE)
        return
    if reason := _why_not_ours(command):
        _let_mummer_do_it(words, reason)
    do_verb_of_shim(MAIN_VERB, main_job_words(command))


def main_job_words(command: MummerCommand) -> list[str]:
    """Return the command line of the main job that writes what ``mummer`` would write."""
    # mummer takes records of any letters, and refuses a file without records. It sorts the rows
    # of -mum by the reference.
    rows = ["--rows-by-reference"] if command.mode == "-mum" else []
    length = ["-l", str(command.minimum_length)]
    return [
        *(*length, command.mode, *command.flags, *rows, "--any-letters", "--no-empty", "--"),
        *(command.reference, *command.queries),
    ]


def _why_not_ours(command: MummerCommand) -> str:
    """Return why the rows could differ from those of ``mummer``; empty if they cannot.

    A match of other letters needs them in the reference and in a query.
    """
    from mummergpu.input.records.fasta_letters import other_letters

    of_reference = other_letters(command.reference)
    of_queries = [(path, other_letters(path)) for path in dict.fromkeys(command.queries)]
    for path, letters in ((command.reference, of_reference), *of_queries):
        if letters and _RNA in letters:
            return f"'{path}' has the letter U, which is T to {PROGRAM} and not to mummer"
        if letters and _INSIDE_LINE in letters:
            return f"'{path}' has a '>' inside a line, where mummer begins a record"
    if command.acgt_only or not of_reference:
        return ""
    for path, letters in of_queries:
        if letters:
            return (
                f"'{command.reference}' and '{path}' have letters other than A, C, G and T, "
                "which mummer matches without -n"
            )
    return ""


def _let_mummer_do_it(words: Sequence[str], reason: str) -> NoReturn:
    path = find_mummer(os.environ, sys.argv[0])
    if path is None:
        raise MummergpuError(
            f"{reason}; that needs MUMmer's own mummer, and none is in PATH or named by {CHOSEN}"
        )
    click.echo(f"{PROGRAM}: {reason}: {path} does the job", err=True)
    hand_over(path, words)


mummer_shim = shim_command(MUMMER_VERB, "mummer", "REFERENCE QUERY...", run_mummer_shim, _HELP)
