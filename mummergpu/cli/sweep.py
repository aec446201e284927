"""The commands ``sweep`` and ``report``: measure combinations of data policies, and show them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mummergpu.cli.exit_on_signal import PROGRAM
from mummergpu.cli.option_rules import (
    device_options,
    min_length_of,
    refuse_exclusive,
    strands_of,
    tree_options,
)
from mummergpu.cli.option_types import (
    HELP_OPTIONS,
    MAIN_OPTIONS,
    WordedCommand,
    complete_folders,
    files,
    flag,
    folder_option,
    is_given,
    option,
    written,
)
from mummergpu.cli.run_verb import (
    RunMessages,
    announce_compilation,
    progress_shown,
    report_cache_trouble,
)
from mummergpu.cli.workload import complete_workload
from mummergpu.errors import OptionError, OutputError
from mummergpu.runtime.words import pluralize

if TYPE_CHECKING:
    from mummergpu.index.options import TreeOptions
    from mummergpu.runtime.progress import Messages
    from mummergpu.studies.data_set import DataSet
    from mummergpu.studies.layout_sweep import SweepOptions
    from mummergpu.studies.profiles.bench import ProfileMachine
    from mummergpu.studies.profiles.data import ProfileData
    from mummergpu.studies.profiles.policies import FilterPolicy
    from mummergpu.studies.searcher import StudySearcher

_SHARED: Final = (
    *("backend", "cpu", "threads", "page_size", "address_bits", "device", "gpu_memory"),
    *("device_library", "verbose", "quiet"),
)

_TREES_ONLY: Final = (
    *("min_length", "both", "reverse", "page_size", "address_bits", "profile", "gpu_memory"),
)


def _refuse_unclear_input(params: dict[str, Any]) -> None:
    """Refuse options of a study that exclude each other, or that name nothing to search."""
    if params["workloads"] and params["reference"]:
        raise click.UsageError("files and --workload exclude each other")
    if params["reference"] and not params["query"]:
        raise click.UsageError("Missing argument 'QUERY...'")
    if params["reference"] and params["scale"] is not None:
        raise click.UsageError("--scale goes with --workload")
    refuse_exclusive(params)


def _is_of_profiles(params: dict[str, Any]) -> bool:
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
        if params.get(name) and is_given(context, name):
            raise click.UsageError(
                f"{written(name, context)} is for studies of trees, not of profiles"
            )
    return True


@contextmanager
def _open_messages(params: dict[str, Any]) -> Iterator[tuple[Messages, Callable[[str], None]]]:
    """Open the progress of a study, and a writer of lines for -v."""
    with progress_shown(params["quiet"], params["verbose"], params["quiet"]) as progress:
        messages = RunMessages(progress, params["verbose"], params["quiet"])
        if not params["quiet"]:
            announce_compilation()
        report_cache_trouble(messages.notice)
        yield progress, messages.notice


@contextmanager
def _open_profile_study(params: dict[str, Any]) -> Iterator[tuple[ProfileMachine, Messages]]:
    """Open the machine and the progress of a study of profile filters for a ``with`` block."""
    from mummergpu.studies.profiles.bench import ProfileMachine

    with (
        _open_messages(params) as (progress, notice),
        ProfileMachine(device_options(params), notice) as machine,
    ):
        yield machine, progress


def _profile_data(params: dict[str, Any], progress: Messages) -> list[ProfileData]:
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


def _study_workloads(params: dict[str, Any]) -> list[tuple[str, Path | None]]:
    """Return the names of the workloads of a study, as declared, with the FASTA given for each."""
    if not params["workloads"]:
        return []
    from mummergpu.workload.declaration import load_declaration
    from mummergpu.workload.generation import require_reference, scaled_count

    chosen: dict[str, Path | None] = {}
    for word in params["workloads"]:
        name, _, file = word.partition("=")
        reference = Path(file) if file else None
        try:
            declared = load_declaration(name)
            require_reference(declared, reference)
        except OptionError as error:
            hint = f" (--workload {name}=FASTA)" if error.option == "--reference" else ""
            raise OptionError("--workload", error.message + hint) from error
        scaled_count(declared.queries, _scale_of(params))
        if declared.name in chosen:
            raise click.UsageError("a workload is named twice")
        chosen[declared.name] = reference
    return list(chosen.items())


@contextmanager
def _open_study(params: dict[str, Any]) -> Iterator[tuple[StudySearcher, Messages]]:
    """Open the searcher and the progress of a study for a ``with`` block."""
    from mummergpu.studies.searcher import open_searcher

    with _open_messages(params) as (progress, notice):
        with closing(open_searcher(device_options(params), notice)) as searcher:
            yield searcher, progress


def _study_trees(params: dict[str, Any]) -> TreeOptions:
    """Return the options of the trees of a study."""
    from mummergpu.index.tree_index import check_page_size

    trees = tree_options(params)
    check_page_size(trees)
    return trees


@click.command(
    "sweep",
    cls=WordedCommand,
    context_settings=HELP_OPTIONS,
    params=[
        files("reference", required=False),
        files("query", several=True, required=False),
        option(
            "--workload workloads",
            "Measure on a generated workload instead of files, with reads of FASTA if it is given "
            "(HSILL needs it). May be repeated.",
            "NAME[=FASTA]",
            multiple=True,
            shell_complete=complete_workload,
        ),
        option(
            "--scale",
            "Scale the number of reads of each workload: 0.1 is a tenth.  [default: 1]",
            "FACTOR",
            type=float,
        ),
        option(
            "-l --min-length min_length",
            "Minimum length of a match.  [default: the workload's own, or 20]",
            type=click.IntRange(min=1),
        ),
        *(MAIN_OPTIONS[name] for name in ("both", "reverse", "any_letters")),
        folder_option(
            "-o --output folder",
            "Folder for the records, which is made if need be. Several workloads get a subfolder "
            "each.",
            required=True,
        ),
        option(
            "--policies",
            "Combinations to measure: 'all' that differ on the backend (128 on a GPU, 16 on the "
            "CPU), or codes and patterns separated by commas, such as 'Tn,m' or 'T*'.",
            "CODES",
            default="all",
        ),
        option("--runs", "Runs of each combination.", type=click.IntRange(min=1), default=5),
        option(
            "--repeat-control",
            "Measure the combination 'none' N times more, between the others, to see how noisy the "
            "machine is.",
            type=click.IntRange(min=0),
            default=10,
        ),
        option("--seed", "Seed of the random order of the runs.", type=int, default=1),
        flag("--profile", "Run each combination once more, and count the nodes that a GPU visits."),
        *(MAIN_OPTIONS[name] for name in _SHARED),
    ],
)
def sweep(**params: Any) -> None:
    """Measure every combination of the seven data policies, or the policies of profile filters.

    Searches the same queries with every layout of the suffix trees, in a random order, and writes
    the cost of each run to DIR/runs.jsonl. All runs must find the same matches. Repeat the command
    to continue an interrupted sweep. The end names the fastest combination; 'mummergpu report DIR'
    shows the others.

    If the first file has profile HMMs and the others proteins, the filters of profiles are measured
    instead, in a folder for each profile if there are several.
    """
    _refuse_unclear_input(params)
    params["workloads"] = _study_workloads(params)
    if not params["workloads"] and not params["reference"]:
        raise click.UsageError("Missing argument 'REFERENCE QUERY...', or option '--workload'")
    if _is_of_profiles(params):
        _sweep_profiles(params)
        return
    from mummergpu.studies.layout_sweep import sweep as measure

    with _open_study(params) as (searcher, progress):
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
    from mummergpu.studies.records import median_seconds, read_study

    seconds = median_seconds(read_study(folder).runs)
    best = min(seconds, key=lambda code: seconds[code])
    progress.write_line(
        f"{PROGRAM}: {name}: {best} is the fastest of {len(seconds)}: "
        f"choose it with --search tree --policy {best}"
    )


def _report_filters(progress: Messages, name: str, folder: Path) -> None:
    from mummergpu.studies.profiles.policies import FILTER_NAMES, filter_of, policy_of
    from mummergpu.studies.records import median_seconds, read_study

    seconds = median_seconds(read_study(folder).runs)
    for kind, filter_name in FILTER_NAMES.items():
        own = [code for code in seconds if filter_of(policy_of(code)) == kind]
        if own:
            best = min(own, key=lambda code: seconds[code])
            progress.write_line(
                f"{PROGRAM}: {name}: {best} is the fastest of {len(own)} for {filter_name}"
                f"{_how_to_choose(policy_of(best))}"
            )


def _how_to_choose(policy: FilterPolicy) -> str:
    """Return how to choose the policy of a filter in a search; only Viterbi's can be chosen."""
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

    with _open_profile_study(params) as (machine, progress):
        options = ProfileSweepOptions(
            tuple(choose_policies(params["policies"], machine.backend)),
            params["runs"],
            params["repeat_control"],
            params["seed"],
        )
        folder = Path(params["folder"])
        every = _profile_data(params, progress)
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
        trees=_study_trees(params),
    )


