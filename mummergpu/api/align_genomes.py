"""Aligns genomes with an index that stays in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import cast

from mummergpu.api.aligned_genomes import AlignedGenomes
from mummergpu.api.engine import Engine, FoundBlock
from mummergpu.api.genome_requests import alignment_method, genome_options
from mummergpu.api.log import LOG
from mummergpu.api.query_blocks import (
    Queries,
    blocks_of_files,
    names_of_files,
    one_block,
    parts_of_block,
    query_rules,
)
from mummergpu.api.requests import PathLike, device_options, search_options, thread_count
from mummergpu.api.tables import SearchedReference
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.bytes.files import PLACE
from mummergpu.mapping.genomes.aligner import GenomeAligner
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.mapping.genomes.whole import WholeAligner
from mummergpu.output.genomes.format import AlignedQueries
from mummergpu.pipeline.align_whole import BLOCK_BASES, naming_files
from mummergpu.pipeline.matrix_opening import open_matrix
from mummergpu.pipeline.query_volume import estimate_query_bases
from mummergpu.runtime.stats import Stats
from mummergpu.viterbi.methods import AlignmentMethod


class AlignsGenomes:
    """An index that aligns genomes: what `Index` does for them."""

    _engine: Engine
    _searched: SearchedReference

    def align(
        self,
        queries: Queries | PathLike | Sequence[PathLike],
        min_length: int | None = None,
        strands: str = "both",
        mode: str = "mumreference",
        backend: str = "auto",
        threads: int | None = None,
        *,
        min_cluster: int = 65,
        max_gap: int = 90,
        diagonal_difference: int = 5,
        diagonal_factor: float = 0.12,
        break_length: int = 200,
        gap_open: int = 3,
        gap_extend: int = 7,
        extend: bool = True,
        simplify: bool = True,
        method: str = "tile",
        any_letters: bool = False,
    ) -> AlignedGenomes:
        """Align genomes, contigs or long reads, and return the alignments in memory.

        `mummergpu.align` takes files and writes a file. The options and their defaults are those of
        nucmer.

        Parameters
        ----------
        queries : str, bytes, iterable of tuple, pathlib.Path, or list of pathlib.Path
            One sequence, or names and sequences; or the files that hold them.
        min_length : int, optional
            The shortest matches that alignments begin with, in bases; by default what the index was
            made for.
        strands : str, default "both"
            ``both``, ``forward`` or ``reverse``: those of the queries.
        mode : str, default "mumreference"
            ``mumreference`` to begin with matches whose bases occur once in the reference; ``mum``
            for those that occur once in the query, too; ``all`` for all.
        backend : str, default "auto"
            ``cpu``, ``cuda``, or the one that is found: where matches are searched.
        threads : int, optional
            The number of working threads; by default one for each processor.
        min_cluster : int, default 65
            The fewest bases of all matches of a cluster together.
        max_gap : int, default 90
            The most bases of the query between two matches of a cluster.
        diagonal_difference : int, default 5
            How far apart the diagonals of two neighbouring matches of a cluster may be, in bases.
        diagonal_factor : float, default 0.12
            The same as a share of the gap between them; the larger of both counts.
        break_length : int, default 200
            An alignment is extended until it gets no better for so many bases of both sequences
            together.
        gap_open : int, default 3
            The penalty of a gap, beside that of its bases. `mummergpu.align` takes 16 and 1 for
            VCF, which has more of the true differences then.
        gap_extend : int, default 7
            The penalty of each base of a gap; an equal base scores 3, and a different one -7.
        extend : bool, default True
            Whether alignments are extended beyond clusters at all.
        simplify : bool, default True
            Whether alignments that lie inside another one are left out. To find the repeats of a
            genome, align it with itself without that.
        method : str, default "tile"
            ``tile`` to let matches cut the matrix of two sequences into tiles; ``wavefront`` or
            ``streaming`` to align each query with each record of the reference from end to end,
            with the whole matrix, for short sequences with few matches. ``streaming`` keeps the
            matrix in the memory of the host beside a GPU, or in a temporary file. Both take no
            option about matches.
        any_letters : bool, default False
            Accept queries whose letters are mostly not DNA or RNA.

        Returns
        -------
        AlignedGenomes
            In the order of the command's output.

        Raises
        ------
        MummergpuError
            If a query or an argument is at fault.
        """
        count = thread_count(threads)
        length = self._engine.options.minimum_length if min_length is None else min_length
        options = search_options(length, strands, mode)
        device = device_options(backend, count)
        clusters = min_cluster, max_gap, diagonal_difference, diagonal_factor
        genomes = genome_options(*clusters, break_length, gap_open, gap_extend, extend, simplify)
        chosen = alignment_method(method, genomes, options, min_length is not None)
        names = names_of_files(queries)
        rules = query_rules(any_letters, pair=False)
        # Wrong queries are told of before a device is opened.
        given = one_block(cast("Queries", queries), rules) if names is None else None
        bases = estimate_query_bases(names or ())
        if given is not None:
            bases = given.base_count
        searched = None if bases is None else len(options.strands) * bases

        def block_bases() -> int:
            if chosen is not AlignmentMethod.TILE:
                self._engine.refuse_if_closed()
                return BLOCK_BASES
            return self._engine.block_bases(device, options.minimum_length)

        @contextmanager
        def blocks() -> Iterator[Iterator[QueryBlock]]:
            if names is None:
                yield iter(()) if given is None else parts_of_block(given, block_bases())
                return
            with blocks_of_files(names, block_bases(), rules, count) as parts:
                yield parts

        paths = (PLACE,) if names is None else names
        with ExitStack() as stack:
            read = stack.enter_context(blocks())
            executor = stack.enter_context(ThreadPoolExecutor(count, "mummergpu-align"))
            reference = self._searched.reference
            if chosen is AlignmentMethod.TILE:
                mems = self._engine.search(read, options, device, count, searched)
                aligned = _align_tiles(mems, GenomeAligner(reference, genomes), executor)
            else:
                work = stack, executor.map, Stats(), LOG.info
                matrix = open_matrix(chosen, genomes.costs, device, *work)
                whole = WholeAligner(reference, genomes, options.strands, *matrix)
                aligned = _align_whole(read, whole, paths, executor)
            found = [
                AlignedQueries.of_block(block, alignments, with_bases=True)
                for block, alignments in aligned
            ]
        return AlignedGenomes(found, self._searched, paths)


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
