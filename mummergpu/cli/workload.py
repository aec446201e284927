"""The command ``workload``: make a reference and queries to try the main job on."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mummergpu.cli.exit_on_signal import PROGRAM
from mummergpu.cli.option_types import (
    HELP_OPTIONS,
    MESSAGE_OPTIONS,
    WordedCommand,
    file_option,
    folder_option,
    option,
)
from mummergpu.cli.run_verb import announce_compilation, progress_shown

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


@click.command(
    "workload",
    cls=WordedCommand,
    context_settings=HELP_OPTIONS,
    params=[
        click.Argument(["name"], shell_complete=complete_workload),
        folder_option(
            "-o --output folder", "Folder for the files, which is made if need be.", required=True
        ),
        option(
            "--scale",
            "Scale the number of reads: 0.01 is a hundredth. REPEATS gets a genome to match.",
            "FACTOR",
            type=float,
            default=1.0,
        ),
        file_option(
            "--reference",
            "FASTA file of the reference to sample; HSILL needs one.  [default: a random genome]",
        ),
        option("--seed", "Seed of the random numbers.  [default: the workload's own]", type=int),
        *MESSAGE_OPTIONS,
    ],
)
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
    """Generate a reference and queries to try mummergpu on.

    NAME is one of the four data sets of MUMmerGPU's paper, HSILL, CBRIGG, LMONO or SSUIS; HSYNTH,
    of the size of HSILL; HS100, ten million reads of a genome of 100 Mbp; GENOMES, a genome of
    100 Mbp and a copy that differs in one base of a hundred; or REPEATS, 3.1 Gbp with the repeats
    of a human genome, and ten million pairs. HSILL is cut from a file of the human genome that
    --reference names; the genomes of the others are random. The same seed makes the same files on
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
    pair = ["--pair"] if files.mates else []
    command = shlex.join([PROGRAM, "-l", str(length), *pair, *made])
    click.echo(f"{PROGRAM}: made {', '.join(made[:-1])} and {made[-1]}; to match them:", err=True)
    click.echo(command, err=True)
