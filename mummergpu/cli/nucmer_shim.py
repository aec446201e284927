"""The command ``nucmer-shim``: this program in the place of MUMmer's ``nucmer``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import click

from mummergpu.cli.exit_on_signal import PROGRAM
from mummergpu.cli.main_group import VerbatimCommand
from mummergpu.cli.option_types import HELP_OPTIONS, complete_files
from mummergpu.errors import MummergpuError, MummerUsageError
from mummergpu.version import __version__

if TYPE_CHECKING:
    from mummergpu.cli.nucmer_arguments import NucmerCommand

_SHOW_COORDS: Final = "show-coords"

_HELP: Final = f"""Do what MUMmer's 'nucmer' does, with its command line.

A link to {PROGRAM} that is named 'nucmer' does the same. Where it takes the place of 'nucmer',
dnadiff and other programs that start it work with 'mummergpu align':

\b
  mkdir tools && cp /usr/bin/dnadiff /usr/bin/show-* tools
  cp /usr/bin/delta-filter tools
  ln -s "$(command -v {PROGRAM})" tools/nucmer
  sed -i "/BIN_DIR = /s,/usr/bin,$PWD/tools," tools/dnadiff
  tools/dnadiff -p out a.fna b.fna

The options are those of nucmer 3.23 and of nucmer 4, with their defaults; -h shows them. The
output is PREFIX.delta, or with --sam-short or --sam-long SAM that samtools reads. Its alignments
are those of 'mummergpu align', which may begin or end some bases before or after nucmer's; -L
counts the bases of the shorter side. All threads are used unless -t says otherwise.

An option that asks for what {PROGRAM} cannot do is an error: --banded, --nooptimize, --nodelta,
--save, --load and --batch. What only divides nucmer's work (--large, -G
and -M) changes nothing. -o (--coords) starts the 'show-coords' beside the link, or in PATH."""

_USAGE: Final = """\
Usage: nucmer [options] REFERENCE QUERY

Alignments begin with:
  --mum               matches that are unique in the reference and in the query
  --mumreference      matches that are unique in the reference (default)
  --mumcand           the same as --mumreference
  --maxmatch          all matches
Options:
  -b, --breaklen N    extend until it gets no better for N bases (default: 200)
  -c, --mincluster N  the fewest matching bases of a cluster (default: 65)
  -D, --diagdiff N    how far apart diagonals in a cluster may be (default: 5)
  -d, --diagfactor X  the same as a share of the gap (default: 0.12)
  -g, --maxgap N      the most bases between matches of a cluster (default: 90)
  -l, --minmatch N    matches of at least N bases (default: 20)
  -L, --minalign N    alignments of at least N bases (default: 0)
  -f, --forward       only the forward strand of the query
  -r, --reverse       only the reverse complement of the query
  --noextend          do not go beyond clusters
  --nosimplify        keep alignments that lie inside another one
  -p, --prefix NAME   write NAME.delta (default: out)
  --delta=FILE        write FILE in its place
  --sam-short=FILE    write SAM in its place, without bases
  --sam-long=FILE     write SAM in its place, with bases and MD
  -o, --coords        write NAME.coords, too, with show-coords
  -t, --threads N     the number of threads (default: all)
  -h, --help          show this text
  -V, --version       show the version

This is mummergpu in the place of nucmer; 'mummergpu nucmer-shim --help' tells more."""

_INFORMATION: Final = {
    "help": _USAGE,
    # Programs look for the number after the word "version".
    "version": f"nucmer ({PROGRAM} {__version__})\nNUCmer (NUCleotide MUMmer) version 3.1",
    "depend": f"{PROGRAM} needs no other program in the place of nucmer, but for --coords",
}


def run_nucmer_shim(words: tuple[str, ...]) -> None:
    """Do the job of a command line of ``nucmer``."""
    from mummergpu.cli.nucmer_arguments import parse_nucmer_arguments

    command = parse_nucmer_arguments(words)
    if isinstance(command, str):
        click.echo(_INFORMATION[command])
        return
    show_coords = _find_show_coords() if command.coordinates else ""
    _align(align_words(command))
    if command.coordinates:
        _write_coordinates(show_coords, command)


def _align(words: list[str]) -> None:
    """Run ``mummergpu align``, with the exit codes of MUMmer's programs, which have one failure."""
    here = click.get_current_context()
    group = here.find_root().command
    assert isinstance(group, click.Group)
    try:
        with group.commands["align"].make_context("align", words, parent=here.parent) as context:
            context.command.invoke(context)
    except click.UsageError as error:
        raise MummerUsageError(error.format_message()) from error
    except MummergpuError as error:
        error.exit_code = 1
        raise


def align_words(command: NucmerCommand) -> list[str]:
    """Return the command line of ``mummergpu align`` that writes what ``nucmer`` would write."""
    strand = [f"--{command.strand}"] if command.strand else []
    extend = [] if command.extend else ["--noextend"]
    simplify = [] if command.simplify else ["--nosimplify"]
    bases = ["--no-bases"] if command.sam == "short" else []
    # nucmer takes records of any letters, and refuses a file without records.
    return [
        *(f"--{command.mode}", *command.numbers, *strand, *extend, *simplify),
        *("--any-letters", "--no-empty", *bases, "--format", "sam" if command.sam else "delta"),
        *("-o", command.output, "--"),
        *(command.reference, command.query),
    ]


def _find_show_coords() -> str:
    """Return the path of show-coords: beside the link that began this process, or in PATH."""
    import shutil

    beside = os.path.dirname(os.path.abspath(sys.argv[0]))
    path = shutil.which(_SHOW_COORDS, path=beside) or shutil.which(_SHOW_COORDS)
    if path is None:
        raise MummergpuError(f"--coords needs MUMmer's {_SHOW_COORDS}, and none is in PATH")
    return path


def _write_coordinates(program: str, command: NucmerCommand) -> None:
    """Let show-coords write its table of the .delta to a file."""
    import subprocess

    from mummergpu.runtime.output_file import OutputFile

    with OutputFile(command.coordinates) as file:
        done = subprocess.run([program, "-r", command.output], capture_output=True, check=False)
        if done.returncode:
            text = done.stderr.decode(errors="replace").strip()
            raise MummergpuError(f"{program} failed: {text}")
        file.write(done.stdout)


nucmer_shim = VerbatimCommand(
    "nucmer-shim",
    callback=run_nucmer_shim,
    params=[
        click.Argument(
            ["words"], nargs=-1, metavar="REFERENCE QUERY", shell_complete=complete_files
        )
    ],
    help=_HELP,
    short_help=_HELP.partition("\n")[0],
    options_metavar="[OPTIONS OF NUCMER]",
    context_settings={"max_content_width": HELP_OPTIONS["max_content_width"]},
    add_help_option=False,
)
