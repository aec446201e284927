"""What the commands ``map`` and ``align`` do alike: check, announce, run, report."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from mummergpu.cli.cache_folders import announce_compilation, tell_cache_trouble
from mummergpu.cli.option_rules import Given, refuse_clashing_files
from mummergpu.cli.option_types import PROGRAM
from mummergpu.cli.progress_line import progress_shown
from mummergpu.cli.run_reports import RunReports
from mummergpu.cli.run_words import RunWords, new_stats
from mummergpu.cli.session import Session
from mummergpu.cuda.warm_up import ask_for_contexts
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.runtime.progress import NullProgress
    from mummergpu.runtime.stats import Stats

    Words = Callable[[str], None]

Options = TypeVar("Options")

_COMPILATION: Final = "a minute"


def run_alignment(
    given: Given,
    inputs: Sequence[str],
    outputs: Mapping[str, str | None],
    make_options: Callable[[Given, str], Options],
    load_job: Callable[[], Callable[[Options, Stats, NullProgress, Words, Words], Any]],
) -> None:
    """Run a command that writes alignments.

    Parameters
    ----------
    given : mapping
        The options by their parameter names.
    inputs : sequence of str
        The files that are read.
    outputs : mapping of str to str or None
        The files that are written besides reports, by the options that name them.
    make_options : callable
        Returns the options of the job, from those of the command and the command line.
    load_job : callable
        Returns the job. What is slow to import is imported here, while a GPU's driver starts.

    Raises
    ------
    click.UsageError
        If options exclude each other.
    MummergpuError
        If the input, the options or the machine are at fault.
    """
    context = click.get_current_context()
    session = context.find_object(Session)
    assert session is not None
    mode = context.command.name
    assert mode is not None
    if given["verbose"] and given["quiet"]:
        raise click.UsageError("-v and -q exclude each other")
    if given["cpu"] and given["backend"] == "cuda":
        raise click.UsageError("-C and --backend cuda exclude each other")
    reports = RunReports(given, of_mapping=mode == "map")
    refuse_clashing_files(inputs, {**outputs, **reports.paths})
    command = shlex.join([PROGRAM, *session.arguments])
    options = make_options(given, command)
    if not given["cpu"] and given["backend"] != "cpu":
        ask_for_contexts(given["device"])
    job = load_job()
    stats = new_stats(command, mode)
    if not given["quiet"]:
        announce_compilation(_COMPILATION)
    with ExitStack() as stack:
        reports.open(stack)
        hidden = given["quiet"] or given["no_progress"]
        hidden = hidden or (given["output"] == STANDARD_OUTPUT and sys.stdout.isatty())
        progress = stack.enter_context(progress_shown(hidden, session.verbose))
        words = RunWords(progress, session.verbose, given["quiet"])
        tell_cache_trouble(words.notice)
        job(options, stats, progress, words.notice, words.warn)
        for line in stats.summary():
            words.notice(line)
        reports.write(stats)
