"""Opens the files that genome alignments are written to."""

from __future__ import annotations

from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.mapping_quality import MappingQualities
from mummergpu.output.formats import RowKind
from mummergpu.output.genomes.sink import BlockAligner, GenomeSink
from mummergpu.output.open_sink import open_sink
from mummergpu.output.options import RecordStyle, SamOptions, usual_read_group
from mummergpu.output.sink import OutputContext
from mummergpu.pipeline.align_options import AlignOptions
from mummergpu.pipeline.context import RunContext
from mummergpu.runtime.output_file import OutputFile


def open_genome_sink(
    options: AlignOptions,
    reference: Reference,
    files: list[OutputFile],
    aligner: BlockAligner,
    context: RunContext,
) -> GenomeSink:
    """Return what aligns blocks of queries and writes the alignments."""
    facts = OutputContext(
        reference,
        options.query_paths,
        options.threads,
        options.command,
        SamOptions(usual_read_group(options.query_paths)),
        with_changes=options.with_changes,
        with_bases=options.with_bases,
        records=RecordStyle(equal_bases=options.equal_bases),
        qualities=MappingQualities(reference, context.executor.map),
        warn=context.warn,
    )
    output = open_sink(options.outputs, files, facts, context.stats, RowKind.GENOMES)
    return GenomeSink(aligner, options.kept, output, context.stats, context.executor.map)
