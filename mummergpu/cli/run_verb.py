"""What the commands that search do alike: check, announce, run, report."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from mummergpu.cli.cache_folders import announce_compilation, tell_cache_trouble
from mummergpu.cli.option_rules import Params, refuse_clashing_files, refuse_exclusive
from mummergpu.cli.option_types import PROGRAM
from mummergpu.cli.progress_line import progress_shown
from mummergpu.cli.run_reports import RunReports
from mummergpu.cli.run_words import RunWords, new_stats
from mummergpu.cli.session import Session
from mummergpu.cuda.warm_up import ask_for_context
from mummergpu.runtime.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from mummergpu.pipeline.context import RunContext


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
            ask_for_context(params["device"])

    def wake_device(self, choose: Callable[[], str]) -> None:
        """Wake a device up for ``auto``, unless the backend that is chosen is ``cpu``."""
        # A context takes longer to make and to take apart than a small search.
        if self._backend == "auto" and choose() != "cpu":
            ask_for_context(self._params["device"])

    @contextmanager
    def reported(
        self, mode: str, compiles: str = "a minute"
    ) -> Iterator[tuple[RunContext, RunWords]]:
        """Open the reports, tell of progress and of compiling; write the reports at the end.

        `mode` is what reports call the run, `compiles` about the longest time that everything that
        the command needs takes to compile.
        """
        # This imports numpy, as the job does.
        from mummergpu.cli.compiled_list import compiling_ahead

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
            stack.enter_context(compiling_ahead(session.arguments, threads, quiet, time=compiles))
            tell_cache_trouble(words.notice)
            yield words.context(threads, stats), words
            for line in stats.summary():
                words.notice(line)
            self._reports.write(stats)
