"""Aligns genomes with an index that stays in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

from mummergpu.api.aligned_genomes import AlignedGenomes
from mummergpu.api.engine import Engine, FoundBlock
from mummergpu.api.log import context_of
from mummergpu.api.query_blocks import QuerySource
from mummergpu.api.tables import SearchedReference
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.bytes.files import PLACE
from mummergpu.mapping.genomes.aligner import GenomeAligner
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.mapping.genomes.options import GenomeOptions
from mummergpu.mapping.genomes.whole import WholeAligner
from mummergpu.matching.options import DeviceOptions, SearchOptions
from mummergpu.output.genomes.sink import AlignedQueries
from mummergpu.pipeline.align_whole import BLOCK_BASES, naming_files
from mummergpu.pipeline.matrix_opening import open_matrix
from mummergpu.viterbi.recurrence.model import AlignmentMethod


def align_to_index(
    engine: Engine,
    searched: SearchedReference,
    queries: QuerySource,
    genomes: GenomeOptions,
    search: SearchOptions,
    method: AlignmentMethod,
    device: DeviceOptions,
) -> AlignedGenomes:
    """Return the alignments of queries with the reference of an index, in memory."""
    context = context_of(device.threads)
    paths = (PLACE,) if queries.paths is None else queries.paths
    with ExitStack() as stack:
        executor = stack.enter_context(context.executor)
        reference = searched.reference
        if method is AlignmentMethod.TILE:
            found = stack.enter_context(closing(engine.find(queries, search, device)))
            aligned = _align_tiles(found, GenomeAligner(reference, genomes), executor)
        else:
            engine.refuse_if_closed()
            blocks = stack.enter_context(queries.blocks(BLOCK_BASES, device.threads))
            matrix = open_matrix(method, genomes.costs, device, context, stack)
            whole = WholeAligner(reference, genomes, search.strands, *matrix)
            aligned = _align_whole(blocks, whole, paths, executor)
        done = [
            AlignedQueries.of_block(block, alignments, with_bases=True)
            for block, alignments in aligned
        ]
    return AlignedGenomes(done, searched, paths)


def _align_tiles(
    searched: Iterable[FoundBlock], aligner: GenomeAligner, executor: ThreadPoolExecutor
) -> Iterator[tuple[QueryBlock, GenomeAlignments]]:
    """Yield blocks with their alignments, whose tiles lie between matches."""
    for block, mems in searched:
        yield block, aligner.align_block(block, mems, executor.map)


def _align_whole(
    blocks: Iterable[QueryBlock],
    aligner: WholeAligner,
    paths: Sequence[str],
    executor: ThreadPoolExecutor,
) -> Iterator[tuple[QueryBlock, GenomeAlignments]]:
    """Yield blocks with their alignments from end to end."""
    for block in blocks:
        with naming_files(paths, block):
            aligned = aligner.align_block(block, {}, executor.map)
        yield block, aligned
