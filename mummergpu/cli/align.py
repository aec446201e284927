"""The command ``align``: align genomes."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from typing import Any, Final

import click

from mummergpu.cli.align_options import ALIGN_OPTIONS, align_options
from mummergpu.cli.cache_folders import announce_compilation, tell_cache_trouble
from mummergpu.cli.option_rules import refuse_clashing_files
from mummergpu.cli.option_types import HELP_OPTIONS, PROGRAM
from mummergpu.cli.progress_line import progress_shown
from mummergpu.cli.run_reports import RunReports
from mummergpu.cli.run_words import RunWords, new_stats
from mummergpu.cli.session import Session
from mummergpu.cuda.warm_up import ask_for_contexts
from mummergpu.runtime.output_file import STANDARD_OUTPUT

_COMPILATION: Final = "a minute"


@click.command("align", context_settings=HELP_OPTIONS, params=ALIGN_OPTIONS)
def align_command(**given: Any) -> None:
    """Align genomes, and write the alignments.

    REFERENCE is a FASTA file or an index that 'mummergpu index' has made; QUERY is a file of
    chromosomes, contigs or long reads, also compressed. What alignments begin with, and how they
    are extended, is as in nucmer, with its options and defaults.

    'mummergpu align a.fna b.fna -o x.delta' writes what delta-filter, show-coords, show-snps,
    dnadiff -d and mummerplot read; '-o x.paf' the table of minimap2.
    """
    session = click.get_current_context().find_object(Session)
    assert session is not None
    if given["verbose"] and given["quiet"]:
        raise click.UsageError("-v and -q exclude each other")
    if given["cpu"] and given["backend"] == "cuda":
        raise click.UsageError("-C and --backend cuda exclude each other")
    reports = RunReports(given)
    outputs = {"--output": given["output"], "--vcf": given["vcf"]} | reports.paths
    refuse_clashing_files([given["reference"], *given["query"]], outputs)
    command = shlex.join([PROGRAM, *session.arguments])
    options = align_options(given, command)
    if not given["cpu"] and given["backend"] != "cpu":
        ask_for_contexts(given["device"])
    from mummergpu.pipeline import align_genomes

    stats = new_stats(command, "align")
    if not given["quiet"]:
        announce_compilation(_COMPILATION)
    with ExitStack() as stack:
        reports.open(stack)
        hidden = given["quiet"] or given["no_progress"]
        hidden = hidden or (given["output"] == STANDARD_OUTPUT and sys.stdout.isatty())
        progress = stack.enter_context(progress_shown(hidden, session.verbose))
        words = RunWords(progress, session.verbose, given["quiet"])
        tell_cache_trouble(words.notice)
        align_genomes.run(options, stats, progress, words.notice, words.warn)
        for line in stats.summary():
            words.notice(line)
        reports.write(stats)
