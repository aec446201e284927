"""An index of a reference in memory: build or open it, and search it as often as you like."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from mummergpu.api.align_genomes import AlignsGenomes
from mummergpu.api.device_matches import DeviceMatches
from mummergpu.api.engine import LOG, Engine
from mummergpu.api.map_reads import MapsReads
from mummergpu.api.matches import Matches, SearchedReference
from mummergpu.api.on_device import match_on_device
from mummergpu.api.query_blocks import (
    Queries,
    blocks_of_files,
    no_queries,
    one_block,
    parts_of_block,
    query_rules,
)
from mummergpu.api.reference_source import source_of
from mummergpu.api.requests import (
    PathLike,
    device_options,
    positive,
    refuse_single_mates,
    search_options,
    thread_count,
)
from mummergpu.errors import OptionError
from mummergpu.index.file import IndexFile
from mummergpu.index.kind_of_file import kind_of_file
from mummergpu.index.options import DEFAULT_MINIMUM_LENGTH, IndexOptions, KmerOptions
from mummergpu.index.reference_index import BuildWork
from mummergpu.index.verification import require_reference, verify
from mummergpu.input.memory import NamedSequence
from mummergpu.input.reference import Reference, read_reference
from mummergpu.matching.merge import join_all
from mummergpu.pipeline.build_index import open_index_file, write_index
from mummergpu.pipeline.query_volume import estimate_query_bases
from mummergpu.runtime.closing import ClosedAtEnd
from mummergpu.runtime.processors import processor_count
from mummergpu.runtime.stats import Stats

PURPOSES = (None, "reads", "genomes", "memory")


class Index(ClosedAtEnd, MapsReads, AlignsGenomes):
    """The index of a reference, from `Index.build` or `Index.open`.

    Several threads may search one index at the same time. It is a context manager; without a
    ``with`` block, its memory goes when nothing refers to it any more.

    Attributes
    ----------
    names : list of str
        The names of the records of the reference, cut at the first white space.
    lengths : ndarray, dtype=int64, shape=(n_records,)
        Their bases.
    min_length : int
        The length, in bases, of the shortest matches that the index was made for.

    Examples
    --------
    >>> import mummergpu
    >>> index = mummergpu.Index.build([("one", "ACGTACGTTGCATTAGCAGGAT")], min_length=8)
    >>> index
    <mummergpu.Index of 1 record, 22 bases, for matches of 8 bases or more>
    >>> print(index.match([("q", "ATCCTGCTAATG")], min_length=8))
    1 matches of 1 queries
      q:0-12 - one:10-22
    """

    def __init__(self, engine: Engine, path: str) -> None:
        self._engine = engine
        self._path = path
        self._searched = SearchedReference(engine.reference)

    @classmethod
    def build(
        cls,
        reference: PathLike | Iterable[NamedSequence],
        min_length: int = DEFAULT_MINIMUM_LENGTH,
        *,
        purpose: str | None = None,
        threads: int | None = None,
        max_memory: int | None = None,
        any_letters: bool = False,
    ) -> Index:
        """Build the index of a reference.

        Parameters
        ----------
        reference : path, or iterable of tuple
            A FASTA file, plain or compressed, or names and sequences.
        min_length : int, default 20
            The length, in bases, of the shortest matches to look for.
        purpose : str, optional
            ``reads`` for many queries, ``genomes`` for queries about as long as the reference,
            ``memory`` for a small index.
        threads : int, optional
            The number of working threads; by default one for each processor.
        max_memory : int, optional
            The most bytes for the reference and its tables; by default half of what is free. Tables
            that do not fit are built again by each search.
        any_letters : bool, default False
            Accept records whose letters are mostly not DNA or RNA.

        Returns
        -------
        Index
            The index, ready to be searched.

        Raises
        ------
        MummergpuError
            If the input or an argument is at fault.
        """
        count = thread_count(threads)
        if purpose not in PURPOSES:
            raise OptionError("purpose", f"{purpose!r} is none of {', '.join(map(repr, PURPOSES))}")
        options = IndexOptions(
            positive("min_length", min_length), KmerOptions(purpose=purpose), max_memory
        )
        source = source_of(reference, any_letters, count)
        engine = Engine(source, options)
        engine.prepare(count)
        return cls(engine, source.path)

    @classmethod
    def open(cls, path: PathLike, *, max_memory: int | None = None) -> Index:
        """Open an index file, made by `save` or by ``mummergpu index``.

        Parameters
        ----------
        path : path
            The file. It is mapped into memory, which processes share.
        max_memory : int, optional
            The most bytes of tables that are searched together; by default half of what is free.

        Returns
        -------
        Index
            The index, ready to be searched.

        Raises
        ------
        InputError
            If the file is not an index of this version, or damaged.
        """
        name = os.fspath(path)
        file = IndexFile(name)
        options = IndexOptions(file.header.minimum_length, kind_of_file(file), max_memory)
        return cls(Engine(file, options), name)

    @property
    def names(self) -> list[str]:
        """The names of the records of the reference."""
        return list(self._searched.names)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The bases of each record: ndarray, dtype=int64, shape=(n_records,)."""
        return self._reference.record_lengths.copy()

    @property
    def min_length(self) -> int:
        """The length, in bases, of the shortest matches that the index was made for."""
        return self._engine.options.minimum_length

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
        names = tuple(os.fspath(path) for path in paths)
        if not names:
            raise OptionError("paths", "name at least one file")
        refuse_single_mates(names, pair)
        count = thread_count(threads)
        options = search_options(self._length(min_length), strands, mode)
        length = options.minimum_length
        searched = None
        if (bases := estimate_query_bases(names)) is not None:
            searched = bases * len(options.strands)
            backend = self._engine.choose_backend(backend, searched, length, count)
        device = device_options(backend, count)
        block_bases = self._engine.block_bases(device, length)
        rules = query_rules(any_letters, pair)

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
        count = thread_count(threads)
        rules = query_rules(any_letters, pair)
        return match_on_device(self._engine, self._searched, queries, options, count, rules)

    def save(self, path: PathLike) -> None:
        """Write the index to a file, which `open` and the command read.

        Parameters
        ----------
        path : path
            The file, which appears when it is complete.

        Raises
        ------
        MummergpuError
            If the file cannot be written.
        """
        engine = self._engine
        if isinstance(engine.source, IndexFile):
            raise OptionError("save", f"the index is in the file '{self._path}' already")
        with ThreadPoolExecutor(processor_count()) as executor:
            work = BuildWork(executor, processor_count(), Stats(), _do_nothing)
            plan = engine.kept_index(self.min_length).plan
            with open_index_file(os.fspath(path)) as output:
                write_index(plan, self.min_length, output, work, LOG.debug)

    def verify(self, reference: PathLike | None = None) -> None:
        """Compare the whole index file with its checksums, and with its reference.

        Parameters
        ----------
        reference : path, optional
            A FASTA file; the index must be of this reference.

        Raises
        ------
        InputError
            If the index is damaged, or of another reference; the message names the first
            difference.
        OptionError
            If the index is not in a file.
        """
        file = self._engine.source
        if not isinstance(file, IndexFile):
            raise OptionError("verify", "only an index in a file can be damaged")
        with ThreadPoolExecutor(processor_count()) as executor:
            verify(file, executor.map)
            if reference is not None:
                require_reference(file, read_reference(os.fspath(reference)), executor.map)

    def close(self) -> None:
        """Release the memory and the devices; searches that are under way must have ended."""
        self._engine.close()

    def __repr__(self) -> str:
        records, bases = len(self._reference.names), int(self._reference.record_lengths.sum())
        noun = "record" if records == 1 else "records"
        return (
            f"<mummergpu.Index of {records:,} {noun}, {bases:,} bases, for matches of "
            f"{self.min_length} bases or more>"
        )

    def _length(self, asked: int | None) -> int:
        return self.min_length if asked is None else asked

    @property
    def _reference(self) -> Reference:
        return self._engine.reference


def _do_nothing() -> None:
    """Report nothing when a page is ready."""
