"""The command ``report``: show sweeps as a page."""

from __future__ import annotations

from pathlib import Path

import click

from mummergpu.cli.option_types import HELP_OPTIONS, PROGRAM, complete_folders
from mummergpu.errors import OutputError


@click.command("report", context_settings=HELP_OPTIONS)
@click.argument(
    "sources", metavar="DIR...", nargs=-1, required=True, shell_complete=complete_folders
)
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="OUT",
    shell_complete=complete_folders,
    help="The folder for the report; it is made if need be.  [default: DIR]",
)
@click.option("-q", "--quiet", is_flag=True, help="Write nothing but errors to standard error.")
def report(sources: tuple[str, ...], folder: str | None, quiet: bool) -> None:
    """Show what sweeps of the policies found, on one page.

    DIR is a folder that 'mummergpu sweep' has written, or a folder of such folders; several are
    shown side by side. The page, OUT/report.html, needs neither a network nor other files.
    """
    for source in sources:
        if Path(source).is_file():
            raise click.UsageError(
                f"'{source}' is a file, and report shows folders of sweeps; --multiqc shows runs"
            )
    if folder is None:
        if len(sources) > 1:
            raise click.UsageError("Missing option '-o' / '--output', for several folders")
        folder = sources[0]
    from mummergpu.runtime.output_file import OutputFile
    from mummergpu.studies.report.make import make_report, require_libraries
    from mummergpu.studies.report.page import page_text

    require_libraries()
    text = page_text(make_report(sources))
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot be made: {error.strerror}", folder) from error
    page = Path(folder) / "report.html"
    with OutputFile(str(page)) as file:
        file.write(text.encode())
    if not quiet:
        click.echo(f"{PROGRAM}: the report is {page}", err=True)
