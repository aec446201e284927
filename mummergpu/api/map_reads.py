"""Maps reads, in files or in memory, to an index that stays in memory."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from io import StringIO
from itertools import groupby
from typing import Any

from mummergpu.api.alignments import Alignments, MappedBlock
from mummergpu.api.engine import Engine
from mummergpu.api.log import LOG
from mummergpu.api.mapping_requests import (
    Mates,
    OtherPlaces,
    Reads,
    insert_sizes,
    other_places,
    read_sources,
    refuses_long,
    seed_length_asked,
)
from mummergpu.api.requests import device_options, thread_count, truth
from mummergpu.api.tables import SearchedReference
from mummergpu.errors import OptionError
from mummergpu.index.kmer_index import KmerIndex
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.blocks.read_files import ReadSource
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.mapping.options import MOST_READ_BASES, MappingOptions
from mummergpu.mapping.placing.insert_sizes import InsertSizes
from mummergpu.mapping.placing.pair_sizes import PairSizes
from mummergpu.mapping.seeding.seeds import has_enough_windows
from mummergpu.matching.options import DeviceOptions
from mummergpu.pipeline.backend_opening import worker_count
from mummergpu.pipeline.first_reads import (
    TEMPLATES_OF_ESTIMATE,
    choose_seed_length,
    describe_sizes,
    parts_to_measure,
    sizes_of,
    usual_length,
)
from mummergpu.pipeline.map_reads import BLOCK_BASES, BOTH_STRANDS
from mummergpu.pipeline.mapping_groups import MappingWork, ReadMapping, open_mapping
from mummergpu.pipeline.mapping_passes import length_of_second_pass
from mummergpu.pipeline.mapping_search import MappingSearch
from mummergpu.pipeline.plan import choose_block_size
from mummergpu.pipeline.query_progress import QueryProgress
from mummergpu.pipeline.read_stream import ReadStream
from mummergpu.runtime.progress import NullProgress, Work
from mummergpu.runtime.stats import Stats


class MapsReads:
    """An index that maps reads: what `Index` does for them."""

    _engine: Engine
    _searched: SearchedReference
    _path: str

    def map(
        self,
        reads: Reads,
        mates: Mates | None = None,
        *,
        interleaved: bool = False,
        insert_size: Sequence[float] | None = None,
        seed_length: int | None = None,
        max_secondary: int = 0,
        max_xa: int = 0,
        backend: str = "auto",
        threads: int | None = None,
        any_letters: bool = False,
        long_reads: str = "unmapped",
        comments: bool = False,
    ) -> Alignments:
        """Map reads in memory or in files, and return their alignments in memory.

        `mummergpu.map` takes the same reads and writes a file, in little memory. If the index is
        larger than `max_memory`, all reads are searched on one part after the other; the result is
        the same.

        Parameters
        ----------
        reads : iterable of tuple, path, or iterable of paths
            The reads: names and sequences, and after them the qualities of the bases, if there are
            any: a text as in FASTQ, numbers from 0 to 93, or None. Or pairs of such reads. Or the
            files that have reads; a plain text is the name of a file.
        mates : iterable of tuple, path, or iterable of paths, optional
            The second read of each template, if `reads` has the first ones; or the files of them,
            one for each of `reads`.
        interleaved : bool, default False
            Mates alternate in `reads`, or in each of its files.
        insert_size, seed_length, any_letters, long_reads, comments
            As for `mummergpu.map`.
        max_secondary : int, default 0
            The most secondary alignments of a read: rows with flag 256 after its other rows.
        max_xa : int, default 0
            The most other places in the tag XA of an alignment, as for `mummergpu.map`. Each is a
            row with flag 256 after that of the alignment; files have them in the tag.
        backend : str, default "auto"
            ``cpu``, ``cuda``, or the one that is found.
        threads : int, optional
            The number of working threads; by default one for each processor.

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
        request = _request(
            *(reads, mates, interleaved, insert_size, seed_length, max_secondary, max_xa),
            *(backend, threads, any_letters, long_reads, comments),
        )
        with closing(_mapped(self._engine, self._path, request)) as found:
            return self._alignments(list(found), request)

    def stream_map(
        self,
        reads: Reads,
        mates: Mates | None = None,
        *,
        interleaved: bool = False,
        insert_size: Sequence[float] | None = None,
        seed_length: int | None = None,
        max_secondary: int = 0,
        max_xa: int = 0,
        backend: str = "auto",
        threads: int | None = None,
        any_letters: bool = False,
        long_reads: str = "unmapped",
        comments: bool = False,
    ) -> Generator[Alignments]:
        """Yield the alignments of reads block by block, in their order.

        Parameters
        ----------
        reads, mates
            As for `map`. An iterable of reads in memory may yield them as they come; it is asked
            for more in another thread.
        interleaved, insert_size, seed_length, max_secondary, max_xa, backend, threads
            As for `map`.
        any_letters, long_reads, comments
            As for `map`.

        Yields
        ------
        Alignments
            Those of some millions of bases of reads; both mates of a pair are in the same block.
            Memory holds a few blocks. You may stop before the end: closing the iterator ends its
            threads.

        Raises
        ------
        MummergpuError
            If a read, a file or an argument is at fault; for most arguments, before the first block
            is asked for.
        """
        request = _request(
            *(reads, mates, interleaved, insert_size, seed_length, max_secondary, max_xa),
            *(backend, threads, any_letters, long_reads, comments),
        )

        def blocks() -> Generator[Alignments]:
            with closing(_mapped(self._engine, self._path, request)) as found:
                for _, parts in groupby(found, lambda mapped: mapped[0][0].index):
                    yield self._alignments(list(parts), request)

        return blocks()

    def _alignments(self, found: Sequence[_Mapped], request: _Request) -> Alignments:
        groups = found[-1][1] if found else ()
        has_places = request.places.most_alternatives > 0
        return Alignments([mapped for mapped, _ in found], self._searched, has_places, groups)


