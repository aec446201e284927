"""The common steps of commands that search: check, announce, run, report."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, cast

import click

from mummergpu.cli.exit_on_signal import PROGRAM
from mummergpu.cli.option_rules import refuse_clashing_files, refuse_exclusive
from mummergpu.cli.option_types import Params, Session, load
from mummergpu.errors import OptionError
from mummergpu.runtime.output_file import STANDARD_OUTPUT, OutputFile
from mummergpu.version import __version__

if TYPE_CHECKING:
    from mummergpu.pipeline.context import RunContext
    from mummergpu.runtime.progress import Messages
    from mummergpu.runtime.stats import Stats

    Content = Callable[[Stats], bytes]
    """A function that makes the content of a file when the run has ended."""

COMPILATION: Final = "20 s"
"""The approximate maximum time to compile the code of a search for matches."""


class RunMessages:
    """Writes lines about a run between its progress lines; any thread may call all methods."""

    def __init__(self, progress: Messages, verbose: bool, quiet: bool) -> None:
        self._progress = progress
        self._verbose = verbose
        self._quiet = quiet

    def notice(self, text: str) -> None:
        """Write a line if the user asks for more messages."""
        if self._verbose:
            self._progress.write_line(f"{PROGRAM}: {text}")

    def warn(self, text: str) -> None:
        """Write a warning, unless the user asks for errors only."""
        self.say(f"warning: {text}")

    def context(self, threads: int, stats: Stats) -> RunContext:
        """Return the context of a job, which writes these messages."""
        from mummergpu.pipeline.context import RunContext

        return RunContext(threads, stats, self._progress, self.notice, self.warn)

    def say(self, text: str) -> None:
        """Write a line, unless the user asks for errors only."""
        if not self._quiet:
            self._progress.write_line(f"{PROGRAM}: {text}")


@contextmanager
def progress_shown(hidden: bool, verbose: bool, quiet: bool = False) -> Iterator[Messages]:
    """Show the progress of the ``with`` block, on a terminal or as a line from time to time.

    Other lines are always written, unless `quiet`.
    """
    from mummergpu.runtime.progress import Messages, Progress

    stream = sys.stderr
    on_terminal = stream.isatty()
    is_shown = not hidden and (on_terminal or verbose)
    none = Messages(None if quiet else stream)
    with closing(Progress(stream, on_terminal) if is_shown else none) as progress:
        yield progress


def new_stats(command: str, mode: str) -> Stats:
    """Return the statistics of a new run."""
    from mummergpu.runtime.stats import Stats

    stats = Stats()
    stats.set(
        version=__version__,
        command=command,
        date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        host=os.uname().nodename,
        mode=mode,
    )
    return stats


@cache
def announce_compilation(time: str = COMPILATION) -> None:
    """Write a line when this process begins to compile, and its progress later."""
    from mummergpu.runtime.jit import on_first_compilation

    def announce() -> None:
        _say(f"compiling for the first time on this machine (up to {time})")

    def go_on(functions: int, seconds: float) -> None:
        _say(f"compiling: {functions:,} functions in {seconds:.0f} s so far")

    on_first_compilation(announce, go_on=go_on)


def _say(text: str) -> None:
    # On a terminal, the line replaces the progress line, which is drawn again below it.
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    click.echo(f"{start}{PROGRAM}: {text}", err=True)


def report_cache_trouble(notice: Callable[[str], None]) -> None:
    """Report problems of the folders of compiled code."""
    from mummergpu.runtime.compiled.store import on_cache_trouble

    on_cache_trouble(notice)


class RunReports:
    """The report files of a run: opened before it, and written after it."""

    def __init__(self, params: Params) -> None:
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
    """A run of a command that searches; the constructor checks its files.

    It also starts a device that the user names. Slow imports, such as options and jobs, come after
    that. `outputs` are the output files besides reports, by the options that name them.
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
        # Progress lines would be mixed with the rows.
        self._has_rows_on_terminal = STANDARD_OUTPUT in outputs.values() and sys.stdout.isatty()
        self.command = shlex.join([PROGRAM, *session.arguments])
        # On a cluster, its processes use the GPUs.
        is_without = params.get("cpu") or params.get("cluster") is not None
        self._backend = "cpu" if is_without else params["backend"]
        if self._backend == "cuda":
            self._ask_for_context()

    def wake_device(self, choose: Callable[[], str]) -> None:
        """Start a device for ``auto``, unless the chosen backend is ``cpu``."""
        # To make and destroy a context takes longer than a small search.
        if self._backend == "auto" and choose() != "cpu":
            self._ask_for_context()

    def _ask_for_context(self) -> None:
        from mummergpu.cuda.driver import ask_for_context

        ask_for_context(self._params["device"])

    def job(self, here: str, on_cluster: str) -> Callable[..., Any]:
        """Return the job of the command (`option_types.load`), for the cluster if there is one."""
        if self._params["cluster"] is None:
            return cast("Callable[..., Any]", load(here))
        from mummergpu.cluster.options import ClusterOptions

        cluster = ClusterOptions.shared(self._params["cluster"], self._params["threads"])
        return partial(load(on_cluster), cluster=cluster)

    @contextmanager
    def reported(
        self, mode: str, compiles: str = "a minute"
    ) -> Iterator[tuple[RunContext, RunMessages]]:
        """Open the reports, show progress and compiling; write the reports at the end.

        `mode` names the run in reports; `compiles` is the approximate maximum time to compile the
        code of the command.
        """
        params, session = self._params, self._session
        stats = new_stats(self.command, mode)
        stats.is_reported = bool(self._reports.paths)
        if not params["quiet"]:
            announce_compilation(compiles)
        with ExitStack() as stack:
            self._reports.open(stack)
            hidden = params["quiet"] or params["no_progress"] or self._has_rows_on_terminal
            progress = stack.enter_context(progress_shown(hidden, session.verbose))
            messages = RunMessages(progress, session.verbose, params["quiet"])
            report_cache_trouble(messages.notice)
            yield messages.context(params["threads"], stats), messages
            for line in stats.summary():
                messages.notice(line)
            self._reports.write(stats)
