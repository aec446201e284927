"""The job that aligns genomes: the main job finds anchors, and its sink aligns between them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.reader import ReadStream, query_reader
from mummergpu.input.bytes.files import open_binary, reading
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.reference import Reference, refuse_proteins
from mummergpu.mapping.genomes.aligner import GenomeAligner
from mummergpu.mapping.genomes.device_tiles import TileAligner
from mummergpu.mapping.genomes.mapping_quality import MappingQualities
from mummergpu.matching.backends.interface import Backend
from mummergpu.output.formats import RowKind
from mummergpu.output.genomes.delta import named_path
from mummergpu.output.genomes.sink import BlockAligner, GenomeSink
from mummergpu.output.open_sink import open_sink
from mummergpu.output.options import RecordStyle, SamOptions, usual_read_group
from mummergpu.output.sink import MatchSink, OutputContext
from mummergpu.pipeline import match
from mummergpu.pipeline.align_options import AlignOptions
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.open_search import open_source, reference_of
from mummergpu.pipeline.progress import QueryProgress
from mummergpu.runtime.output_file import OutputFile
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.device.tile_set import AlignedTiles, TileSet
from mummergpu.viterbi.recurrence.model import AlignmentMethod, Costs

if TYPE_CHECKING:
    from mummergpu.matching.backends.cuda_streams import CudaStreamsBackend

_HEAD_BYTES: Final = 1 << 16
"""The bytes at the start of a file that show its line ends."""

PART_OF_MEMORY: Final = 4
"""Tiles take at most 1/N of the memory that is free when they are aligned."""

BLOCK_BASES: Final = 1 << 20
"""The approximate bases of queries that are aligned and written together."""


def run(options: AlignOptions, context: RunContext) -> None:
    """Align all queries with the reference, and write the alignments.

    Raises
    ------
    MummergpuError
        If the input, the options or the machine are at fault.
    """

    def open_sink(
        reference: Reference, files: list[OutputFile], backend: Backend[Any], context: RunContext
    ) -> MatchSink[Any]:
        genomes, strands = options.genomes, options.search.strands
        tiles = GenomeAligner(reference, genomes, tiles_on_device(backend, genomes.costs, context))
        aligner: BlockAligner = tiles
        if options.method is AlignmentMethod.AUTO:
            # Imported here: alignments by tiles alone do without these.
            from mummergpu.mapping.genomes.whole import AutoAligner
            from mummergpu.pipeline.matrix_opening import matrix_beside

            matrix = partial(matrix_beside, device_of(backend), genomes.costs, context)
            aligner = AutoAligner(reference, genomes, strands, tiles, matrix)
        return open_genome_sink(options, reference, files, aligner, context)

    if options.method is AlignmentMethod.TILE:
        match.run(options.anchors, context, open_sink)
    else:
        with naming_files(options.query_paths):
            if options.method is AlignmentMethod.AUTO:
                match.run(options.anchors, context, open_sink)
            else:
                _run_whole(options, context)
    warn_of_delta(options, context)


def warn_of_delta(options: AlignOptions, context: RunContext) -> None:
    """Warn of input files that programs which read a .delta cannot read."""
    if all(target.format != "delta" for target in options.outputs):
        return
    for path in (options.reference_path, *options.query_paths):
        if fault := _fault_of_fasta(path):
            context.warn(
                f"the .delta names '{path}', {fault}: show-snps, dnadiff and mummerplot read such "
                "files again, and cannot read this one"
            )
        elif not os.path.isabs(named_path(path)):
            context.warn(
                f"the .delta names '{path}' as it is called from here, for a folder of its has a "
                "blank: show-snps, dnadiff and mummerplot find it only from this folder"
            )


def _fault_of_fasta(path: str) -> str:
    """Return why programs that read only FASTA cannot read a file."""
    if os.path.isfile(path):
        with reading(path), open_binary(path) as file:
            head = file.read(_HEAD_BYTES)
        if head.startswith(b">"):
            return "whose lines end with CR and LF" if b"\r" in head else ""
    return "which is not plain FASTA"


def device_of(backend: Backend[Any]) -> CudaStreamsBackend[Any, Any] | None:
    """Return the backend if it has a device, else None."""
    if backend.name != "cuda":
        return None
    from mummergpu.matching.backends.cuda_streams import CudaStreamsBackend

    return backend if isinstance(backend, CudaStreamsBackend) else None


def tiles_on_device(backend: Backend[Any], costs: Costs, context: RunContext) -> TileAligner | None:
    """Return the aligner of tiles on a backend's device, or None if the backend has no device."""
    searching = device_of(backend)
    if searching is None:
        return None
    from mummergpu.cuda.device import DeviceMemoryError
    from mummergpu.viterbi.device.cuda_program import VITERBI_PROGRAM
    from mummergpu.viterbi.device.device_tiles import DeviceTiles

    def align(queries: CodeArray, reference: CodeArray, tiles: TileSet) -> AlignedTiles | None:
        device = searching.device
        with device.current():
            program = searching.program(VITERBI_PROGRAM)
            memory = device.memory()[0] // PART_OF_MEMORY
            aligner = DeviceTiles(device, program, costs, memory, context.stats)
            try:
                return aligner.align(queries, reference, tiles)
            except DeviceMemoryError as error:
                context.notice(
                    f"the processor aligns {tiles.count:,} tiles: no room on the GPU: {error}"
                )
                return None
            finally:
                aligner.free()

    return align


def open_genome_sink(
    options: AlignOptions,
    reference: Reference,
    files: list[OutputFile],
    aligner: BlockAligner,
    context: RunContext,
) -> GenomeSink:
    """Return the sink that aligns blocks of queries and writes the alignments."""
    refuse_proteins(reference)
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


def _run_whole(options: AlignOptions, context: RunContext) -> None:
    """Align each query with each record of the reference, from end to end."""
    from mummergpu.mapping.genomes.whole import WholeAligner
    from mummergpu.pipeline.matrix_opening import open_matrix

    stats = context.stats
    with stats.stage("end_to_end"), ExitStack() as stack:
        outputs = [stack.enter_context(OutputFile(target.path)) for target in options.outputs]
        stack.callback(context.executor.shutdown)
        reading = stack.enter_context(ReadingThreads(options.threads))
        done = QueryProgress(context.progress.tell, 1)
        rules = QueryRules(no_empty=options.no_empty, warn=context.warn)
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
            sink.write(sink.prepare(block, {}))
            done.done(block)
        sink.finish()


@contextmanager
def naming_files(paths: Sequence[str]) -> Iterator[None]:
    """Raise `InputError` with the file of a query whose matrix is too large."""
    from mummergpu.mapping.genomes.whole import MatrixTooLargeError

    try:
        yield
    except MatrixTooLargeError as error:
        path = paths[error.file_number]
        raise InputError(error.message, path, None, error.query) from error