_Mapped = tuple[MappedBlock, tuple[bytes, ...]]
"""Reads with their alignments, and the lines about read groups of the input."""


@dataclass(frozen=True)
class _Request:
    """What a user asks for.

    Attributes
    ----------
    sources : tuple of ReadFile, MateFiles or ReadsInMemory
        The reads.
    sizes : InsertSizes or None
        The sizes of templates; None to estimate them from the first pairs.
    seed_length : int or None
        The shortest matches that alignments begin with; None to choose it from the reads.
    places : OtherPlaces
        Which other places of reads become rows.
    device : DeviceOptions
        Where to search.
    rules : QueryRules
        Which reads are accepted.
    """

    sources: tuple[ReadSource, ...]
    sizes: InsertSizes | None
    seed_length: int | None
    places: OtherPlaces
    device: DeviceOptions
    rules: QueryRules


def _request(
    reads: Reads,
    mates: Mates | None,
    interleaved: bool,
    insert_size: Sequence[float] | None,
    seed_length: int | None,
    max_secondary: int,
    max_xa: int,
    backend: str,
    threads: int | None,
    any_letters: bool,
    long_reads: str,
    comments: bool,
) -> _Request:
    """Return what the parameters of `MapsReads.map` ask for; refuse what makes no sense."""
    return _Request(
        read_sources(reads, mates, interleaved),
        insert_sizes(insert_size),
        seed_length_asked(seed_length),
        other_places(max_secondary, max_xa),
        device_options(backend, thread_count(threads)),
        QueryRules(
            truth("any_letters", any_letters),
            warn=LOG.warning,
            most_bases=MOST_READ_BASES,
            refuses_long=refuses_long(long_reads),
            keeps_groups=True,
            keeps_comments=truth("comments", comments),
        ),
    )


