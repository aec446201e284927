"""Maps reads, in files or in memory, to an index that stays in memory."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace

from mummergpu.api.alignments import Alignments, MappedBlock
from mummergpu.api.engine import Engine
from mummergpu.api.log import context_of
from mummergpu.api.tables import SearchedReference
from mummergpu.errors import OptionError
from mummergpu.index.kmer_index import KmerIndex
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.pipeline.backend_opening import waiting_threads
from mummergpu.pipeline.first_reads import TEMPLATES_OF_LENGTHS
from mummergpu.pipeline.map_options import MapOptions
from mummergpu.pipeline.map_reads import MapJob
from mummergpu.pipeline.mapping_search import length_of_second_pass

Mapped = tuple[MappedBlock, tuple[bytes, ...]]
"""Reads with their alignments, and the lines about read groups of the input."""


def alignments_of(
    found: Sequence[Mapped], searched: SearchedReference, options: MapOptions
) -> Alignments:
    """Return the alignments of some blocks together."""
    groups = found[-1][1] if found else ()
    has_places = options.max_alternatives > 0
    return Alignments([mapped for mapped, _ in found], searched, has_places, groups)


def map_to_index(engine: Engine, options: MapOptions) -> Generator[Mapped]:
    """Yield the reads and their alignments in the order of the reads, and their read groups.

    Other searches of the index run at the same time if it has one group of pages; else they wait
    for the end.
    """
    engine.refuse_if_closed()
    plan = engine.kept_index(engine.options.minimum_length).plan
    if not isinstance(plan, KmerIndex):
        raise OptionError("map", "this index has suffix trees, and maps no reads")
    shortest, device = plan.sampling.shortest_match, options.device
    context = replace(context_of(options.threads), waiting_threads=waiting_threads(device))
    job = MapJob(options, context)
    with ReadingThreads(options.threads) as reading, job.read_stream(reading) as reads:
        first = reads.first_templates(TEMPLATES_OF_LENGTHS)
        how = job.mapping_options(first, shortest)
        second_length = length_of_second_pass(how.seed_length, shortest)
        with engine.lend_search(device, how) as (backend, pages):
            try:
                mapping = job.mapping(job.search(plan, backend, how, second_length, pages))
                sizes = job.pair_sizes(reads, mapping)
                with closing(mapping.results(reads.blocks(), sizes, _both)) as results:
                    for mapped in results:
                        yield mapped, reads.reader.read_groups
            finally:
                # Searches that are under way read the pages, which must not go before they end.
                context.executor.shutdown(wait=True, cancel_futures=True)


def _both(block: ReadBlock, columns: AlignmentColumns) -> MappedBlock:
    """Return a block and its alignments."""
    return block, columns
