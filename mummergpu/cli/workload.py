"""The commands beside the main job: ``workload`` and ``doctor``."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from mummergpu.cli.cache_folders import (
    announce_compilation,
    find_place_for_compiled_code,
)
from mummergpu.cli.option_types import HELP_OPTIONS, PROGRAM


@click.command("workload", context_settings=HELP_OPTIONS)
@click.argument("name")
@click.option(
    "-o", "--output", "folder", metavar="DIR", required=True, help="Folder for the files."
)
@click.option(
    "--scale",
    type=float,
    default=1.0,
    show_default=True,
    help="Multiply the number of reads.",
)
@click.option(
    "--reference", metavar="FILE", help="Take the queries from FILE.  [default: a synthetic genome]"
)
@click.option("--seed", type=int, metavar="N", help="[default: the workload's own]")
def workload(name: str, folder: str, scale: float, reference: str | None, seed: int | None) -> None:
    """Make the reference and the queries of a workload.

    NAME is one of the four of MUMmerGPU's paper, HSILL, CBRIGG, LMONO or SSUIS; or HS100, ten
    million reads and 100 Mbp; or GENOMES, 100 Mbp and a copy that differs by a hundredth. The
    same seed makes the same files on every machine.
    """
    find_place_for_compiled_code(os.environ)
    from mummergpu.workload.declaration import load_declaration
    from mummergpu.workload.generation import generate

    announce_compilation()
    given_reference = Path(reference) if reference else None
    files = generate(name, Path(folder), scale, given_reference, seed)
    length = load_declaration(name).minimum_length
    command = shlex.join([PROGRAM, "-l", str(length), str(files.reference), str(files.queries)])
    click.echo(f"{PROGRAM}: made {files.reference} and {files.queries}; to match them:", err=True)
    click.echo(command, err=True)
