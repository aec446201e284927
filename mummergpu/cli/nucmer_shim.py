"""The command ``nucmer-shim``: a replacement of MUMmer's ``nucmer``, versions 3.23 and 4."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import click

from mummergpu.cli.exit_on_signal import PROGRAM
from mummergpu.cli.main_group import VerbatimCommand
from mummergpu.cli.option_types import HELP_OPTIONS, files
from mummergpu.errors import MummergpuError, MummerUsageError
from mummergpu.runtime.frozen import frozen
from mummergpu.version import __version__

DEFAULT_PREFIX: Final = "out"

_MODES: Final = {
    "mum": "mum",
    "mumcand": "mumreference",
    "mumreference": "mumreference",
    "maxmatch": "maxmatch",
}
"""The mode of each spelling."""

_FLAGS: Final = {
    **dict.fromkeys(_MODES, ""),
    "forward": "f",
    "reverse": "r",
    "coords": "o",
    "help": "h",
    "full-help": "",
    "usage": "U",
    "version": "V",
    "depend": "",
    "large": "",
    "genome": "G",
}
"""Options without a value, and their letters."""

_SWITCHES: Final = ("banded", "delta", "extend", "optimize", "simplify")
"""Options of 3.23 that ``no`` before them turns off."""

_VALUES: Final = {
    "breaklen": "b",
    "mincluster": "c",
    "diagdiff": "D",
    "diagfactor": "d",
    "maxgap": "g",
    "minmatch": "l",
    "minalign": "L",
    "threads": "t",
    "prefix": "p",
    "max-chunk": "M",
    "sam-short": "",
    "sam-long": "",
    "save": "",
    "load": "",
    "batch": "",
}
"""Options with a value, and their letters."""

_FRACTIONS: Final = ("diagfactor",)
_TEXTS: Final = ("prefix", "delta", "sam-short", "sam-long", "save", "load")

_NEGATION: Final = "no"
_DELTA: Final = "delta"
_SAM_FILES: Final = ("sam-short", "sam-long")

_NOT_DONE: Final = {
    "banded": "alignments are never limited to a band about a diagonal",
    "no-optimize": "alignments end where their score is best, also at the end of a sequence",
    "no-delta": "the .delta is what it is asked for",
    "save": "it has no suffix array to save; 'mummergpu index' makes an index file",
    "load": "it reads no suffix array; name an index file in place of the reference",
    "batch": "the reference is always searched as a whole",
}
"""Options whose effect on the result is not supported, and why."""

_LETTERS: Final = {letter: name for name, letter in (*_FLAGS.items(), *_VALUES.items()) if letter}

_NUMBER_OPTIONS: Final = {
    "breaklen": "-b",
    "mincluster": "-c",
    "diagdiff": "-D",
    "diagfactor": "-d",
    "maxgap": "-g",
    "minmatch": "-l",
    "minalign": "--min-alignment-length",
    "threads": "-t",
}
"""The options of ``mummergpu align`` for nucmer's options with a number."""


@frozen
class NucmerCommand:
    """A command line of ``nucmer``.

    `output` is the .delta or the SAM, `coordinates` the file for the text of show-coords. `strand`
    is empty for both. `numbers` are the options with numbers as words of ``mummergpu align``. `sam`
    is ``short`` or ``long`` for SAM without the bases of the queries or with them.
    """

    reference: str
    query: str
    output: str
    coordinates: str = ""
    mode: str = "mumreference"
    strand: str = ""
    numbers: tuple[str, ...] = ()
    extend: bool = True
    simplify: bool = True
    sam: str = ""


@dataclass
class _Given:
    """The words of a command line by kind; a flag that is turned off is false."""

    flags: dict[str, bool] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    def says(self, name: str) -> bool:
        return self.flags.get(name, False)


