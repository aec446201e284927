"""The job that aligns whole sequences from end to end, without matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from mummergpu.errors import InputError
from mummergpu.index.file import IndexFile
from mummergpu.index.format import is_index
from mummergpu.input.blocks.queries import QueryBlock, QueryRules
from mummergpu.input.blocks.query_stream import QueryStream
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.mapping.genomes.whole import MatrixTooLargeError, WholeAligner
from mummergpu.pipeline.align_options import AlignOptions
from mummergpu.pipeline.genome_outputs import open_genome_sink
from mummergpu.pipeline.matrix_opening import open_matrix
from mummergpu.pipeline.query_progress import QueryProgress
from mummergpu.pipeline.reference_source import open_source
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import NullProgress, Phase, Work
from mummergpu.runtime.stats import Stats

BLOCK_BASES = 1 << 20
"""About how many bases of queries are aligned and written together."""


def run_whole(
    options: AlignOptions,
    stats: Stats,
    progress: NullProgress,
    notice: Callable[[str], None],
    warn: Callable[[str], None],
) -> None:
    """Align each query with each record of the reference, from end to end.

    Parameters
    ----------
    options : AlignOptions
        The files and options of the run; its method is not `AlignmentMethod.TILE`.
    stats : Stats
        Collects counts, bytes and times.
    progress : Progress or NullProgress
        Shows how many queries are done.
    notice : callable
        Receives progress messages, shown with -v.
    warn : callable
        Receives warnings; any thread may call it.

    Raises
    ------
    MummergpuError
        If the input, the options or the machine are at fault.
    """
    given = options.anchors
    with stats.stage("end_to_end"), ExitStack() as stack:
        outputs = [stack.enter_context(OutputFile(target.path)) for target in options.targets]
        executor = stack.enter_context(ThreadPoolExecutor(given.threads, "align"))
        reading = stack.enter_context(ReadingThreads(given.threads))
        done = QueryProgress(progress.tell, 1)
        rules = QueryRules(given.any_letters, given.no_empty, warn)
        block_bases = given.search.block_size or BLOCK_BASES
        queries = stack.enter_context(
            QueryStream(given.query_paths, block_bases, stats, done.read, rules, reading)
        )
        progress.tell(Work(Phase.READING_REFERENCE))
        path, has_index = given.reference_path, is_index(given.reference_path)
        with stats.stage("ref_from_disk"):
            source = open_source(
                path, has_index, given.verify, given.any_letters, executor, reading
            )
        reference = source.reference if isinstance(source, IndexFile) else source
        stats.add(
            reference_records=reference.record_starts.size, reference_bases=reference.codes.size
        )
        costs, strands = options.genomes.costs, given.search.strands
        matrix = open_matrix(
            options.method, costs, given.device, stack, executor.map, stats, notice
        )
        aligner = WholeAligner(reference, options.genomes, strands, *matrix)
        sink = open_genome_sink(options, reference, outputs, aligner, executor, stats)
        stack.callback(sink.close)
        done.begin_group(0, 1)
        for block in queries.blocks(block_bases):
            with naming_files(given.query_paths, block):
                sink.write(sink.prepare(block, {}))
            done.done(block)
        sink.finish()


@contextmanager
def naming_files(paths: Sequence[str], block: QueryBlock) -> Iterator[None]:
    """Name the file of a query whose matrix is too large.

    Parameters
    ----------
    paths : sequence of str
        The files of queries.
    block : QueryBlock
        The queries that are aligned while the ``with`` statement lasts.

    Raises
    ------
    InputError
        In place of a `MatrixTooLargeError`.
    """
    try:
        yield
    except MatrixTooLargeError as error:
        path = paths[block.file_number]
        raise InputError(error.message, path, None, error.query) from error
