"""An index of a reference in memory: build or open it, and search it as often as you like."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from mummergpu.api.align_genomes import AlignsGenomes
from mummergpu.api.engine import Engine
from mummergpu.api.find_matches import FindsMatches
from mummergpu.api.log import LOG
from mummergpu.api.map_reads import MapsReads
from mummergpu.api.requests import (
    PathLike,
    meaning,
    memory_asked,
    path_asked,
    positive,
    thread_count,
    truth,
)
from mummergpu.api.tables import SearchedReference
from mummergpu.errors import OptionError
from mummergpu.index.file import IndexFile, kind_of_file
from mummergpu.index.format import is_index
from mummergpu.index.options import DEFAULT_MINIMUM_LENGTH, IndexOptions, KmerOptions
from mummergpu.index.reference_index import BuildWork
from mummergpu.index.verification import require_reference, verify
from mummergpu.input.blocks.memory import NamedSequence, reference_in_memory
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.reference import Reference, read_reference
from mummergpu.pipeline.build_index import open_index_file, write_index
from mummergpu.runtime.closing import ClosedAtEnd
from mummergpu.runtime.processors import processor_count
from mummergpu.runtime.stats import Stats

PURPOSES = ("reads", "genomes", "memory")


class Index(ClosedAtEnd, FindsMatches, MapsReads, AlignsGenomes):
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
    1 match of 1 query
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
        if purpose is not None:
            purpose = meaning("purpose", purpose, {name: name for name in PURPOSES})
        options = IndexOptions(
            positive("min_length", min_length),
            KmerOptions(purpose=purpose),
            memory_asked(max_memory),
        )
        source = _source_of(reference, truth("any_letters", any_letters), count)
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
        name, memory = path_asked("path", path), memory_asked(max_memory)
        file = IndexFile(name)
        options = IndexOptions(file.header.minimum_length, kind_of_file(file), memory)
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
        engine, name = self._engine, path_asked("path", path)
        if isinstance(engine.source, IndexFile):
            raise OptionError("save", f"the index is in the file '{self._path}' already")
        with ThreadPoolExecutor(processor_count()) as executor:
            work = BuildWork(executor, processor_count(), Stats(), _do_nothing)
            plan = engine.kept_index(self.min_length).plan
            with open_index_file(name) as output:
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
        name = None if reference is None else path_asked("reference", reference)
        with ThreadPoolExecutor(processor_count()) as executor:
            verify(file, executor.map)
            if name is not None:
                require_reference(file, read_reference(name), executor.map)

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

    @property
    def _reference(self) -> Reference:
        return self._engine.reference


def _source_of(
    reference: PathLike | Iterable[NamedSequence], any_letters: bool, threads: int
) -> Reference:
    """Return the records of a FASTA file, or those in memory."""
    if not isinstance(reference, str | os.PathLike):
        return reference_in_memory(reference, any_letters=any_letters)
    path = path_asked("reference", reference)
    if is_index(path):
        raise OptionError("reference", f"'{path}' is an index already; use Index.open")
    with ReadingThreads(threads) as reading:
        return read_reference(path, any_letters=any_letters, threads=reading)


def _do_nothing() -> None:
    """Report nothing when a page is ready."""
