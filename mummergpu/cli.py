"""The command line: the one place that prints for people and chooses exit codes.

Nothing heavy is imported before there is work to do, so that ``--version`` and ``--help``
answer at once.
"""

from __future__ import annotations

import gc
import os
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from mummergpu import __version__
from mummergpu.caches import (
    announce_compilation,
    find_place_for_compiled_code,
    folder_of_kernels,
)
from mummergpu.combinations import (
    page_size_of,
    policy_of,
    refuse_clashing_files,
    refuse_combinations,
    search_of,
    take_from_index,
)
from mummergpu.commands import HELP_OPTIONS, doctor, workload
from mummergpu.early_context import ask_for_context
from mummergpu.errors import MummergpuError, OutputError
from mummergpu.imports import leave_out_what_is_not_needed
from mummergpu.index_command import index
from mummergpu.options import (
    MATCH_EPILOG,
    MATCH_HELP,
    PROGRAM,
    SECTIONS,
    MainGroup,
    MatchCommand,
)
from mummergpu.output.files import OutputFile, remove_unfinished
from mummergpu.policy import Policy

if TYPE_CHECKING:
    from mummergpu.progress import NullProgress
    from mummergpu.settings import MatchOptions

EXIT_USAGE: Final = 2
QUIET_COLLECTOR: Final = 200_000
EXIT_BROKEN_PIPE: Final = 128 + signal.SIGPIPE
EXIT_INTERRUPTED: Final = 128 + signal.SIGINT

_ENDINGS: Final = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "terminal closed",
}


@dataclass
class Session:
    """What the end of the process needs to know about the command line."""

    arguments: list[str]
    verbose: bool = False


def _run_match(**given: Any) -> None:
    session = click.get_current_context().find_object(Session)
    assert session is not None
    session.verbose = given["verbose"]
    refuse_combinations(given)
    take_from_index(given)
    search = search_of(given)
    policy = policy_of(given)
    refuse_clashing_files(given)

    if not given["cpu"] and given["backend"] != "cpu":
        ask_for_context(given["device"])
    find_place_for_compiled_code(os.environ)
    from mummergpu import pipeline
    from mummergpu.stats import Stats

    options = _match_options(given, search, policy)
    stats = Stats()
    stats.set(version=__version__, command=shlex.join([PROGRAM, *session.arguments]))
    if not given["quiet"]:
        announce_compilation()
    with ExitStack() as stack:
        report = stack.enter_context(OutputFile(given["stats"])) if given["stats"] else None
        progress = stack.enter_context(_progress(given["quiet"] or given["no_progress"]))

        def notice(text: str) -> None:
            if session.verbose:
                progress.write_line(f"{PROGRAM}: {text}")

        pipeline.run(options, stats, progress, notice)
        for line in stats.summary():
            notice(line)
        if report:
            report.write(stats.as_json())


def _match_options(given: dict[str, Any], search: str, policy: Policy) -> MatchOptions:
    from mummergpu.sequence import Strand
    from mummergpu.settings import MatchOptions, Uniqueness

    strands: tuple[Strand, ...] = (Strand.FORWARD,)
    if given["reverse"]:
        strands = (Strand.REVERSE,)
    elif given["both"]:
        strands = (Strand.FORWARD, Strand.REVERSE)
    uniqueness = Uniqueness.ALL
    if given["mumreference"]:
        uniqueness = Uniqueness.IN_REFERENCE
    elif given["mum"]:
        uniqueness = Uniqueness.IN_BOTH
    kernel_folder = folder_of_kernels(os.environ)
    return MatchOptions(
        reference_path=given["reference"],
        query_paths=given["query"],
        output_path=given["output"],
        minimum_length=given["min_length"],
        strands=strands,
        uniqueness=uniqueness,
        forward_coordinates=given["forward_coordinates"],
        four_columns=given["four_columns"],
        show_query_lengths=given["show_lengths"],
        show_sequences=given["show_sequences"],
        threads=given["threads"],
        backend="cpu" if given["cpu"] else given["backend"],
        search=search,
        page_size=page_size_of(given, search),
        address_bits=int(given["address_bits"]) if given["address_bits"] else None,
        builder=given["builder"] or "ukkonen",
        policy=policy,
        block_size=given["block_size"],
        memory=given["max_memory"],
        device=given["device"],
        gpu_memory=given["gpu_memory"],
        profile=given["profile"],
        kernel_folder=None if kernel_folder is None else str(kernel_folder),
        dot_path=given["dot"],
        dump_tree_path=given["dump_tree"],
    )


@contextmanager
def _progress(hidden: bool) -> Iterator[NullProgress]:
    from mummergpu.progress import NullProgress, Progress

    stream = sys.stderr
    progress = NullProgress(stream) if hidden or not stream.isatty() else Progress(stream)
    try:
        yield progress
    finally:
        progress.close()


@click.group(cls=MainGroup, default="match", add_help_option=False)
def commands() -> None:
    """Find maximal exact matches."""


