"""The options that name the formats and the files of matches and alignments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.output.formats import SAM_FORMATS, RowKind, names_of, targets_of
from mummergpu.output.targets import DEFAULT_FORMAT, OutputTarget
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.output.options import SamOptions

_READ_GROUP, _PRIMARY_ONLY = "--read-group", "--primary-only"
_MOST_HITS, _BASES = "--max-hits", "--secondary-seq"

NO_GROUP: Final = "none"
"""What is written in place of the line of a read group for no read group."""

_FLAGS_OF_TEXT: Final = {"four_columns": "-F", "show_lengths": "-L", "show_sequences": "-s"}


def format_options(integer: Callable[..., Any]) -> list[click.Option]:
    """Return the options for the formats of matches."""
    return [
        click.Option(
            ["--format", "format_name"],
            type=click.Choice(names_of(RowKind.MATCHES)),
            help="The format of the output.  [default: as -o ends, such as .paf or .bam, else "
            "mummer]",
        ),
        click.Option(
            [_READ_GROUP],
            metavar="LINE",
            help=r"Put all queries into the read group '@RG\tID:x\tSM:y\tPL:ILLUMINA', or into "
            "none; for SAM and BAM.  [default: one with the name of the first file of queries]",
        ),
        click.Option(
            [_PRIMARY_ONLY],
            is_flag=True,
            help="Write only the longest match of each query; for SAM and BAM.",
        ),
        click.Option(
            [_MOST_HITS],
            callback=integer,
            metavar="N",
            help="Write at most the N longest matches of each query; for SAM and BAM.",
        ),
        click.Option(
            [_BASES],
            is_flag=True,
            help="Write the bases of secondary alignments, too; for SAM and BAM.",
        ),
    ]


def alignment_options(given: Mapping[str, Any]) -> SamOptions:
    """Return the options of SAM and BAM."""
    from mummergpu.output.options import SamOptions, read_group_of, usual_read_group

    text, primary_only = given["read_group"], given["primary_only"]
    secondary_bases = given["secondary_seq"]
    max_hits: int | None = given["max_hits"]
    if primary_only and max_hits is not None:
        raise click.UsageError(f"{_PRIMARY_ONLY} and {_MOST_HITS} exclude each other")
    if primary_only and secondary_bases:
        raise click.UsageError(f"{_PRIMARY_ONLY} and {_BASES} exclude each other")
    wanted = {
        _READ_GROUP: text is not None,
        _PRIMARY_ONLY: primary_only,
        _MOST_HITS: max_hits is not None,
        _BASES: secondary_bases,
    }
    option = next((name for name, is_given in wanted.items() if is_given), None)
    formats = {target.format for target in output_targets(given)}
    if option is not None and not formats & SAM_FORMATS:
        raise click.UsageError(f"{option} is for SAM and BAM, and no output is one of them")
    read_group = None
    if formats & SAM_FORMATS and text != NO_GROUP:
        read_group = usual_read_group(given["query"]) if text is None else read_group_of(text)
    return SamOptions(read_group, 1 if primary_only else max_hits, secondary_bases)


def output_targets(given: Mapping[str, Any]) -> tuple[OutputTarget, ...]:
    """Return the files of matches, each with its format."""
    targets = main_targets(given, RowKind.MATCHES)
    _refuse_flags_of_text(given, targets)
    return targets


def _refuse_flags_of_text(given: Mapping[str, Any], targets: Sequence[OutputTarget]) -> None:
    """Refuse options of MUMmer's text if nothing is written in that format.

    Positions on the forward strand (``-c``) are what every other format has.
    """
    if any(target.format == DEFAULT_FORMAT for target in targets):
        return
    for name, written in _FLAGS_OF_TEXT.items():
        if given[name]:
            raise click.UsageError(
                f"{written} is for MUMmer's text, and no output is in that format"
            )


def main_targets(given: Mapping[str, Any], rows: RowKind) -> tuple[OutputTarget, ...]:
    """Return the files of ``-o``, each with its format: standard output if there is none."""
    paths, name = given["output"] or (STANDARD_OUTPUT,), given["format_name"]
    if name is not None and len(paths) > 1:
        raise click.UsageError("--format is for one -o; several take theirs from their names")
    return targets_of(paths, name, rows)


def main_files(given: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the files of ``-o`` by how errors name the option, which may be given many times."""
    paths = given["output"] or (STANDARD_OUTPUT,)
    return {
        "--output" if number == 1 else f"--output, number {number}": path
        for number, path in enumerate(paths, 1)
    }
