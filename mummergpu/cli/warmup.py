"""The command ``warmup``: compile now what later runs need, and keep it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import click

from mummergpu.cli.cache_folders import folder_of_kernels
from mummergpu.cli.option_types import HELP_OPTIONS, PROGRAM
from mummergpu.errors import OptionError, OutputError
from mummergpu.runtime.compiled.code_target import GENERIC_TARGETS, GenericTarget, runnable_targets

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
@click.option("-q", "--quiet", is_flag=True, help="Write nothing but errors to standard error.")
@click.pass_context
def warmup(
    context: click.Context,
    generic: bool,
    names: tuple[str, ...],
    architectures: tuple[str, ...],
    quiet: bool,
) -> None:
    """Compile what later runs need, so that none of them has to wait for that.

    The code is kept where each run looks for it: MUMMERGPU_CACHE_DIR, or the usual folder of
    caches. In the recipe of a container, set that variable to a folder of the image, and run
    'mummergpu warmup --generic': the container then starts without compiling anything, on other
    processors too, for any user, and with a read-only file system.

    The small searches of a warm-up take about a minute for each NAME.
    """
    chosen = list(dict.fromkeys(names))
    if generic:
        chosen += [target.name for target in _generic_targets() if target.name not in chosen]
    chosen = chosen or [_NATIVE]
    _refuse_what_does_not_run_here(chosen)
    if architectures:
        _compile_kernels(architectures, quiet)
    # Numba compiles for one kind of processor in each process, and may have begun to.
    if len(chosen) == 1 and (chosen[0] == _NATIVE or "numba" not in sys.modules):
        _fill(context, chosen[0], quiet)
    else:
        for name in chosen:
            _fill_in_child(context, name, quiet)


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


def _fill(context: click.Context, name: str, quiet: bool) -> None:
    """Run all commands of a warm-up in this process, which compiles for one kind of processor."""
    import tempfile

    from mummergpu.cli.warmup_commands import run_all
    from mummergpu.runtime.compiled.code_target import compile_for

    compile_for(next((one for one in runnable_targets() if one.name == name), None))
    from mummergpu.runtime.compiled.code_cache import code_places, process_store
    from mummergpu.runtime.compiled.native.store import native_stores

    store = process_store()
    folder = store.folder()
    if folder is None:
        place = "; ".join(code_places()) or "no folder"
        raise OutputError("compiled code cannot be kept there", place)
    commands = context.find_root().command
    assert isinstance(commands, click.Group)
    with tempfile.TemporaryDirectory(prefix=f"{PROGRAM}-") as inputs:
        run_all(commands, Path(inputs))
    if store.folder() != folder:
        raise OutputError("compiled code cannot be kept there any more", folder)
    if not quiet:
        saved = sum(one.saved_count for one in (store, *native_stores()[:1]))
        text = f"{PROGRAM}: {saved} functions were compiled for {name}, in {folder}"
        click.echo(text, err=True)


def _fill_in_child(context: click.Context, name: str, quiet: bool) -> None:
    """Do the same in a process of its own."""
    import json
    import subprocess

    words = ["warmup", "--cpu", name, *(["-q"] if quiet else [])]
    command = [sys.executable, "-c", _CHILD, json.dumps(sys.path), *words]
    done = subprocess.run(command, check=False)
    if done.returncode:
        context.exit(done.returncode)


def _compile_kernels(architectures: tuple[str, ...], quiet: bool) -> None:
    from mummergpu.runtime.processors import processor_count
    from mummergpu.studies.kernel_warmup import warm_kernels

    folder = folder_of_kernels(os.environ)
    if folder is None:
        raise OutputError("no place for kernels: there is no home folder", "MUMMERGPU_CACHE_DIR")
    counts = warm_kernels(architectures, folder, processor_count())
    if not quiet:
        text = f"{counts.compiled} programs for GPUs were compiled, {counts.found} were kept before"
        click.echo(f"{PROGRAM}: {text}, in {folder}", err=True)
