"""What the commands that search do alike: check, announce, run, report."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

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
from mummergpu.errors import OptionError
from mummergpu.runtime.output_file import STANDARD_OUTPUT, OutputFile

if TYPE_CHECKING:
    from mummergpu.pipeline.context import RunContext
    from mummergpu.runtime.stats import Stats

    Content = Callable[[Stats], bytes]
    """A function that makes the content of a file when the run has ended."""


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


class CommandRun:
    """A run of a command that searches: its files are checked when this is made.

    A device that the user names wakes up then. What is slow to import comes after that, as options
    and jobs do.

    Attributes
    ----------
    command : str
        The command line.

    Parameters
    ----------
    params : dict
        The options of the command, by their parameter names.
    inputs : sequence of str
        The files that are read.
    outputs : mapping of str to str or None
        The files that are written besides reports, by the options that name them.
    """

    def __init__(
        self, params: Params, inputs: Sequence[str], outputs: Mapping[str, str | None]
    ) -> None:
        session = click.get_current_context().find_object(Session)
        assert session is not None
        refuse_exclusive(params)
        self._params, self._session = params, session
        self._reports = RunReports(params)
        refuse_clashing_files(inputs, {**outputs, **self._reports.paths})
        # A line of progress would be among the rows.
        self._has_rows_on_terminal = STANDARD_OUTPUT in outputs.values() and sys.stdout.isatty()
        self.command = shlex.join([PROGRAM, *session.arguments])
        # Where there is a cluster, its processes use the GPUs.
        is_without = params.get("cpu") or params.get("cluster") is not None
        self._backend = "cpu" if is_without else params["backend"]
        if self._backend == "cuda":
            self._ask_for_context()

    def wake_device(self, choose: Callable[[], str]) -> None:
        """Wake a device up for ``auto``, unless the backend that is chosen is ``cpu``."""
        # A context takes longer to make and to take apart than a small search.
        if self._backend == "auto" and choose() != "cpu":
            self._ask_for_context()

    def _ask_for_context(self) -> None:
        from mummergpu.cuda.driver import ask_for_context

        ask_for_context(self._params["device"])

    @contextmanager
    def reported(
        self, mode: str, compiles: str = "a minute"
    ) -> Iterator[tuple[RunContext, RunWords]]:
        """Open the reports, tell of progress and of compiling; write the reports at the end.

        `mode` is what reports call the run, `compiles` about the longest time that everything that
        the command needs takes to compile.
        """
        params, session = self._params, self._session
        threads, quiet = params["threads"], params["quiet"]
        stats = new_stats(self.command, mode)
        if not quiet:
            announce_compilation(compiles)
        with ExitStack() as stack:
            self._reports.open(stack)
            hidden = quiet or params["no_progress"] or self._has_rows_on_terminal
            progress = stack.enter_context(progress_shown(hidden, session.verbose))
            words = RunWords(progress, session.verbose, quiet)
            tell_cache_trouble(words.notice)
            yield words.context(threads, stats), words
            for line in stats.summary():
                words.notice(line)
            self._reports.write(stats)


def on_cluster(job: Callable[..., Any], params: Params) -> Callable[..., Any]:
    """Return a job of `mummergpu.cluster`, with the cluster that is asked for."""
    from mummergpu.cluster.options import ClusterOptions

    return partial(job, cluster=ClusterOptions.shared(params["cluster"], params["threads"]))
