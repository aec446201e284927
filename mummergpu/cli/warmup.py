"""The command ``warmup``: compile now what later runs need, and keep it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mummergpu.cli.option_types import HELP_OPTIONS, PROGRAM
from mummergpu.errors import OptionError, OutputError
from mummergpu.runtime.cache_places import cache_folder
from mummergpu.runtime.compiled.code_target import GENERIC_TARGETS, GenericTarget, runnable_targets
from mummergpu.runtime.processors import processor_count

if TYPE_CHECKING:
    import subprocess

_NATIVE: Final = "native"

_CHILD: Final = """
import json, sys
sys.path[:] = json.loads(sys.argv.pop(1))
from mummergpu.__main__ import run
run()
"""
"""Runs this program in a new process, with the modules that this process would import."""


@click.command("warmup", context_settings=HELP_OPTIONS)
@click.option(
    "--generic",
    is_flag=True,
    help="Compile for all processors that have common features, not for the one of this machine "
    "(on x86-64: x86-64-v3, and x86-64-v2 for old ones; on ARM: arm64).",
)
@click.option(
    "--cpu",
    "names",
    multiple=True,
    metavar="NAME",
    type=click.Choice([_NATIVE, *(target.name for target in GENERIC_TARGETS)]),
    help="Compile for processors with the features of NAME: native (this machine's own), "
    "x86-64-v3, x86-64-v2 or arm64; may be repeated.  [default: native]",
)
@click.option(
    "--gpu",
    "architectures",
    multiple=True,
    metavar="SM",
    help="Compile the kernels for GPUs of architecture SM too, such as sm_90, for which no GPU is "
    "needed; may be repeated.",
)
@click.option(
    "-t",
    "--threads",
    "processes",
    metavar="N",
    type=click.IntRange(min=1),
    help="Compile in N processes, each of which takes some 500 MB.  [default: the processors]",
)
@click.option("--part", "parts", multiple=True, hidden=True)
@click.option("-q", "--quiet", is_flag=True, help="Write nothing but errors to standard error.")
@click.pass_context
def warmup(
    context: click.Context,
    generic: bool,
    names: tuple[str, ...],
    architectures: tuple[str, ...],
    processes: int | None,
    parts: tuple[str, ...],
    quiet: bool,
) -> None:
    """Compile what later runs need, so that none of them has to wait for that.

    The code is kept where each run looks for it: MUMMERGPU_CACHE_DIR, or the usual folder of
    caches. In the recipe of a container, set that variable to a folder of the image, and run
    'mummergpu warmup --generic': the container then starts without compiling anything, on other
    processors too, for any user, and with a read-only file system.

    The small searches of a warm-up take about a minute of one processor for each NAME; several
    processors share them.
    """
    chosen = list(dict.fromkeys(names))
    if generic:
        chosen += [target.name for target in _generic_targets() if target.name not in chosen]
    chosen = chosen or [_NATIVE]
    _refuse_what_does_not_run_here(chosen)
    if architectures:
        _compile_kernels(architectures, quiet)
    if parts:
        # The process that has begun this one adds up what its processes have compiled.
        click.echo(_fill(context, chosen[0], parts))
        return
    # Processes of other kinds of processors would compile for minutes what nobody can keep.
    _folder_of_code()
    count = processes or processor_count()
    compiled = _compile_listed(chosen, count)
    for name, saved, folder in _fill_in_processes(context, chosen, count):
        if not quiet:
            text = f"{saved + compiled[name]} functions were compiled for {name}, in {folder}"
            click.echo(f"{PROGRAM}: {text}", err=True)


def _generic_targets() -> tuple[GenericTarget, ...]:
    targets = runnable_targets()
    if not targets:
        raise OptionError("--generic", "no generic processor is known that this machine is like")
    return targets


def _refuse_what_does_not_run_here(names: list[str]) -> None:
    known = {_NATIVE, *(target.name for target in runnable_targets())}
    for name in names:
        if name not in known:
            raise OptionError("--cpu", f"this machine cannot run code for {name}")


def _folder_of_code() -> str:
    """Return where this process keeps compiled code; raise `OutputError` if that is nowhere."""
    from mummergpu.runtime.compiled.code_cache import code_places, process_store

    folder = process_store().folder()
    if folder is None:
        place = "; ".join(code_places()) or "no folder"
        raise OutputError("compiled code cannot be kept there", place)
    return folder


def _fill(context: click.Context, name: str, parts: Sequence[str]) -> str:
    """Run parts of a warm-up in this process, which compiles for one kind of processor.

    Return how many functions were compiled and kept, and the folder that has them.
    """
    import tempfile

    from mummergpu.cli.warmup_commands import run_parts
    from mummergpu.runtime.compiled.code_target import compile_for

    compile_for(next((one for one in runnable_targets() if one.name == name), None))
    from mummergpu.runtime.compiled.code_cache import process_store
    from mummergpu.runtime.compiled.native.store import native_stores

    store, folder = process_store(), _folder_of_code()
    commands = context.find_root().command
    assert isinstance(commands, click.Group)
    with tempfile.TemporaryDirectory(prefix=f"{PROGRAM}-") as inputs:
        run_parts(commands, Path(inputs), parts)
    if store.folder() != folder:
        raise OutputError("compiled code cannot be kept there any more", folder)
    saved = sum(one.saved_count for one in (store, *native_stores()[:1]))
    return f"{saved} {folder}"


def _compile_listed(names: Sequence[str], count: int) -> dict[str, int]:
    """Compile what is listed, in so many processes; return how many functions that were.

    The searches then find nearly everything compiled, and what takes longest has begun first.
    """
    from concurrent.futures import ThreadPoolExecutor

    from mummergpu.cli.compiled_list import entries
    from mummergpu.runtime.compiled.ahead import Compilers, Progress

    # A process that runs all searches compiles what several functions call once only.
    if count == 1 or not hasattr(os, "fork"):
        return dict.fromkeys(names, 0)
    listed = sorted((one.listed for one in entries()), key=lambda one: -one.cost)

    def compile_for_one(name: str) -> int:
        target = None if name == _NATIVE else name
        compilers = Compilers(listed, max(1, count // len(names)), Progress(), target)
        try:
            compilers.wait()
        finally:
            compilers.close()
        return compilers.compiled

    with ThreadPoolExecutor(min(count, len(names))) as executor:
        return dict(zip(names, executor.map(compile_for_one, names), strict=True))


def _fill_in_processes(
    context: click.Context, names: Sequence[str], count: int
) -> list[tuple[str, int, str]]:
    """Run all parts for all kinds of processors, in so many processes at once.

    Numba compiles on one thread of a process, and for one kind of processor. Return for each kind
    how many functions were compiled, and where they are kept. The first process that fails ends
    the command, with what it has said.
    """
    from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

    from mummergpu.cli.warmup_commands import PARTS

    running: set[subprocess.Popen[str]] = set()
    # One process compiles what parts share once only.
    shares = [PARTS] if count == 1 else [(part,) for part in PARTS]
    with ThreadPoolExecutor(count) as executor:
        work = {
            executor.submit(_fill_in_child, name, share, running): name
            for share in shares
            for name in names
        }
        try:
            done, _ = wait(work, return_when=FIRST_EXCEPTION)
            results = [(work[one], *one.result()) for one in done]
            folders = {name: folder for name, _, folder in results}
        except _ChildError as failed:
            click.echo(failed.said, err=True, nl=False)
            context.exit(failed.status)
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            for process in tuple(running):
                process.terminate()
    return [
        (name, sum(saved for other, saved, _ in results if other == name), folders[name])
        for name in names
    ]


class _ChildError(Exception):
    """A process has ended with an error; it has said why."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


def _fill_in_child(
    name: str, parts: Sequence[str], running: set[subprocess.Popen[str]]
) -> tuple[int, str]:
    """Run parts in a process of its own; return what `_fill` does."""
    import json
    import subprocess

    words = ["warmup", "--cpu", name, *(word for part in parts for word in ("--part", part))]
    command = [sys.executable, "-c", _CHILD, json.dumps(sys.path), *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        running.add(process)
        told, said = process.communicate()
        running.discard(process)
    if process.returncode:
        raise _ChildError(process.returncode, said)
    saved, folder = told.strip().split(" ", 1)
    return int(saved), folder


def _compile_kernels(architectures: tuple[str, ...], quiet: bool) -> None:
    from mummergpu.studies.kernel_warmup import warm_kernels

    folder = cache_folder(os.environ)
    if folder is None:
        raise OutputError("no place for kernels: there is no home folder", "MUMMERGPU_CACHE_DIR")
    counts = warm_kernels(architectures, folder, processor_count())
    if not quiet:
        text = f"{counts.compiled} programs for GPUs were compiled, {counts.found} were kept before"
        click.echo(f"{PROGRAM}: {text}, in {folder}", err=True)
