"""The options that name the formats and the files of matches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from mummergpu.output.targets import FORMATS, OutputTarget, target_of
from mummergpu.runtime.output_file import STANDARD_OUTPUT

_DESCRIPTIONS: Final = {
    "mummer": "MUMmer's text",
    "paf": "PAF, minimap2's table",
    "bed": "BED, the matches on the reference",
    "tsv": "a table with a line of column names",
    "sam": "SAM",
    "bam": "BAM",
    "cram": "CRAM",
    "parquet": "Parquet",
    "arrow": "Arrow's file format",
    "delta": "nucmer's .delta",
    "plot": "a dot plot, whose name ends in .png, .svg, .pdf or .html",
}


def format_options(complete: Any) -> list[click.Option]:
    """Return the options; `complete` lets the shell complete the name of a file."""
    by_name = [
        click.Option(
            [f"--{name}", f"{name}_path"],
            metavar="FILE",
            shell_complete=complete,
            help=f"Write matches to FILE as {_DESCRIPTIONS[name]}.",
        )
        for name in FORMATS
    ]
    chosen = click.Option(
        ["--format", "format_name"],
        type=click.Choice(FORMATS),
        help="The format of the output.  [default: as -o ends, such as .paf or .bam, else mummer]",
    )
    return [chosen, *by_name]


def output_targets(given: Mapping[str, Any]) -> tuple[OutputTarget, ...]:
    """Return the files of matches that the options ask for, each with its format.

    Parameters
    ----------
    given : mapping
        The options by their parameter names.

    Returns
    -------
    tuple of OutputTarget
        At least one: standard output if no option names a file.

    Raises
    ------
    OptionError
        If the name of a file asks to compress a compressed format.
    """
    targets = [
        target_of(path, name, f"--{name}")
        for name in FORMATS
        if (path := given[f"{name}_path"]) is not None
    ]
    path = _main_path(given)
    if path is not None:
        targets.insert(0, target_of(path, given["format_name"]))
    elif given["format_name"] is not None:
        raise click.UsageError("--format is the format of -o, which is not given")
    return tuple(targets)


def output_files(given: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the file of each option for matches, None where there is none."""
    named = {f"--{name}": given[f"{name}_path"] for name in FORMATS}
    return {"--output": _main_path(given), **named}


def _main_path(given: Mapping[str, Any]) -> str | None:
    """Return the path of ``-o``: standard output if no option names a file."""
    path: str | None = given["output"]
    if path is None and all(given[f"{name}_path"] is None for name in FORMATS):
        return STANDARD_OUTPUT
    return path
