"""The command ``workload``: make a reference and queries to try the main job on."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mummergpu.cli.messages import announce_compilation, progress_shown
from mummergpu.cli.option_names import WordedCommand
from mummergpu.cli.option_types import HELP_OPTIONS, PROGRAM, complete_files, complete_folders

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def complete_workload(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Let the shell complete the name of a workload."""
    from click.shell_completion import CompletionItem

    from mummergpu.workload.declaration import workload_names

    begun = incomplete.upper()
    return [CompletionItem(name) for name in workload_names() if name.startswith(begun)]


@click.command("workload", cls=WordedCommand, context_settings=HELP_OPTIONS)
@click.argument("name", shell_complete=complete_workload)
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    shell_complete=complete_folders,
    required=True,
    help="The folder for the files; it is made if need be.",
)
@click.option(
    "--scale",
    type=float,
    default=1.0,
    show_default=True,
    help="Make so many times as many reads: 0.01 is a hundredth. REPEATS gets a genome to match.",
)
@click.option(
    "--reference",
    metavar="FILE",
    shell_complete=complete_files,
    help="Take FILE as the reference, and the queries from it.  [default: a random genome]",
)
@click.option(
    "--seed",
    type=int,
    metavar="N",
    help="Where the random numbers start.  [default: the workload's own]",
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Tell how far it is every 30 seconds where standard error is no terminal.",
)
@click.option("-q", "--quiet", is_flag=True, help="Write nothing but errors to standard error.")
@click.option("--no-progress", is_flag=True, help="Show no progress.")
def workload(
    name: str,
    folder: str,
    scale: float,
    reference: str | None,
    seed: int | None,
    verbose: bool,
    quiet: bool,
    no_progress: bool,
) -> None:
    """Make a reference and queries to try mummergpu on.

    NAME is one of the four data sets of MUMmerGPU's paper, HSILL, CBRIGG, LMONO or SSUIS; or
    HS100, ten million reads of a genome of 100 Mbp; GENOMES, a genome of 100 Mbp and a copy that
    differs in one base of a hundred; or REPEATS, 3.1 Gbp with the repeats of a human genome, and
    ten million pairs. All are made from random numbers: the same seed makes the same files on
    every machine.
    """
    if verbose and quiet:
        raise click.UsageError("-v and -q exclude each other")
    from mummergpu.workload.declaration import load_declaration
    from mummergpu.workload.generation import generate

    if not quiet:
        announce_compilation()
    given_reference = Path(reference) if reference else None
    with progress_shown(quiet or no_progress, verbose) as progress:
        files = generate(name, Path(folder), scale, given_reference, seed, progress.tell)
    if quiet:
        return
    length = load_declaration(name).minimum_length
    made = [str(path) for path in (files.reference, *files.query_paths)]
    words = ["--pair"] if files.mates else []
    command = shlex.join([PROGRAM, "-l", str(length), *words, *made])
    click.echo(
        f"{PROGRAM}: made {', '.join(made[:-1])} and {made[-1]}; to match them:",
        err=True,
    )
    click.echo(command, err=True)