def parse_nucmer_arguments(words: Sequence[str]) -> NucmerCommand | str:
    """Parse a command line of ``nucmer``; return the name of a request such as ``help`` as text.

    Options may have one dash or two, may be shortened after two, and may follow the files. The
    option ``--delta`` is a flag in 3.23, and names a file in 4: it does so here if an ``=`` follows
    it, or if the next word is not one of two files.
    """
    given = _sorted_words(words, delta_has_value=False)
    if given.says(_DELTA) and len(given.files) != 2:
        given = _sorted_words(words, delta_has_value=True)
    for names in (("help", "full-help", "usage"), ("version",), ("depend",)):
        if any(given.says(name) for name in names):
            return names[0]
    _refuse_what_is_not_done(given)
    modes = {mode: name for name, mode in _MODES.items() if given.says(name)}
    if len(modes) > 1:
        raise MummerUsageError(f"--{' and --'.join(sorted(modes))} exclude each other")
    if _DELTA in given.values and "prefix" in given.values:
        raise MummerUsageError("--delta=FILE and --prefix exclude each other")
    sam_option = _sam_option(given)
    if len(given.files) != 2:
        raise MummerUsageError(
            f"needs the file of a reference and the file of a query, and {len(given.files)} "
            "are given"
        )
    prefix = given.values.get("prefix", DEFAULT_PREFIX)
    both = given.says("forward") == given.says("reverse")
    reference, query = given.files
    return NucmerCommand(
        reference,
        query,
        output=given.values.get(sam_option or _DELTA, f"{prefix}.delta"),
        coordinates=f"{prefix}.coords" if given.says("coords") else "",
        mode=next(iter(modes), "mumreference"),
        strand="" if both else "forward" if given.says("forward") else "reverse",
        numbers=_number_words(given),
        extend=given.flags.get("extend", True),
        simplify=given.flags.get("simplify", True),
        sam=sam_option.removeprefix("sam-"),
    )


def _sam_option(given: _Given) -> str:
    """Return the option that asks for SAM, or nothing."""
    asked = [name for name in _SAM_FILES if name in given.values]
    if not asked:
        return ""
    others = [*asked[1:], *([_DELTA] if _DELTA in given.values else [])]
    others += ["coords"] * given.says("coords")
    if others:
        raise MummerUsageError(f"--{asked[0]} and --{others[0]} exclude each other")
    return asked[0]


def _sorted_words(words: Sequence[str], delta_has_value: bool) -> _Given:
    given = _Given()
    waiting = list(words)

    def value_of(option: str) -> str:
        if not waiting:
            raise MummerUsageError(f"option {option} needs a value")
        return waiting.pop(0)

    while waiting:
        word = waiting.pop(0)
        if word == "--":
            given.files += waiting
            break
        if not word.startswith("-") or word == "-":
            given.files.append(word)
            continue
        option, is_set, text = word.partition("=")
        name = _long_name(option)
        if name is None:
            _take_letters(word, given, value_of)
        elif name in _VALUES or (name == _DELTA and (is_set or delta_has_value)):
            given.values[name] = text if is_set else value_of(option)
        elif is_set:
            raise MummerUsageError(f"option {option} takes no value")
        else:
            positive = name.removeprefix(f"{_NEGATION}-")
            given.flags[positive] = positive == name
    return given


def _long_name(option: str) -> str | None:
    """Return the name of a long option, with ``no-`` if it is turned off; None for letters."""
    names = {name: name for name in (*_FLAGS, *_VALUES, *_SWITCHES)}
    names |= {f"{_NEGATION}{name}": f"{_NEGATION}-{name}" for name in _SWITCHES}
    names |= {f"{_NEGATION}-{name}": f"{_NEGATION}-{name}" for name in _SWITCHES}
    typed = option.lstrip("-")
    if typed in names:
        return names[typed]
    if not option.startswith("--") and typed[:1] in _LETTERS:
        return None
    meant = {meaning for name, meaning in names.items() if typed and name.startswith(typed)}
    if len(meant) > 1:
        raise MummerUsageError(f"option {option} could be --{' or --'.join(sorted(meant))}")
    if not meant:
        raise MummerUsageError(f"unknown option {option}")
    return meant.pop()


def _take_letters(word: str, given: _Given, value_of: Callable[[str], str]) -> None:
    """Parse a word of letters: flags, and perhaps a last option followed by its value."""
    for place, letter in enumerate(word[1:], start=1):
        name = _LETTERS.get(letter)
        if name is None:
            raise MummerUsageError(f"unknown option {word}")
        if name in _VALUES:
            rest = word[place + 1 :].removeprefix("=")
            given.values[name] = rest or value_of(f"-{letter}")
            return
        given.flags[name] = True


def _refuse_what_is_not_done(given: _Given) -> None:
    for name, reason in _NOT_DONE.items():
        positive = name.removeprefix(f"{_NEGATION}-")
        is_asked = given.flags.get(positive) is (positive == name) or name in given.values
        if is_asked:
            option = f"--{name}" if positive == name else f"--{_NEGATION}{positive}"
            raise MummerUsageError(f"mummergpu cannot do what {option} asks for: {reason}")


