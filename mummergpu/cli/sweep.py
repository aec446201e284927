"""The command ``sweep``: measure every combination of data policies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mummergpu.cli.option_names import WordedCommand
from mummergpu.cli.option_types import HELP_OPTIONS, MAIN_OPTIONS, PROGRAM, complete_folders
from mummergpu.cli.study_options import (
    INPUT_OPTIONS,
    MACHINE_OPTIONS,
    is_of_profiles,
    open_profile_study,
    open_study,
    profile_data,
    refuse_unclear_input,
    study_data,
    study_trees,
    study_workloads,
)
from mummergpu.runtime.words import pluralize

if TYPE_CHECKING:
    from mummergpu.runtime.progress import Messages
    from mummergpu.studies.data_set import DataSet
    from mummergpu.studies.layout_sweep import SweepOptions
    from mummergpu.studies.profiles.policies import FilterPolicy
    from mummergpu.studies.searcher import StudySearcher


@click.command(
    "sweep",
    cls=WordedCommand,
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
        MAIN_OPTIONS["verbose"],
        MAIN_OPTIONS["quiet"],
    ],
)
def sweep(**params: Any) -> None:
    """Measure every combination of the seven data policies, or the policies of profile filters.

    Searches the same queries with every layout of the suffix trees, again and again in a random
    order, and writes what each run cost to DIR/runs.jsonl. All runs must find the same matches.
    A sweep that was interrupted goes on where it stopped when the command is repeated. At its end
    it names the fastest; 'mummergpu report DIR' shows the rest.

    If the first file has profile HMMs and the others proteins, the filters of profiles are measured
    in place of searches, in a folder for each profile if there are several.
    """
    refuse_unclear_input(params)
    params["workloads"] = study_workloads(params)
    if not params["workloads"] and not params["reference"]:
        raise click.UsageError("Missing argument 'REFERENCE QUERY...', or option '--workload'")
    if is_of_profiles(params):
        _sweep_profiles(params)
        return
    from mummergpu.studies.layout_sweep import sweep as measure

    with open_study(params) as (searcher, progress):
        options = _sweep_options(params, searcher)
        for data, folder in _data_sets(params, searcher):
            made = measure(data, options, searcher, folder, progress)
            _report(progress, data.name, made, folder)
            _report_layout(progress, data.name, folder)
        progress.write_line(f"{PROGRAM}: to see them: {PROGRAM} report {params['folder']}")


def _report(progress: Messages, name: str, made: int, folder: Path) -> None:
    progress.write_line(
        f"{PROGRAM}: {name}: {pluralize(made, 'run is', 'runs are')} new in {folder}"
        if made
        else f"{PROGRAM}: {name}: all runs were already in {folder}"
    )


def _report_layout(progress: Messages, name: str, folder: Path) -> None:
    from mummergpu.studies.records import median_seconds

    seconds = median_seconds(folder)
    best = min(seconds, key=lambda code: seconds[code])
    progress.write_line(
        f"{PROGRAM}: {name}: {best} is the fastest of {len(seconds)}: "
        f"choose it with --search tree --policy {best}"
    )


def _report_filters(progress: Messages, name: str, folder: Path) -> None:
    from mummergpu.studies.profiles.policies import FILTER_NAMES, filter_of, policy_of
    from mummergpu.studies.records import median_seconds

    seconds = median_seconds(folder)
    for kind, filter_name in FILTER_NAMES.items():
        own = [code for code in seconds if filter_of(policy_of(code)) == kind]
        if own:
            best = min(own, key=lambda code: seconds[code])
            progress.write_line(
                f"{PROGRAM}: {name}: {best} is the fastest of {len(own)} for {filter_name}"
                f"{_how_to_choose(policy_of(best))}"
            )


def _how_to_choose(policy: FilterPolicy) -> str:
    """Return how a search takes the policy of a filter: only Viterbi's can be chosen."""
    from mummergpu.hmm.filter_variants import RowPolicy, ThreadPolicy

    if isinstance(policy, ThreadPolicy) and policy.is_tiled and policy.steps != "c":
        # Searches sort sequences themselves, and have no constant memory.
        code = replace(policy, sequences="r").code
        return f": choose it with hmmsearch --filter-policy {code}"
    if isinstance(policy, RowPolicy) and policy.filter == "V":
        return ": choose warps with hmmsearch --filter-policy warp"
    return ""


def _sweep_profiles(params: dict[str, Any]) -> None:
    from mummergpu.studies.profiles.bench import ProfileSweepOptions, sweep
    from mummergpu.studies.profiles.policies import choose_policies

    with open_profile_study(params) as (machine, progress):
        options = ProfileSweepOptions(
            tuple(choose_policies(params["policies"], machine.backend)),
            params["runs"],
            params["repeat_control"],
            params["seed"],
        )
        folder = Path(params["folder"])
        every = profile_data(params, progress)
        for data in every:
            own = folder / data.name if len(every) > 1 else folder
            _report(progress, data.name, sweep(data, options, machine, own, progress), own)
            _report_filters(progress, data.name, own)
        progress.write_line(f"{PROGRAM}: to see them: {PROGRAM} report {params['folder']}")


def _sweep_options(params: dict[str, Any], searcher: StudySearcher) -> SweepOptions:
    from mummergpu.studies.combinations import choose_policies
    from mummergpu.studies.layout_sweep import SweepOptions

    return SweepOptions(
        policies=tuple(choose_policies(params["policies"], searcher.backend.name)),
        runs=params["runs"],
        control_runs=params["repeat_control"],
        seed=params["seed"],
        profile=params["profile"],
        threads=params["threads"],
        trees=study_trees(params),
    )


def _data_sets(params: dict[str, Any], searcher: StudySearcher) -> Iterator[tuple[DataSet, Path]]:
    """Yield each data set with the folder for its records."""
    folder = Path(params["folder"])
    scale = 1.0 if params["scale"] is None else params["scale"]
    for data in study_data(params, params["workloads"], scale, searcher):
        yield data, folder / data.name if len(params["workloads"]) > 1 else folder
