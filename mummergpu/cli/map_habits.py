"""What commands of bwa mem, minimap2, bowtie2 and samtools say, for ``map``.

A pasted command does what it says, or is refused with a line that names the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.errors import OptionError

if TYPE_CHECKING:
    from mummergpu.cli.option_rules import Params
    from mummergpu.cli.spellings import Spellings
    from mummergpu.output.records.record_style import RecordStyle

_SHORT_READS: Final = "sr"

_SEEDS: Final = "it tunes the seeds and chains of bwa mem, which are not those of map: leave it out"
_PAIRS: Final = (
    "map always looks for pairs, and for mates near each other: leave it out, or write --single "
    "to map each read by itself"
)

_REFUSED_FLAGS: Final = {
    "-S": _PAIRS,
    "-P": _PAIRS,
    "-5": "the primary part of a split read is its best one, not its first: leave it out",
}
_REFUSED_VALUES: Final = {
    **dict.fromkeys(("-c", "-D", "-d", "-m", "-r", "-W", "-w"), _SEEDS),
    "-G": "map joins no exons, nor any other parts that are far apart: leave it out",
}
"""Options of other mappers that ``map`` lacks, and what to do instead."""

_REFUSED_WITH_NUMBERS: Final = {
    "-y": "-y with a number tunes seeds of bwa mem, which are not those of map: leave it out",
    "-p": "-p with a number is minimap2's: -N says how many secondary alignments there are",
}
"""Options that take a number elsewhere and none here, where it would be the name of a file."""


def _hidden(names: str, text: str, **told: Any) -> click.Option:
    return click.Option(names.split(), hidden=True, help=text, **told)


def _refused_options() -> Iterator[click.Option]:
    """Yield options that are known so that words are taken apart as in their program."""
    for name in _REFUSED_FLAGS:
        yield click.Option([name, _parameter_of(name)], is_flag=True, hidden=True)
    for name in _REFUSED_VALUES:
        yield click.Option([name, _parameter_of(name)], hidden=True)


def _parameter_of(name: str) -> str:
    return f"refused_{ord(name[1])}"


HABITS: Final = [
    _hidden(
        "-M",
        "Flag the further parts of split reads as secondary, not as supplementary, as bwa mem "
        "does with this option; they keep their bases.",
        is_flag=True,
    ),
    _hidden(
        "-Y --soft-clipping",
        "Write all bases of a read in its supplementary records, and clip them softly.",
        is_flag=True,
    ),
    _hidden("--eqx", "Write = and X in CIGARs, in place of M.", is_flag=True),
    _hidden("--cs", "The tag cs of minimap2: --tags cs.", is_flag=True),
    _hidden("--MD", "Nothing: all records have MD.", is_flag=True),
    _hidden(
        "--no-unal mapped_only",
        "Leave out reads that are not mapped, and whose mates are not either.",
        is_flag=True,
    ),
    _hidden(
        "--secondary",
        "'yes' for the secondary alignments of minimap2: -N 5; 'no' for none.",
        type=click.Choice(["yes", "no"]),
    ),
    _hidden(
        "-x --preset preset",
        "Only 'sr', minimap2's word for short reads. With it, -a asks for SAM, and without -a the "
        "format of standard output is PAF, as for minimap2.",
        metavar="sr",
    ),
    _hidden(
        "-H --header header",
        "A line for the header, such as '@CO\\tmade for tests', or a file of such lines; may be "
        "given several times.",
        metavar="LINE",
        multiple=True,
    ),
    _hidden("--rg-id", "The ID of the read group of all reads, as for bowtie2.", metavar="ID"),
    _hidden(
        "--rg",
        "A field of the read group that --rg-id begins, such as SM:sample; may be given several "
        "times.",
        metavar="FIELD",
        multiple=True,
    ),
    _hidden(
        "-j ignore_alt",
        "Take contigs that are in REFERENCE.alt, the file of bwa-kit, for contigs like all others.",
        is_flag=True,
    ),
    _hidden(
        "-K batch_bases",
        "Nothing: the output depends on no size of batches.",
        metavar="BASES",
    ),
    *_refused_options(),
]
"""The options that the help does not show."""

_SAMTOOLS_THREADS: Final = "-@"
_LIMIT: Final = re.compile(r"([0-9]+)(?:,[0-9]+)?")
_LEVEL: Final = re.compile("[0-9]")
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+")


def in_words_of_map(words: Sequence[str], spellings: Spellings) -> list[str]:
    """Return a command line in which options of other programs are those of ``map``.

    They are those whose letters mean something else: ``-h 5`` and ``-v 3`` of bwa mem, while -h
    alone asks for help and -v for more words; ``-@ 4`` of samtools; and ``--cs=short``.
    """
    result: list[str] = []
    options = {place for place, is_option in spellings.positions(words) if is_option}
    taken = -1
    for place, word in enumerate(words):
        if place == taken:
            continue
        name, value = word[:2], word[2:]
        following = words[place + 1] if place + 1 < len(words) else ""
        if place not in options or word.startswith("--"):
            result.append(_long_word(word) if place in options else word)
        elif name == _SAMTOOLS_THREADS:
            result += ["--threads", *([value] if value else [])]
        elif name == "-h" and (limit := _LIMIT.fullmatch(value or following)):
            result += ["--max-xa", limit[1]]
            taken = -1 if value else place + 1
        elif name == "-v" and _LEVEL.fullmatch(value or following):
            result += _words_of_level(int(value or following))
            taken = -1 if value else place + 1
        elif name in _REFUSED_WITH_NUMBERS and _NUMBER.fullmatch(value or following):
            raise click.UsageError(_REFUSED_WITH_NUMBERS[name])
        else:
            result.append(word)
    return result


def _long_word(word: str) -> str:
    if word == "--cs=short":
        return "--cs"
    if word == "--cs=long":
        raise click.UsageError("--cs=long: only the short form is written: --cs")
    return word


def _words_of_level(level: int) -> list[str]:
    """Return the option for a level of messages: 1 are errors, 3 is usual."""
    if level < 2:
        return ["--quiet"]
    return ["--verbose"] if level > 3 else []


def refuse_habits(params: Params) -> None:
    """Refuse what ``map`` does not do."""
    for name, why in {**_REFUSED_FLAGS, **_REFUSED_VALUES}.items():
        if params[_parameter_of(name)]:
            raise click.UsageError(f"{name}: {why}")
    preset = params["preset"]
    if preset not in (None, _SHORT_READS):
        raise click.UsageError(
            f"-x {preset}: map is for short reads (-x sr); 'mummergpu align' aligns genomes"
        )


def is_paf_meant(params: Params) -> bool:
    """Return whether the format of standard output is that of minimap2 without -a."""
    return bool(
        params["preset"]
        and not params["all_placements"]
        and not params["output"]
        and params["format_name"] is None
    )


def record_style(params: Params) -> RecordStyle:
    """Return how alignments are told."""
    from mummergpu.output.records.record_style import RecordStyle

    tags = params["tags"].split(",") if params["tags"] else []
    tags += ["cs"] if params["cs"] else []
    return RecordStyle(
        shorter_are_secondary=params["m"],
        secondary_bases=params["secondary_seq"],
        soft_clips=params["soft_clipping"],
        equal_bases=params["eqx"],
        placed_only=params["mapped_only"],
        tags=tags,
        header_lines=list(_header_lines(params["header"])),
    )


def _header_lines(asked: Sequence[str]) -> Iterator[str]:
    """Yield the lines that are given, and those of the files that are named."""
    for text in asked:
        if text.startswith("@"):
            yield text.replace("\\t", "\t")
            continue
        try:
            with open(text, encoding="utf-8") as file:
                yield from file.read().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError("header", f"'{text}' is neither a line nor a file of them") from error


def group_line(params: Params) -> str | None:
    """Return the line of the read group that --rg-id and --rg tell, as -R would have it."""
    name, fields = params["rg_id"], params["rg"]
    if name is None:
        if fields:
            raise click.UsageError("--rg needs --rg-id")
        return None
    if params["read_group"] is not None or params["no_read_group"]:
        other = "--no-read-group" if params["no_read_group"] else "--read-group"
        raise click.UsageError(f"--rg-id and {other} exclude each other")
    return "\t".join(["@RG", f"ID:{name}", *fields])
