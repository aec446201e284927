"""The command ``align``: align genomes."""

from __future__ import annotations

from typing import Any

import click

from mummergpu.cli.align_options import ALIGN_OPTIONS, align_options
from mummergpu.cli.alignment_run import run_alignment
from mummergpu.cli.option_types import HELP_OPTIONS


@click.command("align", context_settings=HELP_OPTIONS, params=ALIGN_OPTIONS)
def align_command(**given: Any) -> None:
    """Align genomes, and write the alignments.

    REFERENCE is a FASTA file or an index that 'mummergpu index' has made; QUERY is a file of
    chromosomes, contigs or long reads, also compressed. What alignments begin with, and how they
    are extended, is as in nucmer, with its options and defaults.

    'mummergpu align a.fna b.fna -o x.delta' writes what delta-filter, show-coords, show-snps,
    dnadiff -d and mummerplot read; '-o x.paf' the table of minimap2.
    """
    inputs = [given["reference"], *given["query"]]
    outputs = {"--output": given["output"], "--vcf": given["vcf"]}
    run_alignment(given, inputs, outputs, align_options, _load_job)


def _load_job() -> Any:
    from mummergpu.pipeline import align_genomes

    return align_genomes.run
