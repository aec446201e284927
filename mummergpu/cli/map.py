"""The command ``map``: map reads to a reference."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from typing import Any, Final

import click

from mummergpu.cli.cache_folders import announce_compilation, tell_cache_trouble
from mummergpu.cli.map_options import MAP_OPTIONS, map_options
from mummergpu.cli.option_rules import refuse_clashing_files
from mummergpu.cli.option_types import HELP_OPTIONS, PROGRAM
from mummergpu.cli.progress_line import progress_shown
from mummergpu.cli.run_reports import RunReports
from mummergpu.cli.run_words import RunWords, new_stats
from mummergpu.cli.session import Session
from mummergpu.cuda.warm_up import ask_for_contexts
from mummergpu.runtime.output_file import STANDARD_OUTPUT

_INDEXES: Final = (".bai", ".csi")
"""How the names of the indexes of a sorted BAM end."""

_COMPILATION: Final = "a minute"


@click.command("map", context_settings=HELP_OPTIONS, params=MAP_OPTIONS)
def map_command(**given: Any) -> None:
    """Map reads to a reference, and write their alignments.

    REFERENCE is a FASTA file or an index that 'mummergpu index' has made; READS are FASTQ, FASTA,
    or unaligned SAM, BAM or CRAM files, also compressed; '-' is standard input. Two files are the
    two mates of pairs, four are two pairs of files, and so on; mates may also alternate in a file
    (--interleaved). Reads of 36 to 500 bases are mapped best.

    SAM goes to standard output unless -o names a file: 'mummergpu map genome.fa r1.fq.gz r2.fq.gz
    --sort -o sample.bam' writes a sorted BAM with its index.
    """
    session = click.get_current_context().find_object(Session)
    assert session is not None
    if given["verbose"] and given["quiet"]:
        raise click.UsageError("-v and -q exclude each other")
    if given["cpu"] and given["backend"] == "cuda":
        raise click.UsageError("-C and --backend cuda exclude each other")
    reports = RunReports(given, of_mapping=True)
    refuse_clashing_files([given["reference"], *given["reads"]], _outputs(given) | reports.paths)
    command = shlex.join([PROGRAM, *session.arguments])
    options = map_options(given, command)
    if not given["cpu"] and given["backend"] != "cpu":
        ask_for_contexts(given["device"])
    from mummergpu.pipeline import map_reads

    stats = new_stats(command, "map")
    if not given["quiet"]:
        announce_compilation(_COMPILATION)
    with ExitStack() as stack:
        reports.open(stack)
        hidden = given["quiet"] or given["no_progress"]
        hidden = hidden or (given["output"] == STANDARD_OUTPUT and sys.stdout.isatty())
        progress = stack.enter_context(progress_shown(hidden, session.verbose))
        words = RunWords(progress, session.verbose, given["quiet"])
        tell_cache_trouble(words.notice)
        map_reads.run(options, stats, progress, words.notice, words.warn)
        for line in stats.summary():
            words.notice(line)
        reports.write(stats)


def _outputs(given: dict[str, Any]) -> dict[str, str | None]:
    """Return the files of alignments and their indexes, by the options that make them."""
    files: dict[str, str | None] = {"--output": given["output"]}
    if given["sort"] and given["output"] != STANDARD_OUTPUT:
        files |= {f"--sort ({end})": given["output"] + end for end in _INDEXES}
    return files
