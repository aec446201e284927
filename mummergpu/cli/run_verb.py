"""What the commands that search do alike: check, announce, run, report."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from mummergpu.cli.messages import (
    RunWords,
    announce_compilation,
    new_stats,
    progress_shown,
    tell_cache_trouble,
)
from mummergpu.cli.option_rules import Params, refuse_clashing_files, refuse_exclusive
from mummergpu.cli.option_types import PROGRAM, Session
from mummergpu.cuda.warm_up import ask_for_context
from mummergpu.errors import OptionError
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.output_file import STANDARD_OUTPUT, OutputFile

if TYPE_CHECKING:
    from mummergpu.pipeline.context import RunContext
    from mummergpu.runtime.stats import Stats

    Content = Callable[[Stats], bytes]
    """A function that makes the content of a file when the run has ended."""

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


class RunReports:
    """The files of the reports of a run: named first, opened before it, and written after it."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._contents: list[tuple[str, str, Content]] = []
        if (path := params["stats"]) is not None:
            self._contents.append(("--stats", path, lambda stats: stats.as_json()))
        if (path := params.get("multiqc")) is not None:
            from mummergpu.output import multiqc

            sample = multiqc.sample_of(path)
            if not path.endswith(multiqc.SUFFIX) or not sample:
                message = (
                    f"MultiQC finds a file if it is named SAMPLE{multiqc.SUFFIX}, and not '{path}'"
                )
                raise OptionError("--multiqc", message)
            content = partial(multiqc.general_statistics, sample)
            self._contents.append(("--multiqc", path, content))
        self._files: list[tuple[OutputFile, Content]] = []

    @property
    def paths(self) -> dict[str, str | None]:
        """The files, by the options that name them."""
        return {option: path for option, path, _ in self._contents}

    def open(self, stack: ExitStack) -> None:
        """Open the files; they appear when the stack is closed."""
        for _, path, content in self._contents:
            self._files.append((stack.enter_context(OutputFile(path)), content))

    def write(self, stats: Stats) -> None:
        """Write the files."""
        for file, content in self._files:
            file.write(content(stats))


def on_cluster(job: Callable[..., Any], params: Params) -> Callable[..., Any]:
    """Return a job of `mummergpu.cluster`, with the cluster that is asked for."""
    from mummergpu.cluster.options import ClusterOptions

    return partial(job, cluster=ClusterOptions.shared(params["cluster"], params["threads"]))


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
    # This imports numpy, as the job does.
    from mummergpu.cli.compiled_list import compiling_ahead

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
        stack.enter_context(
            compiling_ahead(
                session.arguments, params["threads"], params["quiet"], time=verb.compiles
            )
        )
        tell_cache_trouble(words.notice)
        verb.before(options, words)
        job(options, words.context(params["threads"], stats))
        for line in stats.summary():
            words.notice(line)
        reports.write(stats)