def _data_sets(params: dict[str, Any], searcher: StudySearcher) -> Iterator[tuple[DataSet, Path]]:
    """Yield each data set, the given files or workloads, with the folder for its records."""
    from mummergpu.input.blocks.queries import QueryRules
    from mummergpu.matching.options import STRANDS
    from mummergpu.studies.data_set import make_data_set, read_data_set

    folder, strands = Path(params["folder"]), STRANDS[strands_of(params)]
    if params["reference"]:
        rules = QueryRules(any_letters=params["any_letters"], no_empty=True)
        yield (
            read_data_set(
                os.path.basename(params["reference"]),
                *(params["reference"], params["query"], searcher.block_size),
                *(min_length_of(params), strands, rules),
            ),
            folder,
        )
        return
    scale, length = _scale_of(params), params["min_length"]
    for name, reference in params["workloads"]:
        data = make_data_set(name, scale, None, searcher.block_size, length, strands, reference)
        yield data, folder / data.name if len(params["workloads"]) > 1 else folder


def _scale_of(params: dict[str, Any]) -> float:
    scale: float | None = params["scale"]
    return 1.0 if scale is None else scale


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
    help="Folder for the report, which is made if need be.  [default: DIR]",
)
@click.option("-q", "--quiet", is_flag=True, help="Write only errors to standard error.")
def report(sources: tuple[str, ...], folder: str | None, quiet: bool) -> None:
    """Show the results of sweeps on one page.

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