commands.add_command(
    MatchCommand(
        "match",
        callback=_run_match,
        params=[
            click.Argument(["reference"]),
            click.Argument(["query"], nargs=-1, required=True),
            *(option for options in SECTIONS.values() for option in options),
        ],
        help=MATCH_HELP,
        epilog=MATCH_EPILOG,
        options_metavar="[OPTIONS]",
        context_settings=HELP_OPTIONS,
    )
)


commands.add_command(workload)
commands.add_command(doctor)
commands.add_command(index)


class SignalWatch:
    """Ends the process within a moment of Ctrl-C, SIGTERM or SIGHUP.

    Python's own handlers run only between two steps of the main thread, and the main
    thread may be inside compiled code for minutes; a thread that waits on a pipe is told
    at once. Signals that the parent process ignores stay ignored.
    """

    def __enter__(self) -> None:
        self._previous: dict[int, Any] = {}
        if threading.current_thread() is not threading.main_thread():
            return
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._previous_descriptor = signal.set_wakeup_fd(self._writing)
        self._previous = {
            number: signal.signal(number, _leave_to_the_watch)
            for number in _ENDINGS
            if signal.getsignal(number) is not signal.SIG_IGN
        }
        self._thread = threading.Thread(target=self._watch, name="signals", daemon=True)
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        if not self._previous:
            return
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._previous_descriptor)
        os.close(self._writing)
        self._thread.join()
        os.close(self._reading)

    def _watch(self) -> None:
        while data := os.read(self._reading, 1):
            if data[0] in self._previous:
                _end_now(signal.Signals(data[0]))


def _leave_to_the_watch(_number: int, _frame: FrameType | None) -> None:
    """Do nothing, so that the main thread goes on until the process ends."""


def _end_now(number: signal.Signals) -> None:
    remove_unfinished()
    start = "\r\x1b[K" if os.isatty(2) else ""
    with suppress(OSError):
        os.write(2, f"{start}{PROGRAM}: {_ENDINGS[number]}\n".encode())
    os._exit(128 + number)


def _occupy_closed_descriptors() -> None:
    """Let no file that is opened later become standard input, output or error.

    Where the parent process has closed one of them, the lowest number goes to the next
    file that is opened: matches could end in an input.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # What is neither to be read nor written here fails when it is used.
            access = os.O_WRONLY if descriptor in (0, 2) else os.O_RDONLY
            os.open(os.devnull, access)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)


def _invoke(session: Session) -> int:
    """Run a command and return the exit code, if no exception says otherwise."""
    if not session.arguments:
        click.echo(f"Usage: {PROGRAM} [OPTIONS] REFERENCE QUERY...", err=True)
        click.echo(f"Try '{PROGRAM} --help' for the options.", err=True)
        return EXIT_USAGE
    try:
        # Not Command.main, which has its own mind about broken pipes and exit codes.
        with commands.make_context(PROGRAM, list(session.arguments), obj=session) as context:
            commands.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    finally:
        _flush_standard_output()
    return 0


def _flush_standard_output() -> None:
    try:
        sys.stdout.flush()
    except OSError as error:
        # Else the interpreter would try once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            raise
        raise OutputError(f"cannot be written: {error.strerror}", "standard output") from error


def _fail(message: str, exit_code: int, session: Session) -> int:
    """Write an error as one line, whatever is in it, and return the exit code."""
    line = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in message
    )
    with suppress(OSError):
        if session.verbose and exit_code != EXIT_USAGE:
            traceback.print_exc()
        click.echo(f"{PROGRAM}: error: {line}", err=True)
    return exit_code


def main(arguments: Iterable[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : iterable of str, optional
        What follows the name of the program; by default this process's own.

    Returns
    -------
    int
        The exit code. A signal ends the process at once instead.
    """
    # Start-up makes many objects and little garbage; searching them takes a tenth of a second.
    gc.set_threshold(QUIET_COLLECTOR)
    _occupy_closed_descriptors()
    session = Session(list(sys.argv[1:] if arguments is None else arguments))
    try:
        with SignalWatch():
            return _invoke(session)
    except click.ClickException as error:
        message = error.format_message().rstrip(".")
        return _fail(f"{message} (see {PROGRAM} --help)", EXIT_USAGE, session)
    except MummergpuError as error:
        return _fail(str(error), error.exit_code, session)
    except BrokenPipeError:
        # The reader has what it wanted.
        return EXIT_BROKEN_PIPE
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        return _fail(f"{place}{error.strerror or error}", 1, session)
    except KeyboardInterrupt:
        return _fail(_ENDINGS[signal.SIGINT], EXIT_INTERRUPTED, session)
    except MemoryError:
        text = "out of memory; a smaller --page-size or fewer --threads need less"
        return _fail(text, 1, session)
    except Exception as error:
        return _fail(f"internal: {type(error).__name__}: {error}", 1, session)


def run() -> NoReturn:
    """Run the command line, and end the process at once with its exit code.

    All files are closed by then. Taking the interpreter apart, module by module and a GPU's
    context with it, would take longer than a small search.
    """
    leave_out_what_is_not_needed(sys.modules, sys.meta_path)
    exit_code = main()
    for stream in (sys.stdout, sys.stderr):
        # What could not be written has been reported.
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(exit_code)
