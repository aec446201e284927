"""The option ``--for``: what the program that reads the matches needs of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from mummergpu.cli.format_options import output_targets

PURPOSES: Final = ("mgaps", "nucmer", "mummerplot")

_TEXT: Final = "mummer"

_REFUSED: Final = {
    "mgaps": {"forward_coordinates": "-c", "four_columns": "-F"},
    "nucmer": {"forward_coordinates": "-c", "four_columns": "-F"},
    "mummerplot": {"show_sequences": "-s"},
}
"""The options that each program cannot do with: parameter names, and how they are written."""


def with_purpose(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run, with those that its purpose needs.

    Parameters
    ----------
    given : mapping
        The options by their parameter names.

    Returns
    -------
    dict
        The same options, if there is no ``--for``.

    Raises
    ------
    click.UsageError
        If a given option makes no sense for the purpose; the message names both.
    """
    purpose = given["purpose"]
    if purpose is None:
        return dict(given)
    for name, written in _REFUSED[purpose].items():
        if given[name]:
            raise _clash(purpose, written)
    targets = output_targets(given)
    if all(target.format != _TEXT for target in targets):
        raise _clash(purpose, f"output as {targets[0].format}")
    needed: dict[str, Any] = {}
    if purpose != "mgaps":
        needed["both"] = not given["reverse"]
    if purpose == "mummerplot":
        needed["forward_coordinates"] = True
    if purpose == "nucmer" and not (given["maxmatch"] or given["mum"]):
        if given["max_occurrences"] is not None:
            raise _clash(purpose, "--max-occurrences (without -maxmatch)")
        needed["mumreference"] = True
    return {**given, **needed}


def three_columns_for(given: Mapping[str, Any]) -> str:
    """Return the program that reads three columns alone; empty if the run is for no such one."""
    return given["purpose"] if given["purpose"] in ("mgaps", "nucmer") else ""


def _clash(purpose: str, other: str) -> click.UsageError:
    return click.UsageError(f"--for {purpose} and {other} exclude each other")
