"""The options that name the formats and the files of matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.output.formats import FORMATS, SAM_FORMATS, Rows, names_of, target_of, targets_of
from mummergpu.output.targets import DEFAULT_FORMAT, OutputTarget
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.output.records.sam_options import SamOptions

_READ_GROUP, _NO_READ_GROUP = "--read-group", "--no-read-group"
_PRIMARY_ONLY, _MOST_HITS, _BASES = "--primary-only", "--max-hits", "--secondary-seq"

_FLAGS_OF_TEXT: Final = {"four_columns": "-F", "show_lengths": "-L", "show_sequences": "-s"}

_NAMES: Final = names_of(Rows.MATCHES)


def format_options(complete: Any, integer: Callable[..., Any]) -> list[click.Option]:
    """Return the options."""
    by_name = [
        click.Option(
            [f"--{name}", f"{name}_path"],
            metavar="FILE",
            hidden=True,
            shell_complete=complete,
            help=f"Write matches to FILE as {FORMATS[name].words}.",
        )
        for name in _NAMES
    ]
    chosen = click.Option(
        ["--format", "format_name"],
        type=click.Choice(_NAMES),
        help="The format of the output.  [default: as -o ends, such as .paf or .bam, else mummer]",
    )
    of_alignments = [
        click.Option(
            [_READ_GROUP],
            metavar="LINE",
            help=r"Put all queries into the read group '@RG\tID:x\tSM:y\tPL:ILLUMINA'; for SAM, "
            "BAM and CRAM.  [default: one with the name of the first file of queries]",
        ),
        click.Option(
            [_NO_READ_GROUP], is_flag=True, help="Write no read group; for SAM, BAM and CRAM."
        ),
        click.Option(
            [_PRIMARY_ONLY],
            is_flag=True,
            help="Write only the longest match of each query; for SAM, BAM and CRAM.",
        ),
        click.Option(
            [_MOST_HITS],
            callback=integer,
            metavar="N",
            help="Write at most the N longest matches of each query; for SAM, BAM and CRAM.",
        ),
        click.Option(
            [_BASES],
            is_flag=True,
            help="Write the bases of secondary alignments, too; for SAM, BAM and CRAM.",
        ),
    ]
    return [chosen, *by_name, *of_alignments]


def alignment_options(given: Mapping[str, Any]) -> SamOptions:
    """Return the options of SAM, BAM and CRAM."""
    from mummergpu.output.records.sam_options import SamOptions, read_group_of, usual_read_group

    text, primary_only = given["read_group"], given["primary_only"]
    no_group, secondary_bases = given["no_read_group"], given["secondary_seq"]
    max_hits: int | None = given["max_hits"]
    if primary_only and max_hits is not None:
        raise click.UsageError(f"{_PRIMARY_ONLY} and {_MOST_HITS} exclude each other")
    if text is not None and no_group:
        raise click.UsageError(f"{_READ_GROUP} and {_NO_READ_GROUP} exclude each other")
    if primary_only and secondary_bases:
        raise click.UsageError(f"{_PRIMARY_ONLY} and {_BASES} exclude each other")
    wanted = {
        _READ_GROUP: text is not None,
        _NO_READ_GROUP: no_group,
        _PRIMARY_ONLY: primary_only,
        _MOST_HITS: max_hits is not None,
        _BASES: secondary_bases,
    }
    option = next((name for name, is_given in wanted.items() if is_given), None)
    formats = {target.format for target in output_targets(given)}
    if option is not None and not formats & SAM_FORMATS:
        raise click.UsageError(f"{option} is for SAM, BAM and CRAM, and no output is one of them")
    read_group = None
    if formats & SAM_FORMATS and not no_group:
        read_group = usual_read_group(given["query"]) if text is None else read_group_of(text)
    return SamOptions(read_group, 1 if primary_only else max_hits, secondary_bases)


def output_targets(given: Mapping[str, Any]) -> tuple[OutputTarget, ...]:
    """Return the files of matches that the options ask for, each with its format."""
    targets = [
        target_of(path, name, f"{name}_path")
        for name in _NAMES
        if (path := given[f"{name}_path"]) is not None
    ]
    if given["format_name"] is not None and targets and not given["output"]:
        raise click.UsageError("--format is the format of -o, which is not given")
    if given["output"] or not targets:
        targets = [*main_targets(given, Rows.MATCHES), *targets]
    _refuse_flags_of_text(given, targets)
    return tuple(targets)


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


def output_files(given: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the file of each option for matches, None where there is none."""
    named = {f"--{name}": given[f"{name}_path"] for name in _NAMES}
    if not given["output"] and any(path is not None for path in named.values()):
        return named
    return {**main_files(given), **named}


def main_targets(given: Mapping[str, Any], rows: Rows) -> tuple[OutputTarget, ...]:
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
