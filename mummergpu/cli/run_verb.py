"""What the commands that search do alike: check, announce, run, report."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from mummergpu.cli.cache_folders import announce_compilation, tell_cache_trouble
from mummergpu.cli.option_rules import Params, refuse_clashing_files, refuse_exclusive
from mummergpu.cli.option_types import PROGRAM
from mummergpu.cli.progress_line import progress_shown
from mummergpu.cli.run_reports import RunReports
from mummergpu.cli.run_words import RunWords, new_stats
from mummergpu.cli.session import Session
from mummergpu.cuda.warm_up import ask_for_context
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.pipeline.context import RunContext

Options = TypeVar("Options")


@frozen
class Verb(Generic[Options]):
    """What one of these commands does.

    Attributes
    ----------
    inputs : sequence of str
        The files that are read.
    outputs : mapping of str to str or None
        The files that are written besides reports, by the options that name them.
    make_options : callable
        Returns the options of the job, from those of the command and the command line.
    load_job : callable
        Returns the job. What is slow to import is imported here, while the driver of a GPU starts.
    mode_of : callable
        Returns what the report calls the run.
    before : callable
        Tells what is known when the run begins.
    backend_of : callable
        Returns the backend that the job opens where ``auto`` is asked for: ``cpu`` if a GPU would
        not be faster.
    compiles : str
        About the longest time that everything that the command needs takes to compile.
    counts : {"matches", "mapping", "profiles"}
        What reports tell of.
    """

    inputs: Sequence[str]
    outputs: Mapping[str, str | None]
    make_options: Callable[[Params, str], Options]
    load_job: Callable[[], Callable[[Options, RunContext], Any]]
    mode_of: Callable[[Options], str]
    before: Callable[[Options, RunWords], None] = lambda options, words: None
    backend_of: Callable[[Options], str] = lambda options: "auto"
    compiles: str = "a minute"


def run_verb(params: Params, verb: Verb[Options]) -> None:
    """Run a command that searches."""
    session = click.get_current_context().find_object(Session)
    assert session is not None
    refuse_exclusive(params)
    reports = RunReports(params)
    refuse_clashing_files(verb.inputs, {**verb.outputs, **reports.paths})
    command = shlex.join([PROGRAM, *session.arguments])
    backend = "cpu" if params.get("cpu") else params["backend"]
    # Where there is a cluster, its processes use the GPUs.
    is_here = params.get("cluster") is None
    if backend == "cuda" and is_here:
        ask_for_context(params["device"])
    options = verb.make_options(params, command)
    # A context takes longer to make and to take apart than a small search.
    if backend == "auto" and is_here and verb.backend_of(options) != "cpu":
        ask_for_context(params["device"])
    job = verb.load_job()
    stats = new_stats(command, verb.mode_of(options))
    if not params["quiet"]:
        announce_compilation(verb.compiles)
    with ExitStack() as stack:
        reports.open(stack)
        hidden = params["quiet"] or params["no_progress"]
        # A line of progress would be among the rows.
        hidden = hidden or (STANDARD_OUTPUT in verb.outputs.values() and sys.stdout.isatty())
        progress = stack.enter_context(progress_shown(hidden, session.verbose))
        words = RunWords(progress, session.verbose, params["quiet"])
        tell_cache_trouble(words.notice)
        verb.before(options, words)
        job(options, words.context(params["threads"], stats))
        for line in stats.summary():
            words.notice(line)
        reports.write(stats)
