"""The base class of both kinds of index: a reference in pages, built or read from a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Generic, TypeVar

from mummergpu.index.file import IndexFile
from mummergpu.index.format import IndexHeader, PageEntry, Section
from mummergpu.index.pages import Page
from mummergpu.index.writer import SectionWriter
from mummergpu.input.circular_records import original_of
from mummergpu.input.reference import Reference
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.memory import PROCESS_BYTES, PROCESS_BYTES_PER_THREAD, MemoryBudget
from mummergpu.runtime.stats import Stats

PageType = TypeVar("PageType")

NEGLIGIBLE_BYTES = 64 << 20
"""A run may exceed its memory limit by this; `PROCESS_BYTES` already counts it."""


@frozen
class BuildWork:
    """The resources that the construction of pages uses."""

    executor: ThreadPoolExecutor
    threads: int
    stats: Stats
    page_is_ready: Callable[[], None]
    # Receives the share of the next page that is built, 0 to 1, if pages are built one after the
    # other; any thread calls it.
    share_of_next: Callable[[float], None] = lambda share: None


class ReferenceIndex(ABC, Generic[PageType]):
    """A reference cut into pages, each built or loaded for the search.

    Parameters
    ----------
    groups : list of list of Page
        All its pages in order; the pages of a group are in memory together.
    page_size : int
        The most bases that a page has.
    search_length : int
        The length, in bases, of the shortest matches that a page is searched for.
    file : IndexFile or None
        The file that holds the pages; None if they are built.
    """

    search: ClassVar[str]
    """The name of this kind of index, as in ``--search``."""

    memory_warning: str | None = None
    """The warning of a run about a memory limit that it cannot keep."""

    def __init__(
        self,
        reference: Reference,
        groups: list[list[Page]],
        page_size: int,
        search_length: int,
        file: IndexFile | None = None,
    ) -> None:
        self.reference = reference
        self.groups = groups
        self.pages = [page for group in groups for page in group]
        self.page_size = page_size
        self.search_length = search_length
        self.file = file

    @abstractmethod
    def load_pages(self, group: Sequence[Page], work: BuildWork) -> list[PageType]:
        """Return some pages ready to be searched, built or read from the file, in their order.

        A page that cannot be built, or whose arrays in the file are inconsistent, raises
        `MummergpuError`.
        """

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the facts that the report gives about the index, under the report's names."""

    @abstractmethod
    def describe(self) -> str:
        """Describe the kind of search and the chosen settings in a few words."""

    def slow_search_warning(self) -> str | None:
        """Return a warning if another index file would be much faster, None if none would."""
        return None

    @abstractmethod
    def peak_bytes(self, group: Sequence[Page], threads: int) -> int:
        """Return the most bytes that a group of pages and their construction take."""

    def check_memory(self, budget: MemoryBudget, threads: int, other_bytes: int = 0) -> None:
        """Note a warning if even the best division into groups exceeds the memory limit.

        It names a limit that suffices. Resident memory stays within the sum of that,
        `memory.PROCESS_BYTES`, and `memory.PROCESS_BYTES_PER_THREAD` for each thread. Of the
        budget, `other_bytes` are taken.
        """
        if not budget.is_limit:
            return
        needed = self.reference.padded_codes.nbytes + other_bytes
        needed += max(self.peak_bytes(group, threads) for group in self.groups)
        if needed > budget.host + NEGLIGIBLE_BYTES:
            besides = (PROCESS_BYTES + threads * PROCESS_BYTES_PER_THREAD) >> 20
            self.memory_warning = (
                f"the limit of {budget.host >> 20}M of memory is too low: this reference takes "
                f"{-(-needed >> 20)}M (besides {besides}M for the program itself) in pages of this "
                "size; smaller ones may take less (see 'mummergpu index --page-size')"
            )


class StorableIndex(ReferenceIndex[PageType]):
    """An index that a file can hold."""

    @abstractmethod
    def write_pages(self, writer: SectionWriter, work: BuildWork) -> Iterator[PageEntry]:
        """Build the pages one after the other, and write each as soon as it is ready."""

    def header(self, build: BuildFacts) -> IndexHeader:
        """Return the header of a file that holds the index.

        Each kind of index adds its own facts; here they have the values of an index without
        them.
        """
        reference = original_of(self.reference)
        return IndexHeader(
            program=build.program,
            reference_path=reference.path,
            digest=build.digest,
            records=len(reference.names),
            bases=int(reference.record_lengths.sum()),
            search=self.search,
            minimum_length=build.minimum_length,
            page_size=self.page_size,
            search_length=0,
            kmer_length=0,
            reference_step=0,
            is_picked=False,
            policy="",
            address_bits=0,
            pages=build.pages,
            sections=build.sections,
        )


@frozen
class BuildFacts:
    """The facts about construction in the header of an index file (`format.IndexHeader`)."""

    program: str
    digest: str
    minimum_length: int
    pages: tuple[PageEntry, ...]
    sections: tuple[Section, ...]