def _mapped(engine: Engine, name: str, request: _Request) -> Generator[_Mapped]:
    """Yield the reads and their alignments in the order of the reads, and their read groups.

    Parameters
    ----------
    engine : Engine
        Has the index.
    name : str
        The file of the index, for messages.
    request : _Request
        The reads, and how they are mapped.
    """
    engine.refuse_if_closed()
    plan = engine.kept_index(engine.options.minimum_length).plan
    if not isinstance(plan, KmerIndex):
        raise OptionError("map", "this index has suffix trees, and maps no reads")
    shortest = plan.sampling.shortest_match
    places, threads = request.places, request.device.threads
    paths = [path for source in request.sources for path in source.paths]
    size = choose_block_size(None, paths, threads, BLOCK_BASES)
    with (
        ReadingThreads(threads) as reading,
        ReadStream(request.sources, size, Stats(), _ignore, request.rules, reading) as reads,
    ):
        first = reads.first_templates(TEMPLATES_OF_ESTIMATE)
        length = choose_seed_length(
            request.seed_length, first, shortest, name, LOG.warning, "seed_length"
        )
        options = MappingOptions(
            length,
            by_windows=has_enough_windows(usual_length(first), length),
            most_secondary=places.most_alternatives or places.most_secondary,
            has_alternatives=places.most_alternatives > 0,
        )
        second_length = length_of_second_pass(length, shortest)
        with _open_mapping(engine, options, second_length, request.device) as mapping:
            sizes, parts = request.sizes, list(parts_to_measure(first))
            if sizes is None and parts:
                sizes = sizes_of(mapping.template_sizes(parts))
                describe_sizes(sizes, Stats(), LOG.info)
            pair_sizes = PairSizes.of_sizes(sizes, options.unpaired)
            with closing(mapping.results(reads.blocks(), pair_sizes, _both)) as results:
                for mapped in results:
                    yield mapped, reads.read_groups


@contextmanager
def _open_mapping(
    engine: Engine, options: MappingOptions, second_length: int, device: DeviceOptions
) -> Iterator[ReadMapping]:
    """Open what maps reads to the index of an engine, as the command does.

    Other searches of the index run at the same time if it has one group of pages; else they wait
    for the end.

    Parameters
    ----------
    engine : Engine
        Has the index, a table of k-mers.
    options : MappingOptions
        How the first pass maps.
    second_length : int
        The length of the shortest matches of the second pass.
    device : DeviceOptions
        Where to search.
    """
    kept = engine.kept_index(engine.options.minimum_length)
    workers, stats = worker_count(device, device.threads), Stats()
    with engine.lend_search(device, options) as (backend, pages):
        executor = ThreadPoolExecutor(workers, thread_name_prefix="mummergpu")
        done = QueryProgress(_ignore_work, len(BOTH_STRANDS))
        try:
            search = _KeptSearch(
                *(kept.plan, backend, options, second_length, executor, device.threads, stats),
                *(NullProgress(StringIO()), done.searched),
            )
            search.kept_pages = pages
            yield open_mapping(MappingWork(search, executor, workers, stats, _ignore_work, done))
        finally:
            # Searches that are under way read the pages, which must not go before they end.
            executor.shutdown(wait=True, cancel_futures=True)


class _KeptSearch(MappingSearch):
    """Searches pages that stay in memory, and that its backend has loaded already.

    Attributes
    ----------
    kept_pages : sequence of KmerPage or None
        These pages; None for an index whose groups are loaded one after the other.
    """

    kept_pages: Sequence[Any] | None = None

    def load_group(self, number: int) -> None:
        """Load a group of pages in place of the one before (`MappingSearch`)."""
        if self.kept_pages is None:
            super().load_group(number)
        elif self.second is not None and self._loaded is None:
            self.second.load_pages(self.kept_pages)
            self._loaded = number


def _both(block: ReadBlock, columns: AlignmentColumns) -> MappedBlock:
    """Return a block and its alignments."""
    return block, columns


def _ignore(_reads: int, _share: float | None) -> None:
    """Report no progress of reading."""


def _ignore_work(_work: Work) -> None:
    """Report no progress."""
