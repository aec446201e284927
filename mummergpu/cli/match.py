"""The main job: matches between queries and a reference."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from mummergpu import __version__
from mummergpu.cli.cache_folders import (
    announce_compilation,
    find_place_for_compiled_code,
    folder_of_kernels,
)
from mummergpu.cli.option_rules import (
    page_size_of,
    policy_of,
    refuse_clashing_files,
    refuse_combinations,
    search_of,
    take_from_index,
)
from mummergpu.cli.option_types import PROGRAM
from mummergpu.cuda.warm_up import ask_for_context
from mummergpu.index.tree.policy import Policy
from mummergpu.runtime.output_file import OutputFile

if TYPE_CHECKING:
    from mummergpu.matching.options import MatchOptions
    from mummergpu.runtime.progress import NullProgress


@dataclass
class Session:
    """What the end of the process needs to know about the command line."""

    arguments: list[str]
    verbose: bool = False


def run_match(**given: Any) -> None:
    """Do the main job with the options of the command line, by their parameter names."""
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
    from mummergpu.pipeline import match as pipeline
    from mummergpu.runtime.stats import Stats

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
    from mummergpu.matching.options import MatchOptions, Uniqueness
    from mummergpu.sequence.codes import Strand

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
    from mummergpu.runtime.progress import NullProgress, Progress

    stream = sys.stderr
    progress = NullProgress(stream) if hidden or not stream.isatty() else Progress(stream)
    try:
        yield progress
    finally:
        progress.close()
