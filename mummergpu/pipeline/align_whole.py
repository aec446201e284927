"""The job that aligns whole sequences from end to end, without matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryBlock, QueryRules
from mummergpu.input.blocks.reader import ReadStream, query_reader
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.mapping.genomes.whole import MatrixTooLargeError, WholeAligner
from mummergpu.pipeline.align_options import AlignOptions
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.genome_outputs import open_genome_sink
from mummergpu.pipeline.matrix_opening import open_matrix
from mummergpu.pipeline.progress import QueryProgress
from mummergpu.pipeline.reference_source import open_source, reference_of
from mummergpu.runtime.output_file import OutputFile

BLOCK_BASES = 1 << 20
"""About how many bases of queries are aligned and written together."""


def run_whole(options: AlignOptions, context: RunContext) -> None:
    """Align each query with each record of the reference, from end to end.

    Raises
    ------
    MummergpuError
        If the input, the options or the machine are at fault.
    """
    stats = context.stats
    with stats.stage("end_to_end"), ExitStack() as stack:
        outputs = [stack.enter_context(OutputFile(target.path)) for target in options.outputs]
        stack.callback(context.executor.shutdown)
        reading = stack.enter_context(ReadingThreads(options.threads))
        done = QueryProgress(context.progress.tell, 1)
        rules = QueryRules(options.any_letters, options.no_empty, context.warn)
        block_bases = options.search.block_size or BLOCK_BASES
        queries = stack.enter_context(
            ReadStream(
                query_reader(options.query_paths, block_bases, rules=rules, threads=reading),
                stats,
                done.read,
            )
        )
        reference = reference_of(open_source(options, context, reading))
        stats.add(
            reference_records=reference.record_starts.size, reference_bases=reference.codes.size
        )
        costs, strands = options.genomes.costs, options.search.strands
        matrix = open_matrix(options.method, costs, options.device, context, stack)
        aligner = WholeAligner(reference, options.genomes, strands, *matrix)
        sink = open_genome_sink(options, reference, outputs, aligner, context)
        stack.callback(sink.close)
        done.begin_group(0, 1)
        for block in queries.blocks(block_bases):
            with naming_files(options.query_paths, block):
                sink.write(sink.prepare(block, {}))
            done.done(block)
        sink.finish()


@contextmanager
def naming_files(paths: Sequence[str], block: QueryBlock) -> Iterator[None]:
    """Name the file of a query whose matrix is too large, in an `InputError`."""
    try:
        yield
    except MatrixTooLargeError as error:
        path = paths[block.file_number]
        raise InputError(error.message, path, None, error.query) from error
