"""The command ``tune``: find the best data policies for this machine, and keep them."""

from __future__ import annotations

from typing import Any, Final

import click

from mummergpu.cli.option_names import WordedCommand
from mummergpu.cli.option_types import HELP_OPTIONS, MAIN_OPTIONS, PROGRAM
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
from mummergpu.cli.tuned_policies import (
    add_schemes,
    add_tuned,
    prepare_tuned_file,
    tuned_file,
    tuned_filters,
)

_PAPER_WORKLOADS: Final = ("LMONO", "CBRIGG", "HSILL", "SSUIS")
_DEVICE_SCALE: Final = 0.25
_PROCESSOR_SCALE: Final = 0.05


@click.command(
    "tune",
    cls=WordedCommand,
    context_settings=HELP_OPTIONS,
    params=[
        *INPUT_OPTIONS,
        click.Option(["-n", "--dry-run"], is_flag=True, help="Say what is best, but keep nothing."),
        *MACHINE_OPTIONS,
        MAIN_OPTIONS["verbose"],
        MAIN_OPTIONS["quiet"],
    ],
)
def tune(**params: Any) -> None:
    """Find the best data policies for this machine and kind of work.

    Searches the queries with all layouts of the suffix trees, drops the slower half again and
    again, and keeps the best in the user's configuration, from where --policy auto takes it.
    Without files or --workload it does so for the four workloads of MUMmerGPU's paper.

    If the first file has profile HMMs and the others proteins, it finds from how many proteins on a
    GPU's threads are better for the Viterbi filter than its warps, for --filter-policy auto.
    """
    refuse_unclear_input(params)
    params["workloads"] = study_workloads(params)
    if not params["dry_run"]:
        prepare_tuned_file()
    if is_of_profiles(params):
        _tune_filters(params)
        return
    from mummergpu.studies.tune import tune as find_best

    with open_study(params) as study:
        searcher, progress = study.searcher, study.progress
        scale = params["scale"]
        if scale is None:
            scale = _DEVICE_SCALE if searcher.is_device else _PROCESSOR_SCALE
        trees = study_trees(params)
        for data in study_data(params, params["workloads"] or _PAPER_WORKLOADS, scale, searcher):
            result = find_best(data, trees, params["threads"], searcher, progress, study.notice)
            best = result.policy
            progress.close()
            click.echo(
                f"{data.name}: policy {best.policy}, {result.gain:.1%} less time than the default; "
                f"the next, {result.runner_up}, takes {result.margin:.1%} more; "
                f"certainty {best.certainty:.0%} after {result.runs} runs"
            )
            if not params["dry_run"]:
                add_tuned(best)
        if not params["dry_run"]:
            progress.write_line(f"{PROGRAM}: kept in {tuned_file()}, for --policy auto")


def _tune_filters(params: dict[str, Any]) -> None:
    from mummergpu.studies.profiles.tune import tune as find_best

    with open_profile_study(params) as (machine, progress, notice):
        schemes = []
        for data in profile_data(params, progress):
            found = find_best(data, machine, progress, notice)
            progress.close()
            words = (
                f"warps for any number of proteins; {found.policy} takes {-found.gain:.1%} more"
                if found.scheme is None
                else f"threads ({found.policy}) from {found.scheme.min_sequences:,} proteins on; "
                f"they save {found.gain:.1%} of all"
            )
            click.echo(f"{data.name}, {data.nodes:,} nodes: {words}, after {found.runs} runs")
            schemes += [found.scheme] if found.scheme else []
        if not params["dry_run"]:
            add_schemes(schemes, machine.facts().device)
            progress.write_line(f"{PROGRAM}: kept in {tuned_filters()}, for --filter-policy auto")
