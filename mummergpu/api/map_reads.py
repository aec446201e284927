"""Maps the reads in files to an index that stays in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mummergpu.api.alignments import Alignments, MappedBlock
from mummergpu.api.engine import LOG, Engine
from mummergpu.api.mapping_requests import (
    OtherPlaces,
    insert_sizes,
    other_places,
    read_sources,
    refuses_long,
)
from mummergpu.api.read_mapping import open_read_mapping
from mummergpu.api.requests import PathLike, device_options, positive, thread_count
from mummergpu.errors import OptionError
from mummergpu.index.kmer_index import KmerIndex
from mummergpu.input.queries import QueryRules
from mummergpu.input.read_block import ReadBlock
from mummergpu.input.read_files import ReadSource
from mummergpu.input.reading_threads import ReadingThreads
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.mapping.options import MOST_READ_BASES, MappingOptions
from mummergpu.mapping.placing.insert_sizes import InsertSizes
from mummergpu.mapping.placing.pair_sizes import PairSizes
from mummergpu.mapping.seeding.seeds import has_enough_windows
from mummergpu.matching.options import DeviceOptions
from mummergpu.pipeline.first_reads import (
    TEMPLATES_OF_ESTIMATE,
    choose_seed_length,
    describe_sizes,
    parts_to_measure,
    sizes_of,
    usual_length,
)
from mummergpu.pipeline.mapping_passes import length_of_second_pass
from mummergpu.pipeline.read_stream import ReadStream
from mummergpu.runtime.stats import Stats


class MapsReads:
    """An index that maps reads: what `Index` does for them."""

    _engine: Engine
    _path: str

    def map(
        self,
        reads: PathLike | Iterable[PathLike],
        mates: PathLike | Iterable[PathLike] | None = None,
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
        """Map the reads in files, and return their alignments in memory.

        `mummergpu.map` takes the same files and writes a file, in little memory. If the index is
        larger than `max_memory`, all reads are searched on one part after the other; the result is
        the same.

        Parameters
        ----------
        reads, mates, interleaved, insert_size, seed_length, any_letters, long_reads, comments
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
            If a file or an argument is at fault, or this index cannot map: it has suffix trees. An
            index of `min_length` 16 suits reads of all lengths.
        """
        count = thread_count(threads)
        return map_reads(
            self._engine,
            self._path,
            read_sources(reads, mates, interleaved),
            None if seed_length is None else positive("seed_length", seed_length),
            insert_sizes(insert_size),
            other_places(max_secondary, max_xa),
            device_options(backend, count),
            QueryRules(
                any_letters,
                warn=LOG.warning,
                most_bases=MOST_READ_BASES,
                refuses_long=refuses_long(long_reads),
                keeps_groups=True,
                keeps_comments=comments,
            ),
        )


def map_reads(
    engine: Engine,
    name: str,
    sources: tuple[ReadSource, ...],
    seed_length: int | None,
    sizes: InsertSizes | None,
    places: OtherPlaces,
    device: DeviceOptions,
    rules: QueryRules,
) -> Alignments:
    """Return the alignments of all reads (`Index.map`).

    Parameters
    ----------
    engine : Engine
        Searches the index.
    name : str
        The file of the index, for messages.
    sources : tuple of ReadFile or MateFiles
        The files of reads.
    seed_length : int or None
        The shortest matches that alignments begin with; None to choose it from the reads.
    sizes : InsertSizes or None
        The sizes of templates; None to estimate them from the first pairs.
    places : OtherPlaces
        Which other places of reads become rows.
    device : DeviceOptions
        Where to search.
    rules : QueryRules
        Which reads are accepted.

    Returns
    -------
    Alignments
        In the order of the reads.
    """
    threads = device.threads
    kept = engine.kept_index(engine.options.minimum_length)
    plan = kept.plan
    if not isinstance(plan, KmerIndex):
        raise OptionError("map", "this index has suffix trees, and maps no reads")
    shortest = plan.sampling.shortest_match
    size = engine.block_bases(device, engine.options.minimum_length)
    with (
        ReadingThreads(threads) as reading,
        ReadStream(sources, size, Stats(), _ignore, rules, reading) as reads,
    ):
        first = reads.first_templates(TEMPLATES_OF_ESTIMATE)
        length = choose_seed_length(seed_length, first, shortest, name, LOG.warning, "seed_length")
        options = MappingOptions(
            length,
            by_windows=has_enough_windows(usual_length(first), length),
            most_secondary=places.most_alternatives or places.most_secondary,
            has_alternatives=places.most_alternatives > 0,
        )
        second_length = length_of_second_pass(length, shortest)
        with open_read_mapping(engine, options, second_length, device) as mapping:
            parts: Sequence[ReadBlock] = list(parts_to_measure(first))
            if sizes is None and parts:
                sizes = sizes_of(mapping.template_sizes(parts))
                describe_sizes(sizes, Stats(), LOG.info)
            pair_sizes = PairSizes.of_sizes(sizes, options.unpaired)
            found = list(mapping.results(reads.blocks(), pair_sizes, _both))
        groups = reads.read_groups
    return Alignments(found, engine.reference, places.most_alternatives > 0, groups)


def _both(block: ReadBlock, columns: AlignmentColumns) -> MappedBlock:
    """Return a block and its alignments."""
    return block, columns


def _ignore(_reads: int, _share: float | None) -> None:
    """Report no progress."""
