"""An index of a reference in memory: build or open it once, and search it any number of times."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import groupby
from os.path import abspath
from typing import Unpack

import numpy as np
import numpy.typing as npt

from mummergpu.api.align_run import AlignKeywords, AlignRequest, align_to_index
from mummergpu.api.aligned_genomes import AlignedGenomes
from mummergpu.api.alignments import Alignments
from mummergpu.api.engine import Engine
from mummergpu.api.log import LOG, context_of
from mummergpu.api.map_run import alignments_of, map_to_index
from mummergpu.api.mapping_requests import MapKeywords, MapRequest, Mates, Reads
from mummergpu.api.matches import DeviceMatches, Matches
from mummergpu.api.query_blocks import Queries, QuerySource, no_queries
from mummergpu.api.requests import PathLike, device_options, showing, thread_count
from mummergpu.api.tables import SearchedReference
from mummergpu.errors import OptionError
from mummergpu.index.file import IndexFile, kind_of_file
from mummergpu.index.format import is_index
from mummergpu.index.options import DEFAULT_MINIMUM_LENGTH, IndexOptions, KmerOptions
from mummergpu.index.verification import require_reference, verify
from mummergpu.input.blocks.memory import NamedSequence, reference_in_memory
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.reference import Reference, read_reference
from mummergpu.matching.options import SearchOptions
from mummergpu.matching.row_order import join_all
from mummergpu.pipeline.build_index import open_index_file, write_index
from mummergpu.runtime.closing import Closing
from mummergpu.runtime.option_values import check_bool, optional_positive
from mummergpu.runtime.option_values import path as path_of
from mummergpu.runtime.option_values import paths as paths_of
from mummergpu.runtime.processors import processor_count


class Index(Closing):
    """The index of a reference, from `Index.build` or `Index.open`.

    Several threads may search one index at the same time. It is a context manager; without a
    ``with`` block, its memory is freed when nothing refers to it any more. A process that unpickles
    it opens its file again, or rebuilds it from the same sequences.

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
    >>> print(index.match([("q", "ATCCTGCTAATG")], strands="both"))
    1 match of 1 query
      q:0-12 - one:10-22
    """

    def __init__(self, engine: Engine, path: str, remake: Callable[[], Index]) -> None:
        self._engine = engine
        self._path = path
        self._remake = remake
        self._searched = SearchedReference(engine.reference)

    def __reduce__(self) -> tuple[Callable[[], Index], tuple[()]]:
        """Pickle the path of the file, or the sequences to build the index from."""
        self._engine.refuse_if_closed()
        return self._remake, ()

    @classmethod
    def build(
        cls,
        reference: PathLike | Iterable[NamedSequence],
        min_length: int = DEFAULT_MINIMUM_LENGTH,
        *,
        index_for: str | None = None,
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
            The minimum length of a match, in bases.
        index_for : str, optional
            ``reads`` for many queries, ``genomes`` for queries about as long as the reference,
            ``memory`` for a small index.
        threads : int, optional
            The number of threads; by default one for each processor.
        max_memory : int, optional
            The memory limit for the reference and its tables, in bytes; by default half of the
            free memory. Tables that do not fit are built again by each search.
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
        options = IndexOptions(min_length, KmerOptions(purpose=index_for), max_memory)
        source = _source_of(reference, check_bool("any_letters", any_letters), count)
        found = cls._of_reference(source, options, threads)
        if os.path.isfile(source.path):
            found._remake = partial(
                cls.build,
                abspath(source.path),
                min_length,
                index_for=index_for,
                threads=threads,
                max_memory=max_memory,
                any_letters=any_letters,
            )
        return found

    @classmethod
    def _of_reference(cls, source: Reference, options: IndexOptions, threads: int | None) -> Index:
        engine = Engine(source, options)
        engine.prepare(thread_count(threads))
        # Pickle the bases only once, and no caches.
        own = replace(source, padded=None)
        return cls(engine, source.path, partial(cls._of_reference, own, options, threads))

    @classmethod
    def open(cls, path: PathLike, *, max_memory: int | None = None) -> Index:
        """Open an index file, made by `save` or by ``mummergpu index``.

        Parameters
        ----------
        path : path
            The file. It is mapped into memory, which processes share.
        max_memory : int, optional
            The memory limit for tables, in bytes; by default half of the free memory.

        Returns
        -------
        Index
            The index, ready to be searched.

        Raises
        ------
        InputError
            If the file is not an index of this version, or damaged.
        """
        name, memory = path_of("path", path), optional_positive("max_memory", max_memory)
        file = IndexFile(name)
        if file.circular.size:
            text = f"'{name}' is an index with circular records, which mummergpu.map takes"
            raise OptionError("path", text)
        options = IndexOptions(file.header.minimum_length, kind_of_file(file), memory)
        return cls(Engine(file, options), name, partial(cls.open, abspath(name), max_memory=memory))

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
        engine, name = self._engine, path_of("path", path)
        if isinstance(engine.source, IndexFile):
            raise OptionError("save", f"the index is in the file '{self._path}' already")
        context = context_of(processor_count())
        with context.executor:
            plan = engine.kept_index(self.min_length).plan
            with open_index_file(name) as output:
                write_index(plan, self.min_length, output, context.build_work(), LOG.debug)

    def verify(self, reference: PathLike | None = None) -> None:
        """Compare the whole index file with its checksums, and with its reference.

        Parameters
        ----------
        reference : path, optional
            A FASTA file; the index must be of this reference.

        Raises
        ------
        InputError
            If the index is damaged, or has another reference; the message names the first
            difference.
        OptionError
            If the index is not in a file.
        """
        file = self._engine.source
        if not isinstance(file, IndexFile):
            raise OptionError("verify", "only an index in a file can be damaged")
        name = None if reference is None else path_of("reference", reference)
        with ThreadPoolExecutor(processor_count()) as executor:
            verify(file, executor.map)
            if name is not None:
                require_reference(file, read_reference(name), executor.map)

    def match(
        self,
        queries: Queries,
        min_length: int | None = None,
        strands: str = "forward",
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
            One sequence, or names and sequences; records of pysam, pyhmmer and Biopython, and its
            ``Seq``, are taken as well.
        min_length : int, optional
            The minimum length of a match, in bases; by default that of the index.
        strands : str, default "forward"
            ``both``, ``forward`` or ``reverse``.
        mode : str, default "all"
            ``all``; ``mumreference`` for matches whose bases occur once in the reference; ``mum``
            for those that occur once in the query, too.
        backend : str, default "auto"
            ``cpu``, ``cuda``, or ``auto``: the one that is expected to be faster.
        threads : int, optional
            The number of threads; by default one for each processor.
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
        source = QuerySource.of(queries, any_letters, pair)
        if source.block is None:
            return Matches.of_block(no_queries(), {}, self._searched)
        options = SearchOptions.of_words(self._length(min_length), strands, mode)
        results = self._engine.find(source, options, device_options(backend, threads))
        found = [mems for _, mems in results]
        mems = {strand: join_all([one[strand] for one in found]) for strand in options.strands}
        return Matches.of_block(source.block, mems, self._searched)

    def stream(
        self,
        *paths: PathLike,
        min_length: int | None = None,
        strands: str = "forward",
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
            If a file or an argument is at fault; for arguments, before the first block.
        """
        source = QuerySource.of_files(paths_of("paths", paths), any_letters, pair)
        options = SearchOptions.of_words(self._length(min_length), strands, mode)
        found = self._engine.find(source, options, device_options(backend, threads))

        def blocks() -> Generator[Matches]:
            with closing(found):
                for block, mems in found:
                    yield Matches.of_block(block, mems, self._searched)

        return blocks()

    def match_on_device(
        self,
        queries: Queries | PathLike | Sequence[PathLike],
        min_length: int | None = None,
        strands: str = "forward",
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
            If a query or an argument is at fault, or no GPU can do it in one step.
        """
        options = SearchOptions.of_words(self._length(min_length), strands, mode)
        device = device_options("cuda", threads)
        source = QuerySource.of(queries, any_letters, pair)
        kept, columns = self._engine.find_on_device(source, options, device)
        return DeviceMatches(kept, columns, self._searched, options.strands)

    @showing(MapRequest)
    def map(
        self, reads: Reads, mates: Mates | None = None, **keywords: Unpack[MapKeywords]
    ) -> Alignments:
        """Map reads in memory or in files, and return their alignments in memory.

        `mummergpu.map` takes the same reads and writes a file, in little memory. If the index is
        larger than `max_memory`, all reads are searched on one part after the other; the result is
        the same.

        Parameters
        ----------
        reads : str, iterable of tuple, path, or iterable of paths
            Tuples of name, sequence and, optionally, qualities (text as in FASTQ, numbers from 0
            to 93, or None); pairs of such tuples; records of pysam and Biopython; or files of
            reads. A text is a read if it has only A, C, G, T, U and N, and no file has this name.
        mates : iterable of tuple, path, or iterable of paths, optional
            The second mates, if `reads` has the first ones; or files of them, one for each of
            `reads`.
        **keywords
            As for `mummergpu.map`. Secondary alignments are rows with flag 256 after the other
            rows of a read. So are alternative hits (`max_xa`), after the row of their alignment.

        Returns
        -------
        Alignments
            Of all reads, in their order, with their bases and qualities.

        Raises
        ------
        MummergpuError
            If a read, a file or an argument is at fault, or this index cannot map: it has suffix
            trees. An index of `min_length` 16 suits reads of all lengths.

        Examples
        --------
        >>> import mummergpu
        >>> bases = "ACGTTGCATTAGCAGGATCCATTGACCAGTCAATCGGATTCCGATAGCAATTCGGACTTAC"
        >>> index = mummergpu.Index.build([("chr", bases)], min_length=16)
        >>> found = index.map([("one", bases[5:45]), ("two", bases[10:50], "F" * 40)])
        >>> [(row.name, row.reference, row.position, row.cigar) for row in found]
        [('one', 'chr', 5, '40M'), ('two', 'chr', 10, '40M')]
        """
        options = MapRequest(**keywords).options(self._path, reads, mates)
        with closing(map_to_index(self._engine, options)) as found:
            return alignments_of(list(found), self._searched, options)

    @showing(MapRequest)
    def stream_map(
        self, reads: Reads, mates: Mates | None = None, **keywords: Unpack[MapKeywords]
    ) -> Generator[Alignments]:
        """Yield the alignments of reads block by block, in their order.

        Parameters
        ----------
        reads, mates
            As for `map`. An iterable of reads is consumed in another thread.
        **keywords
            As for `map`.

        Yields
        ------
        Alignments
            The alignments of some millions of bases of reads; both mates of a pair are in the same
            block. Memory holds a few blocks. You may stop before the end: closing the iterator
            ends its threads.

        Raises
        ------
        MummergpuError
            If a read, a file or an argument is at fault; for most arguments, before the first
            block.
        """
        options = MapRequest(**keywords).options(self._path, reads, mates)

        def blocks() -> Generator[Alignments]:
            with closing(map_to_index(self._engine, options)) as found:
                for _, parts in groupby(found, lambda mapped: mapped[0][0].index):
                    yield alignments_of(list(parts), self._searched, options)

        return blocks()

    @showing(AlignRequest)
    def align(
        self,
        queries: Queries | PathLike | Sequence[PathLike],
        min_length: int | None = None,
        strands: str = "both",
        mode: str = "mumreference",
        backend: str = "auto",
        threads: int | None = None,
        **keywords: Unpack[AlignKeywords],
    ) -> AlignedGenomes:
        """Align genomes, contigs or long reads, and return the alignments in memory.

        `mummergpu.align` takes files and writes a file. The options and their defaults are those of
        nucmer.

        Parameters
        ----------
        queries : str, bytes, iterable of tuple, pathlib.Path, or list of pathlib.Path
            One sequence, or names and sequences; or the files that hold them.
        min_length : int, optional
            The minimum length of the matches that alignments begin with, in bases; by default
            that of the index.
        strands : str, default "both"
            The strands of the queries: ``both``, ``forward`` or ``reverse``.
        mode : str, default "mumreference"
            ``mumreference`` to begin with matches whose bases occur once in the reference; ``mum``
            for those that occur once in the query, too; ``all`` for all.
        backend : str, default "auto"
            ``cpu``, ``cuda``, or ``auto``: the one that is found, for the search.
        threads : int, optional
            The number of threads; by default one for each processor.
        **keywords
            As for `mummergpu.align`.

        Returns
        -------
        AlignedGenomes
            In the order of the command's output.

        Raises
        ------
        MummergpuError
            If a query or an argument is at fault.
        """
        length = self.min_length if min_length is None else min_length
        search = SearchOptions.of_words(length, strands, mode)
        genomes, method = AlignRequest(**keywords).job(search, min_length is not None)
        source = QuerySource.of(queries)
        device = device_options(backend, threads)
        return align_to_index(self._engine, self._searched, source, genomes, search, method, device)

    def close(self) -> None:
        """Release the memory and the devices; searches that are under way must have ended."""
        self._engine.close()

    def _length(self, asked: int | None) -> int:
        """Return the minimum match length in bases: by default that of the index."""
        return self.min_length if asked is None else asked

    def __repr__(self) -> str:
        records, bases = len(self._reference.names), int(self._reference.record_lengths.sum())
        noun = "record" if records == 1 else "records"
        return (
            f"<mummergpu.Index of {records:,} {noun}, {bases:,} bases, for matches of "
            f"{self.min_length} bases or more>"
        )

    @property
    def _reference(self) -> Reference:
        return self._engine.reference


def _source_of(
    reference: PathLike | Iterable[NamedSequence], any_letters: bool, threads: int
) -> Reference:
    """Return the records of a FASTA file, or those in memory."""
    if not isinstance(reference, str | os.PathLike):
        return reference_in_memory(reference, any_letters=any_letters)
    path = path_of("reference", reference)
    if is_index(path):
        raise OptionError("reference", f"'{path}' is an index already; use Index.open")
    with ReadingThreads(threads) as reading:
        return read_reference(path, any_letters=any_letters, threads=reading, warn=LOG.warning)
