"""The command line: it runs a command, prints errors and chooses the exit code.

Slow modules are imported only when a command needs them, so that ``--version`` and ``--help``
answer at once.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NoReturn

import click

from mummergpu.cli.exit_on_signal import COMPLETION_VARIABLE, ENDINGS, PROGRAM, SignalWatch
from mummergpu.cli.main_group import MAIN_VERB, MainGroup, Verbs
from mummergpu.cli.option_types import HELP_OPTIONS, Session
from mummergpu.errors import MummergpuError, OutputError

LINKS: Final = {"nucmer": "nucmer-shim", "hmmsearch": "hmmsearch", "hmmscan": "hmmscan"}
"""The commands that links to this program run, by the names of the links."""

EXIT_USAGE: Final = 2
QUIET_COLLECTOR: Final = 200_000
MATPLOTLIB_FOLDER: Final = "MPLCONFIGDIR"
_USERS_FOLDER: Final = os.environ.get(MATPLOTLIB_FOLDER)
NO_THREAD: Final = "can't start new thread"
"""The text of Python's error, which has no class of its own."""

EXIT_BROKEN_PIPE: Final = 128 + signal.SIGPIPE
EXIT_INTERRUPTED: Final = 128 + signal.SIGINT


VERBS: Final = {
    MAIN_VERB: "match:match_command",
    "map": "map:map_command",
    "align": "align:align_command",
    "hmmsearch": "hmmsearch:hmmsearch_command",
    "hmmscan": "hmmsearch:hmmscan_command",
    "hmm": "hmm:hmm_command",
    "index": "index:index",
    "workload": "workload:workload",
    "plot": "plot:plot",
    "sweep": "sweep:sweep",
    "report": "sweep:report",
    "doctor": "doctor:doctor",
    "warmup": "warmup:warmup",
    "nucmer-shim": "nucmer_shim:nucmer_shim",
}
"""The module and the name of each command, in the order of the help; a run imports only its own."""


@click.group(cls=MainGroup, default=MAIN_VERB, add_help_option=False, commands=Verbs(VERBS))
def commands() -> None:
    """Find maximal exact matches."""


@click.command("completion", context_settings=HELP_OPTIONS)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a completion script for a shell.

    For bash, add this line to ~/.bashrc (for zsh the same with zsh, to ~/.zshrc):

        source <(mummergpu completion bash)

    For fish: mummergpu completion fish > ~/.config/fish/completions/mummergpu.fish
    """
    context.exit(_complete(f"{shell}_source"))


commands.add_command(completion)


def _complete(instruction: str) -> int:
    """Print a completion script, or the completions of the typed words."""
    from click.shell_completion import shell_complete

    return shell_complete(commands, {}, PROGRAM, COMPLETION_VARIABLE, instruction)


def _occupy_closed_descriptors() -> None:
    """Open the null device as standard input, output or error if the parent closed it.

    Otherwise the next opened file would get its descriptor, and matches could be written into an
    input file.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # Reading this standard input, or writing this output or error, still fails.
            access = os.O_WRONLY if descriptor in (0, 2) else os.O_RDONLY
            os.open(os.devnull, access)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)


def _own_session() -> Session:
    """Return the arguments of this process, after the command of its link if it is one."""
    name = os.path.basename(sys.argv[0])
    words = [LINKS[name], *sys.argv[1:]] if name in LINKS else sys.argv[1:]
    return Session(words, is_link=name in LINKS)


def _flush_standard_output() -> None:
    try:
        sys.stdout.flush()
    except OSError as error:
        # Otherwise the interpreter would try again at its end, and print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            raise
        raise OutputError(f"cannot be written: {error.strerror}", "standard output") from error


def _fail(message: str, exit_code: int) -> int:
    """Print an error as one line, with control characters escaped, and return the exit code."""
    line = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in message
    )
    with suppress(OSError):
        click.echo(f"{PROGRAM}: error: {line}", err=True)
    return exit_code


def _name_of_command(error: click.ClickException) -> str:
    """Return the name of the command with the usage error."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None or context.parent is None or context.info_name == MAIN_VERB:
        return PROGRAM
    return f"{PROGRAM} {context.info_name}"


def main(arguments: Iterable[str] | None = None) -> int:
    """Run the command line, and return its exit code; after a signal the process ends at once."""
    # Start-up makes many objects and little garbage; collecting it would take a tenth of a second.
    gc.set_threshold(QUIET_COLLECTOR)
    _occupy_closed_descriptors()
    session = _own_session() if arguments is None else Session(list(arguments))
    try:
        with SignalWatch():
            if instruction := os.environ.get(COMPLETION_VARIABLE):
                return _complete(instruction)
            if not session.arguments:
                click.echo(f"Usage: {PROGRAM} [OPTIONS] REFERENCE QUERY...", err=True)
                click.echo(f"Try '{PROGRAM} --help' for the options.", err=True)
                return EXIT_USAGE
            try:
                # Not Command.main, which handles broken pipes and exit codes differently.
                with commands.make_context(
                    PROGRAM, list(session.arguments), obj=session
                ) as context:
                    commands.invoke(context)
            finally:
                _flush_standard_output()
    except click.exceptions.Exit as end:
        return end.exit_code
    except (Exception, KeyboardInterrupt) as error:
        return _report(error, session)
    return 0


def _report(error: Exception | KeyboardInterrupt, session: Session) -> int:
    """Print an error that ends the run, and return the exit code."""
    if isinstance(error, click.ClickException):
        message = error.format_message().rstrip(".")
        return _fail(f"{message} (see {_name_of_command(error)} --help)", EXIT_USAGE)
    if isinstance(error, MummergpuError):
        return _fail(str(error), error.exit_code)
    if isinstance(error, BrokenPipeError):
        # The reader of the output has stopped reading.
        return EXIT_BROKEN_PIPE
    if isinstance(error, OSError):
        place = "" if error.filename is None else f"{error.filename}: "
        return _fail(f"{place}{error.strerror or error}", 1)
    if isinstance(error, KeyboardInterrupt):
        return _fail(ENDINGS[signal.SIGINT], EXIT_INTERRUPTED)
    if isinstance(error, MemoryError):
        text = "out of memory; fewer threads or smaller pages (see 'mummergpu index') need less"
        return _fail(text, 1)
    if str(error) == NO_THREAD:
        text = "no thread can be started: a limit of memory or of processes is reached"
        return _fail(f"{text} (see ulimit)", 1)
    if session.verbose:
        import traceback

        with suppress(OSError):
            traceback.print_exc()
    text = f"{type(error).__name__}: {error}"
    if names := [name for name in os.environ if name.startswith("NUMBA_")]:
        return _fail(f"with {', '.join(sorted(names))} in the environment: {text}", 1)
    return _fail(f"internal: {text}", 1)


def _remove_matplotlib_folder() -> None:
    """Remove the folder that matplotlib makes if the home folder is not writable.

    matplotlib would remove it if the process ended normally.
    """
    folder = os.environ.get(MATPLOTLIB_FOLDER)
    if folder is not None and folder != _USERS_FOLDER and "matplotlib" in sys.modules:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def run() -> NoReturn:
    """Run the command line, and end the process at once with its exit code.

    All files are closed before that. A normal end would free every module and the context of the
    GPU, which takes longer than a small search.
    """
    exit_code = main()
    _remove_matplotlib_folder()
    for stream in (sys.stdout, sys.stderr):
        # An error of writing has already been reported.
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(exit_code)
