"""The option ``--for``: what the program that reads the matches needs of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from mummergpu.cli.format_options import output_targets
from mummergpu.pipeline.purposes import NEEDS, TEXT_FORMAT

_WRITTEN: Final = {"forward_coordinates": "-c", "four_columns": "-F", "show_sequences": "-s"}
"""How options are written."""


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
    needs = NEEDS[purpose]
    for name in needs.refused:
        if given[name]:
            raise _clash(purpose, _WRITTEN[name])
    targets = output_targets(given)
    if all(target.format != TEXT_FORMAT for target in targets):
        raise _clash(purpose, f"output as {targets[0].format}")
    needed: dict[str, Any] = {}
    if needs.both_strands:
        needed["both"] = not given["reverse"]
    if needs.forward_coordinates:
        needed["forward_coordinates"] = True
    if needs.unique_in_reference and not (given["maxmatch"] or given["mum"]):
        if given["max_occurrences"] is not None:
            raise _clash(purpose, "--max-occurrences (without -maxmatch)")
        needed["mumreference"] = True
    return {**given, **needed}


def three_columns_for(given: Mapping[str, Any]) -> str:
    """Return the program that reads three columns alone; empty if the run is for no such one."""
    purpose: str | None = given["purpose"]
    return purpose if purpose is not None and NEEDS[purpose].three_columns else ""


def _clash(purpose: str, other: str) -> click.UsageError:
    return click.UsageError(f"--for {purpose} and {other} exclude each other")
