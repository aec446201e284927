"""The options of a sweep's input and machine, and what they open."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from mummergpu.cli.messages import (
    RunWords,
    announce_compilation,
    progress_shown,
    tell_cache_trouble,
)
from mummergpu.cli.option_rules import device_options, refuse_exclusive, strands_of
from mummergpu.cli.option_types import AUTO, MAIN_OPTIONS, PROGRAM, complete_files
from mummergpu.cli.workload import complete_workload
from mummergpu.runtime.words import pluralize

if TYPE_CHECKING:
    from mummergpu.index.options import TreeOptions
    from mummergpu.runtime.progress import Messages
    from mummergpu.studies.data_set import DataSet
    from mummergpu.studies.profiles.bench import ProfileMachine
    from mummergpu.studies.profiles.data import ProfileData
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
        help="Make so many times as many reads of each workload: 0.1 is a tenth.  [default: 1]",
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
    for name in (
        *("backend", "cpu", "threads", "page_size", "address_bits"),
        *("device", "gpu_memory", "device_library"),
    )
]
"""The options that say where and on which trees a study searches."""


_TREES_ONLY: Final = (
    *("min_length", "both", "reverse", "page_size", "address_bits", "profile"),
    *("gpu_memory", "device_library"),
)


def refuse_unclear_input(params: dict[str, Any]) -> None:
    """Refuse options of a study that exclude each other, or that name nothing to search."""
    if params["workloads"] and params["reference"]:
        raise click.UsageError("files and --workload exclude each other")
    if params["reference"] and not params["query"]:
        raise click.UsageError("Missing argument 'QUERY...'")
    if params["reference"] and params["scale"] is not None:
        raise click.UsageError("--scale goes with --workload")
    refuse_exclusive(params)


def is_of_profiles(params: dict[str, Any]) -> bool:
    """Return whether a study is of profile filters: the content of the first file decides.

    Options that such a study does not have are refused.
    """
    if not params["reference"]:
        return False
    from mummergpu.hmm.profiles import holds_profiles

    if not holds_profiles(params["reference"]):
        return False
    context = click.get_current_context()
    for name in _TREES_ONLY:
        if params.get(name) and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            dashes = "-" if len(name) == 1 else "--"
            word = "-l" if name == "min_length" else dashes + name.replace("_", "-")
            raise click.UsageError(f"{word} is for studies of trees, not of profiles")
    return True


@contextmanager
def _open_messages(params: dict[str, Any]) -> Iterator[tuple[Messages, Callable[[str], None]]]:
    """Open what shows how far a study is, and what writes lines that only -v asks for."""
    with progress_shown(params["quiet"], params["verbose"], params["quiet"]) as progress:
        words = RunWords(progress, params["verbose"], params["quiet"])
        if not params["quiet"]:
            announce_compilation()
        tell_cache_trouble(words.notice)
        yield progress, words.notice


@contextmanager
def open_profile_study(
    params: dict[str, Any],
) -> Iterator[tuple[ProfileMachine, Messages]]:
    """Open what a study of profile filters works with, and close it afterwards."""
    from mummergpu.studies.profiles.bench import ProfileMachine

    with (
        _open_messages(params) as (progress, notice),
        ProfileMachine(device_options(params), notice) as machine,
    ):
        yield machine, progress


def profile_data(params: dict[str, Any], progress: Messages) -> list[ProfileData]:
    """Return a data set for each profile of the first file, with the proteins of the others."""
    from mummergpu.studies.profiles.data import read_profile_data

    found = read_profile_data(
        params["reference"],
        params["query"],
        params["any_letters"],
        lambda line: progress.write_line(f"{PROGRAM}: {line}"),
    )
    left_out = found[0].left_out
    if left_out:
        progress.write_line(
            f"{PROGRAM}: left out: {pluralize(left_out, 'protein')} without residues or with marks"
        )
    return found


def study_workloads(params: dict[str, Any]) -> list[str]:
    """Return the names of the workloads of a study, as they are declared."""
    if not params["workloads"]:
        return []
    from mummergpu.errors import OptionError
    from mummergpu.workload.declaration import load_declaration
    from mummergpu.workload.generation import scaled_count

    names = []
    for word in params["workloads"]:
        try:
            declared = load_declaration(word)
        except OptionError as error:
            raise OptionError("--workload", error.message) from error
        scaled_count(declared.queries, 1.0 if params["scale"] is None else params["scale"])
        names.append(declared.name)
    if len(set(names)) < len(names):
        raise click.UsageError("a workload is named twice")
    return names


@contextmanager
def open_study(params: dict[str, Any]) -> Iterator[tuple[StudySearcher, Messages]]:
    """Open what a study works with, and close it afterwards."""
    from mummergpu.studies.searcher import open_searcher

    with _open_messages(params) as (progress, notice):
        with closing(open_searcher(device_options(params), notice)) as searcher:
            yield searcher, progress


def study_trees(params: dict[str, Any]) -> TreeOptions:
    """Return the options of the trees of a study."""
    from mummergpu.index.options import TreeOptions
    from mummergpu.index.tree_index import check_page_size

    trees = TreeOptions()
    size = params["page_size"]
    if size is not None:
        trees = replace(trees, page_size=None if size == AUTO else size)
    if params["address_bits"]:
        trees = replace(trees, address_bits=int(params["address_bits"]))
    check_page_size(trees)
    return trees


def study_data(
    params: dict[str, Any], workloads: Sequence[str], scale: float, searcher: StudySearcher
) -> Iterator[DataSet]:
    """Yield the files that are given as a data set, or else workloads."""
    from mummergpu.index.options import DEFAULT_MINIMUM_LENGTH
    from mummergpu.input.blocks.queries import QueryRules
    from mummergpu.matching.options import STRANDS
    from mummergpu.studies.data_set import make_data_set, read_data_set

    strands, length = STRANDS[strands_of(params)], params["min_length"]
    if not params["reference"]:
        for name in workloads:
            yield make_data_set(name, scale, None, searcher.block_size, length, strands)
        return
    yield read_data_set(
        os.path.basename(params["reference"]),
        params["reference"],
        params["query"],
        searcher.block_size,
        DEFAULT_MINIMUM_LENGTH if length is None else length,
        strands,
        QueryRules(any_letters=params["any_letters"], no_empty=True),
    )