def _number_words(given: _Given) -> tuple[str, ...]:
    """Return the options with numbers as words of ``mummergpu align``."""
    words: list[str] = []
    for name, text in given.values.items():
        if name in _TEXTS:
            continue
        try:
            number = float(text) if name in _FRACTIONS else int(text)
        except ValueError:
            kind = "number" if name in _FRACTIONS else "whole number"
            raise MummerUsageError(f"--{name}: '{text}' is not a {kind}") from None
        if not number >= 0:
            raise MummerUsageError(f"--{name}: {text} is less than 0")
        if name in _NUMBER_OPTIONS:
            words += [_NUMBER_OPTIONS[name], str(number)]
    return tuple(words)


_SHOW_COORDS: Final = "show-coords"

_HELP: Final = f"""Run as MUMmer's 'nucmer', with its command line.

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

--banded, --nooptimize, --nodelta, --save, --load and --batch are errors, as {PROGRAM} cannot do
what they ask for. --large, -G and -M, which only divide nucmer's work, have no effect. -o
(--coords) starts the 'show-coords' beside the link, or in PATH."""

_USAGE: Final = """\
Usage: nucmer [options] REFERENCE QUERY

Alignments begin with:
  --mum               matches that are unique in the reference and in the query
  --mumreference      matches that are unique in the reference (default)
  --mumcand           the same as --mumreference
  --maxmatch          all matches
Options:
  -b, --breaklen N    stop extending after N bases without a better score (200)
  -c, --mincluster N  minimum number of matching bases of a cluster (65)
  -D, --diagdiff N    maximum difference of adjacent diagonals in a cluster (5)
  -d, --diagfactor X  the same as a fraction of the gap (0.12)
  -g, --maxgap N      maximum gap between adjacent matches of a cluster (90)
  -l, --minmatch N    minimum length of a match (20)
  -L, --minalign N    minimum length of an alignment (0)
  -f, --forward       only the forward strand of the query
  -r, --reverse       only the reverse complement of the query
  --noextend          do not extend beyond clusters
  --nosimplify        keep alignments that lie inside another one
  -p, --prefix NAME   write NAME.delta (out)
  --delta=FILE        write FILE instead
  --sam-short=FILE    write SAM instead, without bases
  --sam-long=FILE     write SAM instead, with bases and MD
  -o, --coords        write NAME.coords, too, with show-coords
  -t, --threads N     number of threads (all)
  -h, --help          show this text
  -V, --version       show the version

This is mummergpu in the place of nucmer; see 'mummergpu nucmer-shim --help'."""

_INFORMATION: Final = {
    "help": _USAGE,
    # Other programs look for the number after the word "version".
    "version": f"nucmer ({PROGRAM} {__version__})\nNUCmer (NUCleotide MUMmer) version 3.1",
    "depend": f"{PROGRAM} needs no other program in the place of nucmer, but for --coords",
}


def run_nucmer_shim(words: tuple[str, ...]) -> None:
    """Run a command line of ``nucmer``."""
    command = parse_nucmer_arguments(words)
    if isinstance(command, str):
        click.echo(_INFORMATION[command])
        return
    show_coords = _find_show_coords() if command.coordinates else ""
    _align(align_words(command))
    if command.coordinates:
        _write_coordinates(show_coords, command)


def _align(words: list[str]) -> None:
    """Run ``mummergpu align``, with MUMmer's exit codes, which have a single one for failure."""
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
    """Return the ``mummergpu align`` command line with the same output as a ``nucmer`` one."""
    strand = [f"--{command.strand}"] if command.strand else []
    extend = [] if command.extend else ["--noextend"]
    simplify = [] if command.simplify else ["--nosimplify"]
    bases = ["--no-bases"] if command.sam == "short" else []
    # nucmer refuses a file without records.
    return [
        *(f"--{command.mode}", *command.numbers, *strand, *extend, *simplify),
        *("--no-empty", *bases, "--format", "sam" if command.sam else "delta"),
        *("-o", command.output, "--"),
        *(command.reference, command.query),
    ]


def _find_show_coords() -> str:
    """Return the path of show-coords, in the folder of this process's link or in PATH."""
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
    params=[files("words", several=True, required=False, metavar="REFERENCE QUERY")],
    help=_HELP,
    short_help=_HELP.partition("\n")[0],
    options_metavar="[OPTIONS OF NUCMER]",
    context_settings={"max_content_width": HELP_OPTIONS["max_content_width"]},
    add_help_option=False,
)
