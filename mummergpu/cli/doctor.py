"""The command ``doctor``: show what this machine has for mummergpu."""

from __future__ import annotations

import os

import click

from mummergpu.cli.cache_folders import folder_of_kernels
from mummergpu.cli.option_types import HELP_OPTIONS
from mummergpu.runtime.cache_places import can_be_written, folder_of_compiled_code


@click.command("doctor", context_settings=HELP_OPTIONS)
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON.")
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Show what this machine has for mummergpu, and what is missing.

    Exit code: 0 if a backend works, else 1.
    """
    from mummergpu.cli.machine_report import examine, render

    compiled_code = folder_of_compiled_code(os.environ)
    report = examine(compiled_code, folder_of_kernels(os.environ), can_be_written)
    click.echo(report.as_json() if as_json else render(report))
    context.exit(0 if report.auto_backend else 1)
