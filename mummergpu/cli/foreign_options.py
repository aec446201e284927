"""Words that commands of bwa mem and minimap2 carry, for ``map``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from mummergpu.cli.option_rules import Params

FOREIGN_OPTIONS: Final = [
    click.Option(
        ["-a", "all_placements"], is_flag=True, help="-N all; with -x, SAM in place of PAF."
    ),
    click.Option(["--cs"], is_flag=True, help="--tags cs."),
    click.Option(
        ["-x", "preset"],
        type=click.Choice(["sr"]),
        help="Short reads. Standard output is PAF then, unless -a or --format is given.",
    ),
    click.Option(["--secondary"], type=click.Choice(["no"]), help="Nothing, or with -a: -N 0."),
    click.Option(["--MD"], is_flag=True, help="Nothing: all records have MD."),
    click.Option(
        ["-K", "batch_bases"],
        metavar="BASES",
        help="Nothing: the output depends on no size of batches.",
    ),
]

_ALTERNATIVES: Final = re.compile(r"([0-9]+)(?:,[0-9]+)?")
_LEVEL: Final = re.compile("[0-9]")


def in_own_words(words: Sequence[str]) -> list[str]:
    """Return a command line with ``-h 5`` and ``-v 3`` of bwa mem in the words of ``map``.

    Without a number, -h asks for help and -v for more messages.
    """
    result: list[str] = []
    for word in words:
        before = result[-1] if result else ""
        if before == "-h" and (limit := _ALTERNATIVES.fullmatch(word)):
            result[-1:] = ["--max-xa", limit[1]]
        elif before == "-v" and _LEVEL.fullmatch(word):
            result[-1:] = ["-q"] if word < "2" else ["-v"] if word > "3" else []
        else:
            result.append(word)
    return result


def is_paf_meant(params: Params) -> bool:
    """Return whether the format of standard output is that of minimap2 without -a."""
    return bool(
        params["preset"]
        and not params["all_placements"]
        and not params["output"]
        and params["format_name"] is None
    )
