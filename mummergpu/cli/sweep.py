"""The command ``sweep``: measure every combination of data policies."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.cache_folders import (
    announce_compilation,
    folder_of_kernels,
    tell_cache_trouble,
)
from mummergpu.cli.option_types import (
    HELP_OPTIONS,
    PROGRAM,
    SECTIONS,
    complete_files,
    complete_folders,
)
from mummergpu.cli.workload import complete_workload

if TYPE_CHECKING:
    from mummergpu.sequence.codes import Strand
    from mummergpu.studies.data_set import DataSet
    from mummergpu.studies.searcher import StudySearcher
    from mummergpu.studies.sweep import SweepOptions

_OF_THE_MAIN_JOB: Final = {
    option.name: option for options in SECTIONS.values() for option in options
}

INPUT_OPTIONS: Final = [
    click.Argument(["reference"], required=False, shell_complete=complete_files),
    click.Argument(["query"], nargs=-1, shell_complete=complete_files),
    click.Option(
        ["--workload", "workloads"],
        metavar="NAME",
        multiple=True,
        shell_complete=complete_workload,
        help="Measure on a workload, made from random numbers, in place of files; may be repeated.",
    ),
    click.Option(
        ["--scale"],
        type=float,
        default=1.0,
        show_default=True,
        help="Make so many times as many reads of each workload: 0.1 is a tenth.",
    ),
    click.Option(
        ["-l", "--min-length", "min_length"],
        type=click.IntRange(min=1),
        metavar="N",
        help="Search matches of at least N bases.  [default: the workload's own, or 20]",
    ),
    _OF_THE_MAIN_JOB["both"],
    _OF_THE_MAIN_JOB["reverse"],
    _OF_THE_MAIN_JOB["any_letters"],
]
"""The options that say what a study searches."""

MACHINE_OPTIONS: Final = [
    _OF_THE_MAIN_JOB[name]
    for name in ("backend", "cpu", "threads", "page_size", "address_bits", "builder")
] + [_OF_THE_MAIN_JOB[name] for name in ("device", "gpu_memory")]
"""The options that say where and on which trees a study searches."""


@click.command(
    "sweep",
    context_settings=HELP_OPTIONS,
    params=[
        *INPUT_OPTIONS,
        click.Option(
            ["-o", "--output", "folder"],
            metavar="DIR",
            required=True,
            shell_complete=complete_folders,
            help="The folder for the records; it is made if need be. Several workloads get a "
            "folder each in it.",
        ),
        click.Option(
            ["--policies"],
            metavar="CODES",
            default="all",
            show_default=True,
            help="The combinations to measure: 'all' that differ on the backend (128 on a GPU, 16 "
            "on the processor), or codes and patterns separated by commas, such as 'Tn,m' or 'T*'.",
        ),
        click.Option(
            ["--runs"],
            type=click.IntRange(min=1),
            default=5,
            show_default=True,
            help="Measure each combination so many times.",
        ),
        click.Option(
            ["--repeat-control"],
            type=click.IntRange(min=0),
            metavar="N",
            default=10,
            show_default=True,
            help="Measure the combination 'none' N times more, between the others, to see how "
            "noisy the machine is.",
        ),
        click.Option(
            ["--seed"],
            type=int,
            metavar="N",
            default=1,
            show_default=True,
            help="Where the random order of the runs starts.",
        ),
        click.Option(
            ["--profile"],
            is_flag=True,
            help="Run each combination once more and count the nodes that are visited on a GPU.",
        ),
        *MACHINE_OPTIONS,
        _OF_THE_MAIN_JOB["verbose"],
        _OF_THE_MAIN_JOB["quiet"],
    ],
)
def sweep(**given: Any) -> None:
    """Measure every combination of the seven data policies.

    Searches the same queries with every layout of the suffix trees, again and again in a random
    order, and writes what each run cost to DIR/runs.jsonl. All runs must find the same matches.
    A sweep that was interrupted goes on where it stopped when the command is repeated.
    'mummergpu report DIR' shows the result.
    """
    refuse_unclear_input(given)
    given["workloads"] = study_workloads(given)
    from mummergpu.studies.searcher import open_searcher
    from mummergpu.studies.sweep import sweep as measure

    def notice(text: str) -> None:
        if given["verbose"]:
            progress.write_line(f"{PROGRAM}: {text}")

    progress = step_progress(given["quiet"])
    if not given["quiet"]:
        announce_compilation()
    tell_cache_trouble(notice)
    searcher = open_searcher(study_device(given), notice)
    try:
        options = _sweep_options(given, searcher)
        for data, folder in _data_sets(given, searcher):
            made = measure(data, options, searcher, folder, progress, notice)
            progress.write_line(
                f"{PROGRAM}: {data.name}: {made:,} runs are new in {folder}"
                if made
                else f"{PROGRAM}: {data.name}: all runs were already in {folder}"
            )
        progress.write_line(f"{PROGRAM}: to see them: {PROGRAM} report {given['folder']}")
    finally:
        progress.close()
        searcher.close()


def refuse_unclear_input(given: dict[str, Any]) -> None:
    """Refuse options of a study that exclude each other, or that name nothing to search.

    Parameters
    ----------
    given : dict
        The options by their parameter names.

    Raises
    ------
    click.UsageError
        If the input is not clear; the message says why.
    """
    if given["workloads"] and given["reference"]:
        raise click.UsageError("files and --workload exclude each other")
    if given["reference"] and not given["query"]:
        raise click.UsageError("Missing argument 'QUERY...'")
    if not given["workloads"] and not given["reference"]:
        raise click.UsageError("Missing argument 'REFERENCE QUERY...', or option '--workload'")
    if given["reference"] and given["scale"] != 1.0:
        raise click.UsageError("--scale goes with --workload")
    for one, other in (("both", "reverse"), ("verbose", "quiet")):
        if given[one] and given[other]:
            raise click.UsageError(f"-{one[0]} and -{other[0]} exclude each other")
    if given["cpu"] and given["backend"] == "cuda":
        raise click.UsageError("-C and --backend cuda exclude each other")


def study_workloads(given: dict[str, Any]) -> list[str]:
    """Return the names of the workloads of a study, as they are declared.

    Parameters
    ----------
    given : dict
        The options by their parameter names.

    Raises
    ------
    OptionError
        If there is no such workload, or the scale is not possible for it.
    click.UsageError
        If a workload is named twice.
    """
    if not given["workloads"]:
        return []
    from mummergpu.errors import OptionError
    from mummergpu.workload.declaration import load_declaration
    from mummergpu.workload.generation import scaled_count

    names = []
    for word in given["workloads"]:
        try:
            declared = load_declaration(word)
        except OptionError as error:
            raise OptionError("--workload", error.message) from error
        scaled_count(declared.queries, given["scale"])
        names.append(declared.name)
    if len(set(names)) < len(names):
        raise click.UsageError("a workload is named twice")
    return names


def step_progress(hidden: bool) -> Any:
    """Return the display of a study's progress on standard error."""
    from mummergpu.runtime.step_progress import StepProgress

    return StepProgress(sys.stderr, hidden)


