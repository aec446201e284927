"""The command ``tune``: find the best data policies for this machine, and keep them."""

from __future__ import annotations

from typing import Any, Final

import click

from mummergpu.cli.option_types import HELP_OPTIONS, MAIN_OPTIONS, PROGRAM
from mummergpu.cli.option_words import WordedCommand
from mummergpu.cli.study_options import (
    INPUT_OPTIONS,
    MACHINE_OPTIONS,
    open_study,
    refuse_unclear_input,
    study_data,
    study_trees,
    study_workloads,
)
from mummergpu.cli.tuned_policies import add_tuned, prepare_tuned_file, tuned_file

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
    """
    refuse_unclear_input(params)
    params["workloads"] = study_workloads(params)
    if not params["dry_run"]:
        prepare_tuned_file()
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
