"""Opens the files that genome alignments are written to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from mummergpu.errors import OptionError
from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.mapping_quality import MappingQualities
from mummergpu.output.bytes.compression import Compressor, compressor_of
from mummergpu.output.genomes.delta import GenomeDelta
from mummergpu.output.genomes.format import GenomeFormat
from mummergpu.output.genomes.paf import GenomePaf
from mummergpu.output.genomes.sam import GenomeBam, GenomeSam
from mummergpu.output.genomes.targets import GENOME_FORMATS
from mummergpu.output.genomes.vcf import GenomeVcf
from mummergpu.output.records.sam_options import usual_read_group
from mummergpu.output.targets import OutputTarget
from mummergpu.pipeline.align_options import AlignOptions
from mummergpu.pipeline.genome_sink import BlockAligner, GenomeOutput, GenomeSink
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats


def open_genome_sink(
    options: AlignOptions,
    reference: Reference,
    files: list[OutputFile],
    aligner: BlockAligner,
    executor: ThreadPoolExecutor,
    stats: Stats,
) -> GenomeSink:
    """Return what aligns blocks of queries and writes the alignments."""
    qualities = MappingQualities(reference, executor.map)
    outputs = [
        GenomeOutput(
            genome_format(
                target.format,
                reference,
                options.anchors.query_paths,
                options.with_changes,
                options.anchors.command,
                options.with_bases,
                qualities,
            ),
            file,
            stats,
            genome_compressor(target),
            options.anchors.threads,
        )
        for target, file in zip(options.targets, files, strict=True)
    ]
    return GenomeSink(aligner, options.kept, outputs, stats, executor.map)


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
    qualities: MappingQualities | None = None,
) -> GenomeFormat:
    """Return what makes the bytes of a format of genome alignments."""
    if name == "paf":
        return GenomePaf(reference, with_changes, qualities)
    if name == "vcf":
        return GenomeVcf(reference, query_paths)
    group, files = usual_read_group(query_paths), ", ".join(query_paths)
    if name == "sam":
        return GenomeSam(reference, group, command, files, with_bases, qualities)
    if name == "bam":
        return GenomeBam(reference, group, command, files, qualities)
    if name != "delta":
        known = f"{', '.join(GENOME_FORMATS[:-1])} or {GENOME_FORMATS[-1]}"
        raise OptionError("--format", f"genome alignments are written as {known}, not {name}")
    if len(query_paths) > 1:
        raise OptionError("--format", "a .delta is of one file of queries: write PAF, or join them")
    return GenomeDelta(reference, query_paths[0])