def study_device(given: dict[str, Any]) -> Any:
    """Return the device options of a study."""
    from mummergpu.matching.options import DeviceOptions

    kernel_folder = folder_of_kernels(os.environ)
    return DeviceOptions(
        backend="cpu" if given["cpu"] else given["backend"],
        number=given["device"],
        memory=given["gpu_memory"],
        kernel_folder=None if kernel_folder is None else str(kernel_folder),
    )


def study_strands(given: dict[str, Any]) -> tuple[Strand, ...]:
    """Return the strands that a study searches; the forward strand alone by default."""
    from mummergpu.sequence.codes import Strand

    if given["reverse"]:
        return (Strand.REVERSE,)
    return (Strand.FORWARD, Strand.REVERSE) if given["both"] else (Strand.FORWARD,)


def study_trees(given: dict[str, Any]) -> Any:
    """Return the options of the trees of a study."""
    from dataclasses import replace

    from mummergpu.index.options import TreeOptions
    from mummergpu.index.tree_index import check_page_size

    trees = TreeOptions()
    size = given["page_size"]
    if size is not None:
        trees = replace(trees, page_size=None if size == "auto" else size)
    if given["address_bits"]:
        trees = replace(trees, address_bits=int(given["address_bits"]))
    if given["builder"]:
        trees = replace(trees, builder=given["builder"])
    check_page_size(trees)
    return trees


def _sweep_options(given: dict[str, Any], searcher: StudySearcher) -> SweepOptions:
    from mummergpu.studies.combinations import choose_policies
    from mummergpu.studies.sweep import SweepOptions

    return SweepOptions(
        policies=tuple(choose_policies(given["policies"], searcher.backend.name)),
        runs=given["runs"],
        control_runs=given["repeat_control"],
        seed=given["seed"],
        profile=given["profile"],
        threads=given["threads"],
        trees=study_trees(given),
        device=study_device(given),
    )


def _data_sets(given: dict[str, Any], searcher: StudySearcher) -> Iterator[tuple[DataSet, Path]]:
    """Yield each data set with the folder for its records."""
    from mummergpu.input.queries import QueryRules
    from mummergpu.studies.data_set import make_data_set, read_data_set

    folder, strands, length = Path(given["folder"]), study_strands(given), given["min_length"]
    if given["reference"]:
        path = given["reference"]
        rules = QueryRules(any_letters=given["any_letters"], no_empty=True)
        yield (
            read_data_set(
                os.path.basename(path),
                path,
                given["query"],
                searcher.block_size,
                20 if length is None else length,
                strands,
                rules,
            ),
            folder,
        )
        return
    for name in given["workloads"]:
        data = make_data_set(name, given["scale"], None, searcher.block_size, length, strands)
        yield data, folder / name if len(given["workloads"]) > 1 else folder
