"""The main job on the command line: find matches between queries and a reference."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from mummergpu.cli.cache_folders import (
    announce_compilation,
    folder_of_kernels,
    tell_cache_trouble,
)
from mummergpu.cli.format_options import alignment_options, output_files, output_targets
from mummergpu.cli.option_rules import (
    Given,
    device_options,
    index_options,
    policy_reason,
    refuse_clashing_files,
    refuse_combinations,
    search_options,
    text_style,
)
from mummergpu.cli.option_types import PROGRAM
from mummergpu.cli.progress_line import progress_shown
from mummergpu.cli.purposes import with_purpose
from mummergpu.cli.run_reports import RunReports
from mummergpu.cli.run_words import RunWords, new_stats
from mummergpu.cli.session import Session
from mummergpu.cuda.warm_up import ask_for_contexts
from mummergpu.index.options import IndexOptions, TreeOptions
from mummergpu.runtime.output_file import STANDARD_OUTPUT
from mummergpu.runtime.words import counted

if TYPE_CHECKING:
    from mummergpu.output.targets import OutputTarget
    from mummergpu.pipeline.options import MatchOptions


def run_match(**given: Any) -> None:
    """Run the main job with the options of the command line, given by their parameter names."""
    session = click.get_current_context().find_object(Session)
    assert session is not None
    given = with_purpose(given)
    refuse_combinations(given)
    index = index_options(given)
    reports = RunReports(given)
    refuse_clashing_files(
        [given["reference"], *given["query"]],
        {
            **output_files(given),
            **reports.paths,
            "--dot": given["dot"],
            "--dump-tree": given["dump_tree"],
        },
    )
    if not given["cpu"] and given["backend"] != "cpu":
        ask_for_contexts(given["device"])
    from mummergpu.pipeline import match as pipeline

    command = shlex.join([PROGRAM, *session.arguments])
    options = _match_options(given, index, command, reports.are_wanted)
    stats = new_stats(command, options.search.uniqueness.value)
    if not given["quiet"]:
        announce_compilation()
    with ExitStack() as stack:
        reports.open(stack)
        hidden = given["quiet"] or given["no_progress"] or _shows_matches(options.outputs)
        progress = stack.enter_context(progress_shown(hidden, session.verbose))
        words = RunWords(progress, session.verbose, given["quiet"])
        tell_cache_trouble(words.notice)
        if isinstance(index.kind, TreeOptions) and (reason := policy_reason(given)) is not None:
            words.notice(f"policy {index.kind.policy.code}: {reason}")
        pipeline.run(options, stats, progress, words.notice, words.warn)
        if skipped := stats.counts.get("skipped_lookups", 0):
            words.say(
                f"{counted(skipped, 'k-mer')} of the queries {'was' if skipped == 1 else 'were'} "
                f"skipped, which {'occurs' if skipped == 1 else 'occur'} more than "
                f"{counted(given['max_occurrences'], 'time')} in the reference: matches that begin "
                f"with {'it' if skipped == 1 else 'them'} are not reported"
            )
        for line in stats.summary():
            words.notice(line)
        reports.write(stats)


def _shows_matches(outputs: Sequence[OutputTarget]) -> bool:
    """Return whether the matches go to a terminal, where a line of progress would be among them."""
    return sys.stdout.isatty() and any(target.path == STANDARD_OUTPUT for target in outputs)


def _match_options(given: Given, index: IndexOptions, command: str, summary: bool) -> MatchOptions:
    from mummergpu.cli.picture_options import picture_style
    from mummergpu.pipeline.options import MatchOptions

    kernel_folder = folder_of_kernels(os.environ)
    return MatchOptions(
        reference_path=given["reference"],
        query_paths=given["query"],
        any_letters=given["any_letters"],
        no_empty=given["no_empty"],
        paired=given["pair"],
        outputs=output_targets(given),
        command=command,
        threads=given["threads"],
        index=index,
        search=search_options(given),
        device=device_options(given, None if kernel_folder is None else str(kernel_folder)),
        style=text_style(given),
        sam=alignment_options(given),
        verify=given["verify"],
        dot_path=given["dot"],
        dump_tree_path=given["dump_tree"],
        summary=summary,
        picture=picture_style(given),
    )
