"""An open index file, whose sections are arrays mapped from the file into memory.

The file is mapped, not read. Opening takes almost no time, the system loads the parts that
are touched, and all processes that use a file share that memory. The checks on opening cost
no time that grows with the number of bases: they cover the header, the records, and whether
the sizes of all arrays are consistent. `IndexFile.damaged_sections` finds damage inside the
large sections.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from mummergpu.errors import InputError, OptionError
from mummergpu.index.format import (
    CIRCULAR_SECTION,
    IndexHeader,
    Section,
    checksum_of,
    is_index,
    read_header,
)
from mummergpu.index.kmer_sampling import MAX_SAMPLING_STEP
from mummergpu.index.kmer_table import NOT_KNOWN, KmerTable
from mummergpu.index.mapped_file import bring_in, give_up, map_file
from mummergpu.index.options import KmerOptions, TreeOptions
from mummergpu.index.pages import Page, groups_within
from mummergpu.index.tree.layout import REFERENCE_WIDTH_BITS, Layout, length_in_strips
from mummergpu.index.tree.policy import Policy
from mummergpu.input.bytes.files import reading
from mummergpu.input.circular_records import BEYOND, NO_CIRCLES, original_codes, unrolled_as
from mummergpu.input.reference import Reference
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.memory import MemoryBudget, free_memory
from mummergpu.sequence.codes import BREAK, LETTERS, MARGIN, CodeArray, Letters
from mummergpu.sequence.extension import MAXIMUM_KMER_LENGTH
from mummergpu.sequence.picked_kmers import MAX_BASES

if TYPE_CHECKING:
    from mummergpu.index.tree.flatten import FlatTree
    from mummergpu.index.writer import SectionWriter

AnyArray = npt.NDArray[Any]

CHECKSUM_SECTION: Final = "record_checksums"
"""The MD5 of each record, in 16 bytes; empty where they are not known."""

RECORD_SECTIONS: Final = (
    *("record_starts", "record_lengths", "names", "name_offsets"),
    *("letter_positions", "letter_codes", CHECKSUM_SECTION),
)
"""The sections that describe the records; they are small, and always verified."""

BASES_BESIDE: Final = "bases_beside"
"""An optional array of a page, empty where it is left out: a device is as fast without it, and a
processor needs less memory."""


def section_name(page: int, array: str) -> str:
    """Return the name of a section that belongs to a page, for example ``0.positions``."""
    return f"{page}.{array}"


def write_table(writer: SectionWriter, page: Page, table: KmerTable) -> None:
    """Write the table of a page (`IndexFile.table`)."""
    order = np.array([table.longest_ascending, table.ordered_bases], dtype=np.int64)
    arrays: dict[str, AnyArray] = {
        "offsets": table.offsets,
        "positions": table.positions,
        "order": order,
        BASES_BESIDE: table.bases_beside,
    }
    for name, array in arrays.items():
        writer.write(section_name(page.index, name), array)


class IndexFile:
    """An open index file.

    Attributes
    ----------
    layout : Layout
        How trees lie in memory; meaningless in a file without trees.
    padded_reference : ndarray, dtype=uint8
        The codes of the whole reference with margins (`codes.with_margins`).
    circular : ndarray, dtype=int64
        The numbers of the circular records.
    original, reference : Reference
        The reference as its file has it, and as it is searched: the same if no record is circular.

    Raises
    ------
    InputError
        If the file cannot be read, is not an index, has another version, is truncated, has a
        damaged header or damaged records, or has inconsistent parts.

    Notes
    -----
    The arrays are writable, because the compiled functions take writable arrays. A write does not
    change the file; only `kmer_order` writes, when pages are loaded. The arrays stay valid for as
    long as any of them is used, even if another file takes the name of this one.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with reading(path), open(path, "rb", buffering=0) as file:
            self.header = read_header(file, path)
            self.layout = self._layout_of(self.header)
            self._memory = self._map(file.fileno())
            self._sections = {section.name: section for section in self.header.sections}
            # A second private mapping takes memory only where the original reference differs.
            self._again = self._memory
            if CIRCULAR_SECTION in self._sections:
                self._again = map_file(file.fileno(), self._memory.size)
        self._present: list[Page] = []
        self._reads_bases_beside = False
        header = self.header
        self.padded_reference: CodeArray = self._array("reference", "<u1")
        self.pages = [
            Page(number, entry.begin, entry.end, entry.owned_end)
            for number, entry in enumerate(header.pages)
        ]
        self.circular = self._open_circular()
        self.original = self._open_original()
        self.reference = self.original
        if self.circular.size:
            self.reference = unrolled_as(self.original, self.circular, self.padded_reference)
        self._check_pages()

    @property
    def byte_count(self) -> int:
        """The size of the file in bytes."""
        return self._memory.size

    def page_bytes(self, number: int) -> int:
        """Return the size of the arrays of a page in bytes."""
        return sum(section.byte_count for section in self._sections_of(number))

    def groups_within(self, budget: MemoryBudget) -> list[list[Page]]:
        """Divide the pages into groups of at least one page whose arrays fit in memory together.

        The memory of a device or the user's limit bounds a group. Without either, all free memory
        does, since the arrays are part of the file. From now on bases next to positions are read
        if a processor searches and they fit as well.
        """
        self._reads_bases_beside = False
        max_bytes = free_memory()
        if budget.device is not None:
            max_bytes = budget.device
        elif budget.is_limit:
            max_bytes = max(0, budget.host - self.padded_reference.nbytes)
        groups = groups_within(self.pages, max_bytes, lambda page: self.page_bytes(page.index))
        self._reads_bases_beside = budget.device is None
        largest = max(sum(self.page_bytes(page.index) for page in group) for group in groups)
        self._reads_bases_beside &= largest <= max_bytes
        return groups

    def damaged_sections(self, map_function: Callable[..., Iterable[bool]] = map) -> list[str]:
        """Return the names of the sections that have changed since they were written."""
        sections = self.header.sections
        sound = map_function(self._is_sound, sections)
        return [section.name for section, good in zip(sections, sound, strict=True) if not good]

    def bring_in(self, pages: Sequence[Page]) -> None:
        """Have the system load the arrays that a search will read, if they fit in free memory.

        The memory of pages that were loaded before and are not needed now is released first.
        """
        self._give_up(pages)
        self._present = list(pages)
        sections = [self._sections["reference"]] if pages[0].index == 0 else []
        for page in pages:
            sections += self._sections_of(page.index)
        if sum(section.byte_count for section in sections) > free_memory():
            return
        bring_in([self._bytes_of(section) for section in sections])

    def _layout_of(self, header: IndexHeader) -> Layout:
        """Return how the trees of a file lie in memory."""
        if header.search != "tree":
            return Layout(False, False, False, False)
        try:
            return Layout.of(Policy.from_code(header.policy), header.address_bits == 32)
        except OptionError as error:
            raise InputError(f"the index makes no sense: {error}", self.path) from error

    def _map(self, descriptor: int) -> ByteArray:
        """Map the file, with room for every address if it has trees and the system allows it."""
        size = os.fstat(descriptor).st_size
        self._any_address_is_readable = True
        before, behind = self._room_for_addresses()
        if before or behind:
            try:
                return map_file(descriptor, size, before, behind)
            except OSError:
                self._any_address_is_readable = False
        return map_file(descriptor, size)

    def _room_for_addresses(self) -> tuple[int, int]:
        """Return how far before and after the file the numbers in its trees may point.

        A number is the address of a node, or a position in the page. The path of a node ends at
        a position, and begins as many bases before it as the string depth of the node.
        """
        if self.header.search != "tree":
            return 0, 0
        numbers = 1 << self.layout.address_bits
        return numbers, numbers * (self.layout.node_stride_bytes + 2)

    def _give_up(self, pages: Sequence[Page]) -> None:
        """Let the system take back the memory of pages that are no longer needed."""
        needed = {page.index for page in pages}
        for page in self._present:
            if page.index not in needed:
                give_up([self._bytes_of(section) for section in self._sections_of(page.index)])

    def _sections_of(self, page: int) -> list[Section]:
        prefix = section_name(page, "")
        unread = None if self._reads_bases_beside else section_name(page, BASES_BESIDE)
        sections = self.header.sections
        return [one for one in sections if one.name.startswith(prefix) and one.name != unread]

    def _is_sound(self, section: Section) -> bool:
        return checksum_of(self._array(section.name, section.dtype)) == section.checksum

    def _array(self, name: str, dtype: str) -> AnyArray:
        """Return a section as an array."""
        section = self._sections.get(name)
        self._require(section is not None and section.dtype == dtype, f"section '{name}'")
        assert section is not None
        if section.count == 0:
            return np.empty(0, dtype=dtype)
        array: AnyArray = self._bytes_of(section).view(dtype)
        return array

    def _bytes_of(self, section: Section) -> ByteArray:
        return self._memory[section.offset : section.offset + section.byte_count]

    def _open_circular(self) -> Int64Array:
        if CIRCULAR_SECTION not in self._sections:
            return NO_CIRCLES
        self._check_section(CIRCULAR_SECTION)
        return self._array(CIRCULAR_SECTION, "<i8")

    def _open_original(self) -> Reference:
        header, circular = self.header, self.circular
        for name in RECORD_SECTIONS:
            self._check_section(name)
        starts = self._array("record_starts", "<i8")
        lengths = self._array("record_lengths", "<i8")
        name_offsets = self._array("name_offsets", "<i8")
        names = self._array("names", "<u1").tobytes()
        padded = self.padded_reference
        known = bool((np.diff(circular, prepend=-1, append=header.records) > 0).all())
        self._require(
            header.records == starts.size == lengths.size == name_offsets.size - 1 > 0
            and header.bases == int(lengths.sum())
            and known
            and padded.size - 2 * MARGIN
            == header.bases + header.records - 1 + int((lengths[circular] + 2 * BEYOND + 1).sum())
            and int(lengths.min()) >= 0
            and int(lengths[circular].min(initial=BEYOND)) >= BEYOND
            and np.array_equal(starts, np.cumsum(lengths + 1) - lengths - 1)
            and int(name_offsets[0]) == 0
            and int(name_offsets[-1]) == len(names)
            and bool((np.diff(name_offsets) >= 0).all()),
            "records",
        )
        self._require(
            bool((padded[:MARGIN] == BREAK).all() and (padded[-MARGIN:] == BREAK).all()),
            "margins of the reference",
        )
        if circular.size:
            section = self._sections["reference"]
            again = self._again[section.offset : section.offset + section.byte_count]
            padded = original_codes(again, padded, starts, lengths, circular)
        bounds = name_offsets.tolist()
        return Reference(
            self.path,
            padded[MARGIN:-MARGIN],
            starts,
            lengths,
            tuple(names[begin:end] for begin, end in pairwise(bounds)),
            padded,
            self._letters(),
            self._checksums(),
        )

    def _checksums(self) -> tuple[str, ...]:
        """Return the MD5 of each record, if they are known."""
        text = self._array(CHECKSUM_SECTION, "<u1").tobytes().hex()
        self._require(len(text) in (0, 32 * self.header.records), "checksums of records")
        return tuple(text[at : at + 32] for at in range(0, len(text), 32))

    def _letters(self) -> Letters:
        """Return the letters of the reference that stand for several bases."""
        positions = self._array("letter_positions", "<i8")
        codes = self._array("letter_codes", "<u1")
        sound = positions.size == codes.size and int(codes.max(initial=0)) < len(LETTERS)
        self._require(sound, "letters")
        return Letters(positions, codes)

    def _check_pages(self) -> None:
        header = self.header
        self._require(header.search in ("kmer", "tree") and bool(self.pages), "search")
        if header.search == "kmer":
            self._require(1 <= header.kmer_length <= MAXIMUM_KMER_LENGTH, "k-mer length")
            self._require(1 <= header.reference_step <= MAX_SAMPLING_STEP, "reference step")
            fit = not header.is_picked or header.sampling.lookup_bases <= MAX_BASES
            self._require(fit, "picked k-mers")
        else:
            no_tables = header.kmer_length == header.reference_step == 0
            self._require(no_tables and header.search_length > 0, "overlap")
        behind = 0
        for page in self.pages:
            self._require(
                page.begin == behind <= page.owned_end <= page.end <= self.reference.codes.size
                and (header.search == "kmer" or page.end - page.begin <= self.layout.max_bases),
                f"page {page.index}",
            )
            behind = page.owned_end
        self._require(behind == self.reference.codes.size, "last page")

    def table(self, page: Page) -> KmerTable:
        """Return the table of a page; raise `InputError` if its arrays are inconsistent."""
        sampling = self.header.sampling
        offsets = self._array(section_name(page.index, "offsets"), "<u4")
        positions = self._array(section_name(page.index, "positions"), "<u4")
        self._require(
            offsets.size == 4**sampling.kmer_length + 1
            and int(offsets[0]) == 0
            and int(offsets[-1]) == positions.size <= page.owned_end - page.begin,
            f"table of page {page.index}",
        )
        bases_beside = NOT_KNOWN
        if self._reads_bases_beside:
            bases_beside = self._array(section_name(page.index, BASES_BESIDE), "<u1")
        self._require(bases_beside.size in (0, positions.size), f"table of page {page.index}")
        name = section_name(page.index, "order")
        order = self._array(name, "<i8")
        self._check_section(name)
        self._require(order.size == 2, f"order of the lists of page {page.index}")
        longest_ascending, ordered_bases = order.tolist()
        return KmerTable(
            sampling, offsets, positions, ordered_bases, longest_ascending, bases_beside
        )

    def tree(self, page: Page) -> FlatTree:
        """Return the tree of a page; raise `InputError` if its arrays are inconsistent.

        The search trusts the addresses in a tree. Where a wrong one could lead to memory that
        cannot be read, the arrays are compared with their checksums first.
        """
        entry = self.header.pages[page.index]
        # Imported here because a k-mer search needs no code for trees.
        from mummergpu.index.tree.flatten import FlatTree

        if not self._any_address_is_readable:
            for section in self._sections_of(page.index):
                self._check_section(section.name)
        layout = self.layout
        dtype = "<u4" if layout.wide else "<u1"
        nodes = self._array(section_name(page.index, "nodes"), dtype)
        reference = self._array(section_name(page.index, "reference"), "<u1")
        base_count = page.end - page.begin
        slots = length_in_strips(entry.node_count, layout.tree_width_bits, layout.tree_strip_bits)
        bases = length_in_strips(base_count + 1, REFERENCE_WIDTH_BITS, layout.reference_strip_bits)
        children = nodes[layout.half_elements :]
        if not layout.merged_tree:
            children = self._array(section_name(page.index, "children"), dtype)
            self._require(children.size == nodes.size, f"children of page {page.index}")
        self._require(
            nodes.size == slots * layout.node_stride > 0
            and reference.size == bases
            and entry.leaf_count <= entry.node_count,
            f"tree of page {page.index}",
        )
        return FlatTree(
            layout, nodes, children, reference, base_count, entry.node_count, entry.leaf_count
        )

    def _check_section(self, name: str) -> None:
        """Raise `InputError` if a section is missing, or has changed since it was written."""
        section = self._sections.get(name)
        if section is None or not self._is_sound(section):
            raise InputError(
                f"the index is damaged: its section '{name}' is not as written", self.path
            )

    def _require(self, sound: bool, what: str) -> None:
        if not sound:
            raise InputError(f"the index is damaged: its {what} cannot be", self.path)


def kind_of_file(file: IndexFile) -> KmerOptions | TreeOptions:
    """Return the kind of an index file, with the options that a search needs."""
    header = file.header
    if header.search == KmerOptions.search:
        return KmerOptions(header.page_size)
    policy = Policy.from_code(header.policy)
    return TreeOptions(header.page_size, header.address_bits, policy)


def kind_for_reference(path: str) -> KmerOptions | TreeOptions:
    """Return the kind of index to search a reference with.

    It is that of the index file if the reference is one, which raises `InputError` if the file is
    damaged or of another version, and otherwise a k-mer index.
    """
    return kind_of_file(IndexFile(path)) if is_index(path) else KmerOptions()
