"""The command ``map``: map reads to a reference."""

from __future__ import annotations

from typing import Any, Final

import click

from mummergpu.cli.alignment_run import run_alignment
from mummergpu.cli.map_options import MAP_OPTIONS, map_options
from mummergpu.cli.option_types import HELP_OPTIONS
from mummergpu.runtime.output_file import STANDARD_OUTPUT

_INDEXES: Final = (".bai", ".csi", ".crai")
"""How the names of the indexes of sorted BAM and CRAM end."""


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
    inputs = [given["reference"], *given["reads"]]
    run_alignment(given, inputs, _outputs(given), map_options, _load_job)


def _load_job() -> Any:
    from mummergpu.pipeline import map_reads

    return map_reads.run


def _outputs(given: dict[str, Any]) -> dict[str, str | None]:
    """Return the files of alignments and their indexes, by the options that make them."""
    files: dict[str, str | None] = {"--output": given["output"]}
    if given["sort"] and given["output"] != STANDARD_OUTPUT:
        files |= {f"--sort ({end})": given["output"] + end for end in _INDEXES}
    return files
