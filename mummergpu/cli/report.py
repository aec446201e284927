"""The command ``report``: show sweeps, and where the time of a run went, as a page."""

from __future__ import annotations

from pathlib import Path

import click

from mummergpu.cli.option_types import HELP_OPTIONS, PROGRAM, complete_files, complete_folders


@click.command("report", context_settings=HELP_OPTIONS)
@click.argument("sources", metavar="DIR...", nargs=-1, required=True, shell_complete=complete_files)
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="OUT",
    shell_complete=complete_folders,
    help="The folder for the report; it is made if need be.  [default: DIR, if there is one]",
)
@click.option("-q", "--quiet", is_flag=True, help="Write nothing but errors to standard error.")
def report(sources: tuple[str, ...], folder: str | None, quiet: bool) -> None:
    """Show what sweeps of the policies found, on one page.

    DIR is a folder that 'mummergpu sweep' has written, or a folder of such folders; several are
    shown side by side. A file that a run has written with --stats may stand in place of a folder:
    the page shows where the time of that run went, and what it found.

    The page is report.html. It needs neither a network nor other files. Beside it are report.md,
    with the same content, and a folder with the figures as SVG and PNG.
    """
    if folder is None:
        if len(sources) > 1 or Path(sources[0]).is_file():
            raise click.UsageError(
                "Missing option '-o' / '--output', for the report of several folders or of a file"
            )
        folder = sources[0]
    from mummergpu.studies.report.assemble import make_report, read_inputs, require_libraries
    from mummergpu.studies.report.files import write_report

    require_libraries()
    page = write_report(make_report(read_inputs(sources)), Path(folder))
    if not quiet:
        click.echo(f"{PROGRAM}: the report is {page}", err=True)
