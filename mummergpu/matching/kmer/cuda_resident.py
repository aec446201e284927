"""The k-mer search on a GPU that also hands over matches where they are, for further work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mummergpu.cuda.device import DeviceMemoryError, Program
from mummergpu.cuda.program import ProgramSource
from mummergpu.cuda.stream_tools import StreamTools
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.kmer.cuda_arrays import KmerSearchContext
from mummergpu.matching.kmer.cuda_columns import KmerColumnsBackend, KmerColumnsSearcher
from mummergpu.matching.resident_matches import ResidentMatches
from mummergpu.sequence.codes import Strand

Result = TypeVar("Result")


class KmerResidentSearcher(KmerColumnsSearcher):
    """Searches k-mer tables on one stream; others can use the matches on the device."""

    def use_matches(
        self,
        context: KmerSearchContext,
        load_program: Callable[[ProgramSource], Program],
        block: QueryBlock,
        max_rows: int,
        use: Callable[[ResidentMatches], Result],
    ) -> Result | None:
        """Search a block on both strands, and return what a function makes of its matches.

        None means that there are more than `max_rows`. The context has a single table. If the
        block, its matches or what is made of them do not fit, `DeviceMemoryError` is raised.
        """
        self._begin_counts()
        try:
            packed = self._prepare(context, self._upload_block(block))
            found = self._find_strands(context, packed, tuple(Strand), max_rows)
            if found is None:
                return None
            tools = StreamTools(
                self._device,
                self._stream,
                self._workspace,
                self._staging,
                load_program,
                self._stats,
            )
            result = use(
                ResidentMatches(
                    tools,
                    block.query_count,
                    packed.offsets,
                    packed.bit_planes,
                    self._reverse_planes(packed),
                    context.reference,
                    found[Strand.FORWARD],
                    found[Strand.REVERSE],
                )
            )
        finally:
            self._stream.synchronize()
        self._launcher.report()
        self._count_skipped()
        return result


class KmerResidentBackend(KmerColumnsBackend):
    """Searches k-mer tables on a GPU, and hands over the matches there."""

    searcher = KmerResidentSearcher

    @property
    def hands_over(self) -> bool:
        """Whether it hands over the matches on the loaded pages: those of a single table."""
        return self._context is not None and len(self._context.tables) == 1

    def use_matches(
        self, block: QueryBlock, max_rows: int, use: Callable[[ResidentMatches], Result]
    ) -> Result | None:
        """Return what is made of the matches of a block (`interface.ResidentBackend`)."""
        with self._idle_searcher() as searcher:
            assert isinstance(searcher, KmerResidentSearcher) and self._context is not None
            try:
                return searcher.use_matches(self._context, self.program, block, max_rows, use)
            except DeviceMemoryError as error:
                searcher.release()
                self._notice(f"{block.query_count:,} queries do not fit the device: {error}")
                return None
