"""Finds the matches of queries with an index that stays in memory."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import cast

from mummergpu.api.device_matches import DeviceMatches
from mummergpu.api.device_search import refuse_several_steps
from mummergpu.api.engine import Engine
from mummergpu.api.matches import Matches
from mummergpu.api.query_blocks import (
    Queries,
    blocks_of_files,
    names_of_files,
    no_queries,
    one_block,
    parts_of_block,
    query_rules,
)
from mummergpu.api.requests import (
    PathLike,
    backend_asked,
    device_options,
    paths_asked,
    refuse_single_mates,
    search_options,
    thread_count,
)
from mummergpu.api.tables import SearchedReference
from mummergpu.errors import OptionError
from mummergpu.input.blocks.queries import QueryBlock, QueryRules
from mummergpu.matching.merge import join_all
from mummergpu.matching.options import DeviceOptions, SearchOptions
from mummergpu.pipeline.query_volume import estimate_query_bases


class FindsMatches:
    """An index that finds matches: what `Index` does for them."""

    _engine: Engine
    _searched: SearchedReference

    def match(
        self,
        queries: Queries,
        min_length: int | None = None,
        strands: str = "both",
        mode: str = "all",
        backend: str = "auto",
        threads: int | None = None,
        *,
        any_letters: bool = False,
        pair: bool = False,
    ) -> Matches:
        """Return all maximal exact matches of queries in memory.

        Parameters
        ----------
        queries : str, bytes, or iterable of tuple
            One sequence, or names and sequences.
        min_length : int, optional
            The fewest bases of a match; by default what the index was made for.
        strands : str, default "both"
            ``both``, ``forward`` or ``reverse``.
        mode : str, default "all"
            ``all``; ``mumreference`` for matches whose bases occur once in the reference; ``mum``
            for those that occur once in the query, too.
        backend : str, default "auto"
            ``cpu``, ``cuda``, or the one that is expected to be faster.
        threads : int, optional
            The number of working threads; by default one for each processor.
        any_letters : bool, default False
            Accept queries whose letters are mostly not DNA or RNA.
        pair : bool, default False
            The queries are pairs of reads, first and second mates in turn. Their names end in
            ``/1`` and ``/2``; mates whose names differ are an error.

        Returns
        -------
        Matches
            In the order of the command's output.

        Raises
        ------
        MummergpuError
            If a sequence or an argument is at fault.
        """
        if isinstance(queries, os.PathLike):
            raise OptionError("queries", "'match' takes sequences; 'stream' reads files")
        block = one_block(queries, query_rules(any_letters, pair))
        if block is None:
            return Matches.of_block(no_queries(), {}, self._searched)
        count = thread_count(threads)
        options = search_options(self._length(min_length), strands, mode)
        searched = block.base_count * len(options.strands)
        length = options.minimum_length
        backend = backend_asked(backend)
        name = self._engine.choose_backend(backend, searched, length, count)
        device = device_options(name, count)
        parts = list(parts_of_block(block, self._engine.block_bases(device, length)))
        results = self._engine.search(iter(parts), options, device, count, searched)
        found = [mems for _, mems in results]
        mems = {strand: join_all([one[strand] for one in found]) for strand in options.strands}
        return Matches.of_block(block, mems, self._searched)

    def stream(
        self,
        *paths: PathLike,
        min_length: int | None = None,
        strands: str = "both",
        mode: str = "all",
        backend: str = "auto",
        threads: int | None = None,
        any_letters: bool = False,
        pair: bool = False,
    ) -> Generator[Matches]:
        """Yield the matches of the queries in files, block by block, in order.

        Parameters
        ----------
        *paths : path
            FASTA, FASTQ, SAM, BAM or CRAM, plain or compressed.
        min_length, strands, mode, backend, threads, any_letters
            As for `match`.
        pair : bool, default False
            As for `match`, but mates may also be in two files in turn.

        Yields
        ------
        Matches
            The matches of some millions of bases of queries, also of queries without any. Memory
            holds a few blocks. You may stop before the end: closing the iterator ends its threads.

        Raises
        ------
        MummergpuError
            If a file or an argument is at fault; for arguments, before the first block is asked
            for.
        """
        names, rules = paths_asked("paths", paths), query_rules(any_letters, pair)
        refuse_single_mates(names, rules.paired)
        count, backend = thread_count(threads), backend_asked(backend)
        options = search_options(self._length(min_length), strands, mode)
        length = options.minimum_length
        searched = None
        if (bases := estimate_query_bases(names)) is not None:
            searched = bases * len(options.strands)
            backend = self._engine.choose_backend(backend, searched, length, count)
        device = device_options(backend, count)
        block_bases = self._engine.block_bases(device, length)

        def found() -> Generator[Matches]:
            with blocks_of_files(names, block_bases, rules, count) as blocks:
                results = self._engine.search(blocks, options, device, count, searched)
                for block, mems in results:
                    yield Matches.of_block(block, mems, self._searched)

        return found()

    def match_on_device(
        self,
        queries: Queries | PathLike | Sequence[PathLike],
        min_length: int | None = None,
        strands: str = "both",
        mode: str = "all",
        threads: int | None = None,
        *,
        any_letters: bool = False,
        pair: bool = False,
    ) -> DeviceMatches:
        """Return all maximal exact matches as columns in the memory of the GPU that finds them.

        Parameters
        ----------
        queries : str, bytes, iterable of tuple, pathlib.Path, or list of pathlib.Path
            Queries in memory, as for `match`, or the files that hold them.
        min_length, strands, threads, any_letters, pair
            As for `match`, and for `stream` if they are in files.
        mode : str, default "all"
            Only ``all``.

        Returns
        -------
        DeviceMatches
            They stay there when the index is closed.

        Raises
        ------
        MummergpuError
            If a query or an argument is at fault, or no GPU can do it in one step; it says why.
        """
        options = search_options(self._length(min_length), strands, mode)
        device = device_options("cuda", thread_count(threads))
        rules = query_rules(any_letters, pair)
        refuse_several_steps(self._engine.options, options)
        kept: list[QueryBlock] = []
        with self._blocks_for_device(queries, options, device, rules, kept) as blocks:
            columns = self._engine.find_on_device(blocks, options, device)
        return DeviceMatches(kept, columns, self._searched, options.strands)

    @contextmanager
    def _blocks_for_device(
        self,
        queries: Queries | PathLike | Sequence[PathLike],
        options: SearchOptions,
        device: DeviceOptions,
        rules: QueryRules,
        kept: list[QueryBlock],
    ) -> Iterator[Iterator[QueryBlock]]:
        """Give the queries in blocks that suit the device, and keep them on the host too."""

        def keep_each(blocks: Iterator[QueryBlock]) -> Iterator[QueryBlock]:
            for block in blocks:
                kept.append(block)
                yield block

        names = names_of_files(queries)
        if names is not None:
            refuse_single_mates(names, rules.paired)
        else:
            # Wrong queries are told of before a device is opened.
            whole = one_block(cast("Queries", queries), rules)
            kept += [] if whole is None else [whole]
        block_bases = self._engine.block_bases(device, options.minimum_length)
        if names is None:
            yield chain.from_iterable(parts_of_block(block, block_bases) for block in kept)
        else:
            with blocks_of_files(names, block_bases, rules, device.threads) as blocks:
                yield keep_each(blocks)

    def _length(self, asked: int | None) -> int:
        """Return the fewest bases of a match: by default what the index was made for."""
        return self._engine.options.minimum_length if asked is None else asked
