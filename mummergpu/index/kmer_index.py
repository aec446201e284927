"""The index of the k-mer search: planning, building, writing and reading it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from mummergpu.errors import OptionError
from mummergpu.index.file import IndexFile, section_name
from mummergpu.index.format import IndexHeader, PageEntry
from mummergpu.index.kmer_page import KmerPage, build_kmer_page, choose_kmer_length
from mummergpu.index.kmer_table import MAXIMUM_TABLE_BASES, table_bytes
from mummergpu.index.options import KmerOptions
from mummergpu.index.page_groups import groups_within
from mummergpu.index.pages import Page, plan_pages
from mummergpu.index.reference_index import BuildFacts, BuildWork, ReferenceIndex
from mummergpu.index.writer import SectionWriter
from mummergpu.input.reference import Reference
from mummergpu.runtime.memory import MemoryBudget

LEAST_PAGE_BASES: Final = 1 << 20
"""Too little memory never makes a page smaller than this."""

LEAST_SCRATCH_BYTES: Final = 1 << 24
MOST_SCRATCH_BYTES: Final = 1 << 28
SCRATCH_BYTES_PER_BASE: Final = 2
"""Bounds of the memory that building a table may take besides the table itself. The upper bound
is `MOST_SCRATCH_BYTES`, or `SCRATCH_BYTES_PER_BASE` for each base if that is more. An entry has
8 bytes, so the construction passes over a large reference four times."""


class KmerIndex(ReferenceIndex[KmerPage]):
    """Pages with tables of k-mers (`reference_index.ReferenceIndex`).

    Pages do not overlap: matches are extended in the whole reference.

    Parameters
    ----------
    reference : Reference
        The reference.
    groups : list of list of Page
        All its pages, divided into groups.
    page_size : int
        The most bases that a page has.
    search_length : int
        The length, in bases, of the shortest matches that a page is searched for.
    kmer_length : int
        The number of bases of a k-mer.
    scratch_bytes : int
        The approximate memory that building a table may take besides the table, in bytes.
    file : IndexFile or None
        The file that holds the tables; None if they are built.
    """

    search: ClassVar[str] = KmerOptions.search

    def __init__(
        self,
        reference: Reference,
        groups: list[list[Page]],
        page_size: int,
        search_length: int,
        kmer_length: int,
        scratch_bytes: int,
        file: IndexFile | None = None,
    ) -> None:
        super().__init__(reference, groups, page_size, search_length, file)
        self.kmer_length = kmer_length
        self.scratch_bytes = scratch_bytes

    @classmethod
    def plan(
        cls,
        reference: Reference,
        options: KmerOptions,
        minimum_length: int,
        budget: MemoryBudget,
    ) -> KmerIndex:
        """Divide a reference into the fewest pages that memory allows, and the pages into groups.

        Parameters
        ----------
        reference : Reference
            The reference.
        options : KmerOptions
            The options for building tables.
        minimum_length : int
            The minimum match length in bases.
        budget : MemoryBudget
            The memory that the reference, the tables and their construction may take.

        Returns
        -------
        KmerIndex
            The plan, which depends on the arguments only. No table is built yet.
        """
        bases = reference.codes.size
        # A table lists only positions of bases that can match.
        most_positions = reference.base_count
        page_size = min(options.page_size or bases, MAXIMUM_TABLE_BASES)
        room = max(0, budget.host - reference.padded_codes.nbytes)
        scratch = max(MOST_SCRATCH_BYTES, SCRATCH_BYTES_PER_BASE * min(page_size, most_positions))
        scratch = min(max(room // 4, LEAST_SCRATCH_BYTES), scratch)
        most = max(0, room - scratch)
        if budget.device is not None:
            most = min(most, budget.device)

        def bytes_of(page_bases: int) -> int:
            positions = min(page_bases, most_positions)
            return table_bytes(positions, choose_kmer_length(minimum_length, positions))

        if options.page_size is None:
            while bytes_of(page_size) > most and page_size > LEAST_PAGE_BASES:
                page_size = -(-page_size // 2)
        kmer_length = choose_kmer_length(minimum_length, min(page_size, bases, most_positions))
        pages = plan_pages(bases, page_size, 0)
        groups = groups_within(
            pages, most, lambda page: _table_bytes(page, most_positions, kmer_length)
        )
        return cls(reference, groups, page_size, minimum_length, kmer_length, scratch)

    @classmethod
    def from_file(cls, file: IndexFile, minimum_length: int, budget: MemoryBudget) -> KmerIndex:
        """Divide the pages of an index file into groups.

        Parameters
        ----------
        file : IndexFile
            A file with tables.
        minimum_length : int
            The minimum match length in bases.
        budget : MemoryBudget
            The memory that the pages that are searched together may take.

        Returns
        -------
        KmerIndex
            All pages form one group, unless memory is too small for it.

        Raises
        ------
        OptionError
            If the minimum match length is less than the k-mer length of the file.
        """
        header = file.header
        if minimum_length < header.kmer_length:
            raise OptionError(
                "-l",
                f"the index '{file.path}' has {header.kmer_length}-mers and finds no shorter "
                f"matches; make one with 'mummergpu index -l {minimum_length}'",
            )
        return cls(
            file.reference,
            file.groups_within(budget),
            header.page_size,
            minimum_length,
            header.kmer_length,
            0,
            file,
        )

    def load_pages(self, group: Sequence[Page], work: BuildWork) -> list[KmerPage]:
        """Return pages with their tables (`reference_index.ReferenceIndex.load_pages`)."""
        if self.file is not None:
            self.file.bring_in(group)
        loaded = []
        for page in group:
            loaded.append(self._load_page(page, work))
            work.page_is_ready()
        return loaded

    def write_pages(self, writer: SectionWriter, work: BuildWork) -> Iterator[PageEntry]:
        """Build the tables one after the other, and write each as soon as it is ready."""
        for page in self.pages:
            table = self._load_page(page, work).table
            with work.stats.stage("results_to_disk"):
                writer.write(section_name(page.index, "offsets"), table.offsets)
                writer.write(section_name(page.index, "positions"), table.positions)
            yield PageEntry(page.begin, page.end, page.owned_end)

    def header(self, build: BuildFacts) -> IndexHeader:
        """Return the header of a file that holds the index."""
        return replace(super().header(build), kmer_length=self.kmer_length)

    def settings(self) -> dict[str, Any]:
        """Return the facts that the report gives about the index."""
        return {"kmer_length": self.kmer_length}

    def describe(self) -> str:
        """Return a short description of the search."""
        return f"k-mer search of {self.kmer_length}-mers"

    def peak_bytes(self, group: Sequence[Page], threads: int) -> int:
        """Return the most bytes that a group's tables and their construction take."""
        if self.file is not None:
            return sum(self.file.page_bytes(page.index) for page in group)
        positions = self.reference.base_count
        tables = sum(_table_bytes(page, positions, self.kmer_length) for page in group)
        return tables + self.scratch_bytes

    def _load_page(self, page: Page, work: BuildWork) -> KmerPage:
        if self.file is None:
            loaded = build_kmer_page(
                self.reference,
                page,
                self.kmer_length,
                self.scratch_bytes,
                work.stats,
                work.executor.map,
            )
        else:
            loaded = KmerPage(
                page, self.file.table(page), self.reference.padded_codes, self.file.path
            )
        work.stats.add_bytes(tables=loaded.table.byte_count)
        return loaded


def _table_bytes(page: Page, most_positions: int, kmer_length: int) -> int:
    """Return the most bytes that the table of a page takes."""
    return table_bytes(min(page.end - page.begin, most_positions), kmer_length)
