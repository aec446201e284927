"""The job that aligns genomes: the main job finds the matches, and alignments are made of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mummergpu.errors import OptionError
from mummergpu.input.files import open_binary, reading
from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.aligner import GenomeAligner
from mummergpu.output.compression import Compressor, compressor_of
from mummergpu.output.genome_bam import GenomeBam
from mummergpu.output.genome_delta import GenomeDelta
from mummergpu.output.genome_format import GenomeFormat
from mummergpu.output.genome_paf import GenomePaf
from mummergpu.output.genome_sam import GenomeSam
from mummergpu.output.genome_targets import GENOME_FORMATS
from mummergpu.output.genome_vcf import GenomeVcf
from mummergpu.output.sam_options import usual_read_group
from mummergpu.output.sink import MatchSink
from mummergpu.output.targets import OutputTarget
from mummergpu.pipeline import match
from mummergpu.pipeline.align_options import AlignOptions
from mummergpu.pipeline.genome_sink import GenomeOutput, GenomeSink
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import NullProgress
from mummergpu.runtime.stats import Stats


def run(
    options: AlignOptions,
    stats: Stats,
    progress: NullProgress,
    notice: Callable[[str], None],
    warn: Callable[[str], None],
) -> None:
    """Align all queries with the reference, and write the alignments.

    Parameters
    ----------
    options : AlignOptions
        The files and options of the run.
    stats : Stats
        Collects counts, bytes and times.
    progress : Progress or NullProgress
        Shows how many pages and queries are done.
    notice : callable
        Receives progress messages, shown with -v.
    warn : callable
        Receives warnings; any thread may call it.

    Raises
    ------
    MummergpuError
        If the input, the options or the machine are at fault.
    """

    def open_sink(
        reference: Reference, files: list[OutputFile], executor: ThreadPoolExecutor
    ) -> MatchSink[Any]:
        outputs = [
            GenomeOutput(
                genome_format(
                    target.format,
                    reference,
                    options.anchors.query_paths,
                    options.with_changes,
                    options.anchors.command,
                    options.with_bases,
                ),
                file,
                stats,
                genome_compressor(target),
                options.anchors.threads,
            )
            for target, file in zip(options.targets, files, strict=True)
        ]
        aligner = GenomeAligner(reference, options.genomes)
        return GenomeSink(aligner, options.kept, outputs, stats, executor.map)

    match.run(options.anchors, stats, progress, notice, warn, open_sink)
    if any(target.format == "delta" for target in options.targets):
        for path in (options.anchors.reference_path, *options.anchors.query_paths):
            if not _is_plain_fasta(path):
                warn(
                    f"the .delta names '{path}', which is not plain FASTA: show-snps, dnadiff and "
                    "mummerplot read such files again, and cannot read this one"
                )


def _is_plain_fasta(path: str) -> bool:
    """Return whether a file can be read again, by programs that know nothing but FASTA."""
    if not os.path.isfile(path):
        return False
    with reading(path), open_binary(path) as file:
        return file.read(1) == b">"


def genome_compressor(target: OutputTarget) -> Compressor | None:
    """Return what compresses the bytes of a file of alignments, None for nothing."""
    return compressor_of("bgzf" if target.format == "bam" else target.compression)


def genome_format(
    name: str,
    reference: Reference,
    query_paths: tuple[str, ...],
    with_changes: bool = False,
    command: str = "",
    with_bases: bool = True,
) -> GenomeFormat:
    """Return what makes the bytes of a format of genome alignments.

    Parameters
    ----------
    name : str
        One of `GENOME_FORMATS`.
    reference : Reference
        The reference.
    query_paths : tuple of str
        The files of the queries.
    with_changes : bool
        Whether PAF tells the bases of the differences.
    command : str
        The command line, for the header of SAM and BAM; empty if there is none.
    with_bases : bool
        Whether SAM has the bases of the queries.

    Returns
    -------
    GenomeFormat
        The format.

    Raises
    ------
    MummergpuError
        If there is no such format, or it cannot be made of these files.
    """
    if name == "paf":
        return GenomePaf(reference, with_changes)
    if name == "vcf":
        return GenomeVcf(reference, query_paths)
    group, files = usual_read_group(query_paths), ", ".join(query_paths)
    if name == "sam":
        return GenomeSam(reference, group, command, files, with_bases)
    if name == "bam":
        return GenomeBam(reference, group, command, files)
    if name != "delta":
        known = f"{', '.join(GENOME_FORMATS[:-1])} or {GENOME_FORMATS[-1]}"
        raise OptionError("--format", f"genome alignments are written as {known}, not {name}")
    if len(query_paths) > 1:
        raise OptionError("--format", "a .delta is of one file of queries: write PAF, or join them")
    return GenomeDelta(reference, query_paths[0])
