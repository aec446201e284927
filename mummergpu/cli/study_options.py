"""What the commands ``sweep`` and ``tune`` share: the options of their input and machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.cache_folders import announce_compilation, folder_of_kernels, tell_cache_trouble
from mummergpu.cli.option_types import AUTO, MAIN_OPTIONS, PROGRAM, complete_files, one_device
from mummergpu.cli.workload import complete_workload

if TYPE_CHECKING:
    from mummergpu.index.options import TreeOptions
    from mummergpu.matching.options import DeviceOptions
    from mummergpu.runtime.step_progress import StepProgress
    from mummergpu.sequence.codes import Strand
    from mummergpu.studies.data_set import DataSet
    from mummergpu.studies.searcher import StudySearcher

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
        metavar="FACTOR",
        help="Make so many times as many reads of each workload: 0.1 is a tenth.  [default: 1 for "
        "sweep; for tune 0.25 on a GPU, 0.05 on the processor]",
    ),
    click.Option(
        ["-l", "--min-length", "min_length"],
        type=click.IntRange(min=1),
        metavar="N",
        help="Search matches of at least N bases.  [default: the workload's own, or 20]",
    ),
    MAIN_OPTIONS["both"],
    MAIN_OPTIONS["reverse"],
    MAIN_OPTIONS["any_letters"],
]
"""The options that say what a study searches."""

MACHINE_OPTIONS: Final = [
    MAIN_OPTIONS[name]
    for name in ("backend", "cpu", "threads", "page_size", "address_bits", "builder")
] + [
    click.Option(
        ["--device"],
        callback=one_device,
        metavar="N",
        default="0",
        show_default=True,
        help="Which GPU to use, as the driver counts them; only one.",
    ),
    MAIN_OPTIONS["gpu_memory"],
    MAIN_OPTIONS["device_library"],
]
"""The options that say where and on which trees a study searches."""


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
    if given["reference"] and given["scale"] is not None:
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
        scaled_count(declared.queries, 1.0 if given["scale"] is None else given["scale"])
        names.append(declared.name)
    if len(set(names)) < len(names):
        raise click.UsageError("a workload is named twice")
    return names


@dataclass(frozen=True)
class Study:
    """What a study works with.

    Attributes
    ----------
    searcher : StudySearcher
        The open backend.
    progress : StepProgress
        Shows on standard error how far the study is.
    notice : callable
        Writes a line on standard error if the user asked for details.
    """

    searcher: StudySearcher
    progress: StepProgress
    notice: Callable[[str], None]


@contextmanager
def open_study(given: dict[str, Any]) -> Iterator[Study]:
    """Open what a study works with, and close it afterwards.

    Parameters
    ----------
    given : dict
        The options by their parameter names.

    Yields
    ------
    Study
        The backend, the progress and the notices.

    Raises
    ------
    BackendError
        If the backend cannot be used.
    """
    from mummergpu.runtime.step_progress import StepProgress
    from mummergpu.studies.searcher import open_searcher

    def notice(text: str) -> None:
        if given["verbose"]:
            progress.write_line(f"{PROGRAM}: {text}")

    progress = StepProgress(sys.stderr, given["quiet"])
    if not given["quiet"]:
        announce_compilation()
    tell_cache_trouble(notice)
    searcher = open_searcher(study_device(given), notice)
    try:
        yield Study(searcher, progress, notice)
    finally:
        progress.close()
        searcher.close()


def study_device(given: dict[str, Any]) -> DeviceOptions:
    """Return the device options of a study."""
    from mummergpu.matching.options import DeviceOptions

    kernel_folder = folder_of_kernels(os.environ)
    return DeviceOptions(
        backend="cpu" if given["cpu"] else given["backend"],
        numbers=given["device"],
        memory=given["gpu_memory"],
        threads=given["threads"],
        kernel_folder=None if kernel_folder is None else str(kernel_folder),
        library=given["device_library"],
    )


def study_strands(given: dict[str, Any]) -> tuple[Strand, ...]:
    """Return the strands that a study searches; the forward strand alone by default."""
    from mummergpu.sequence.codes import Strand

    if given["reverse"]:
        return (Strand.REVERSE,)
    return (Strand.FORWARD, Strand.REVERSE) if given["both"] else (Strand.FORWARD,)


def study_trees(given: dict[str, Any]) -> TreeOptions:
    """Return the options of the trees of a study."""
    from mummergpu.index.options import TreeOptions
    from mummergpu.index.tree_index import check_page_size

    trees = TreeOptions()
    size = given["page_size"]
    if size is not None:
        trees = replace(trees, page_size=None if size == AUTO else size)
    if given["address_bits"]:
        trees = replace(trees, address_bits=int(given["address_bits"]))
    if given["builder"]:
        trees = replace(trees, builder=given["builder"])
    check_page_size(trees)
    return trees


def study_data(
    given: dict[str, Any], workloads: Sequence[str], scale: float, searcher: StudySearcher
) -> Iterator[DataSet]:
    """Yield the files that are given as a data set, or else workloads.

    Parameters
    ----------
    given : dict
        The options by their parameter names.
    workloads : sequence of str
        The names of workloads, if no files are given.
    scale : float
        The factor for the numbers of their reads.
    searcher : StudySearcher
        The open backend, which says how large blocks should be.

    Yields
    ------
    DataSet
        One at a time is in memory.
    """
    from mummergpu.index.options import DEFAULT_MINIMUM_LENGTH
    from mummergpu.input.blocks.queries import QueryRules
    from mummergpu.studies.data_set import make_data_set, read_data_set

    strands, length = study_strands(given), given["min_length"]
    if not given["reference"]:
        for name in workloads:
            yield make_data_set(name, scale, None, searcher.block_size, length, strands)
        return
    yield read_data_set(
        os.path.basename(given["reference"]),
        given["reference"],
        given["query"],
        searcher.block_size,
        DEFAULT_MINIMUM_LENGTH if length is None else length,
        strands,
        QueryRules(any_letters=given["any_letters"], no_empty=True),
    )
