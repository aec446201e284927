"""The tree search on a GPU: both kernels of the paper, with all 128 policies.

The kernels run in the order of the paper: match, then print. The print kernel has three parts: MEMs
are found in one pass, in any order; a scan turns their counts into offsets; and they are placed and
sorted there. Between the kernels only three totals come back to the host, which give the sizes of
the next buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from mummergpu.cuda.device import (
    AnyArray,
    Buffer,
    Device,
    DeviceMemoryError,
    Program,
    Texture,
)
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.pinned_staging import Uploader
from mummergpu.cuda.program import WARP_LANES
from mummergpu.cuda.resident_matches import DeviceMems
from mummergpu.cuda.stream_worker import WAVES
from mummergpu.errors import BackendError
from mummergpu.index.pages import Page
from mummergpu.index.tree.flatten import TreePage
from mummergpu.index.tree.layout import REFERENCE_WIDTH_BITS
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.backends.cuda_streams import LONGEST_MATCH, CudaStreamsBackend
from mummergpu.matching.backends.memory_plan import LARGEST_BLOCK
from mummergpu.matching.backends.stream_searcher import (
    COUNTER_BYTES,
    PADDING_BYTES,
    WORD_BYTES,
    StreamSearcher,
    UploadedBlock,
)
from mummergpu.matching.tree import cuda_program
from mummergpu.matching.tree.cuda_program import (
    CANDIDATE_BYTES,
    CHUNK_MEMS,
    COUNT_BYTES,
    FEW_ROWS,
    FOUND_MEM_BYTES,
    tree_program,
)
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import CodeArray
from mummergpu.sequence.mems import MemColumns
from mummergpu.sequence.strand import Strand

MAX_ARRAY_ROWS: Final = 1 << 16
"""The most rows of a two-dimensional texture, on every device that CUDA supports."""


class ResidentCodes:
    """Codes in linear memory with padding after them, and optionally a texture of words.

    The device is current in the calling thread; the constructor waits for the uploader's stream.
    """

    def __init__(self, device: Device, uploader: Uploader, codes: CodeArray, texture: bool) -> None:
        size = -(-codes.size // WORD_BYTES) * WORD_BYTES + PADDING_BYTES
        self._buffer = device.allocate(size)
        self.address = self._buffer.address
        self.size = size
        self._texture: Texture | None = None
        try:
            uploader.stream.fill_zero(
                self.address + size - PADDING_BYTES - WORD_BYTES, 3 * WORD_BYTES
            )
            uploader.copy_in(self.address, codes)
            uploader.stream.synchronize()
            if texture:
                self._texture = device.linear_texture(self.address, size // WORD_BYTES, WORD_BYTES)
        except BaseException:
            self._buffer.free()
            raise

    @property
    def arguments(self) -> tuple[int, int]:
        """The kernel arguments: the address and the texture."""
        return self.address, 0 if self._texture is None else self._texture.handle

    def free(self) -> None:
        """Free the memory."""
        if self._texture is not None:
            self._texture.free()
        self._buffer.free()


class ExpectedMems:
    """How many MEMs a candidate match has on a page, as far as its last search shows."""

    FEWEST: Final = 1.0
    SPARE: Final = 1.25

    def __init__(self) -> None:
        self._of_candidate = self.FEWEST

    def room(self, candidates: int) -> int:
        """Return the places for the MEMs of some candidates."""
        return int(self._of_candidate * candidates)

    def learn(self, candidates: int, mems: int) -> None:
        """Expect as many as these candidates had."""
        self._of_candidate = max(self.FEWEST, self.SPARE * mems / candidates)

    def forget(self) -> None:
        """Expect few."""
        self._of_candidate = self.FEWEST


class ResidentPage:
    """A page on a device, whose tree has the policy's layout.

    The constructor waits for the uploader's stream. `size` counts the bytes that were copied. If
    the page does not fit, `DeviceMemoryError` is raised and nothing stays on the device; one that
    is too large for a texture raises `BackendError`.
    """

    def __init__(
        self, device: Device, uploader: Uploader, indexed: TreePage, policy: Policy
    ) -> None:
        tree = indexed.tree
        self.page: Page = indexed.page
        self.base_count = tree.base_count
        self.owned_count = indexed.page.owned_end - indexed.page.begin
        self.size = tree.byte_count
        self.expected = ExpectedMems()
        self._device = device
        self._uploader = uploader
        self._owned: list[Buffer | Texture | ResidentCodes] = []
        try:
            self.reference_arguments = self._place_reference(indexed, policy)
            self.tree_arguments = self._place_tree(indexed, policy)
        except BaseException:
            self.free()
            raise

    def free(self) -> None:
        """Free the memory and the textures."""
        while self._owned:
            self._owned.pop().free()

    def _place_reference(self, indexed: TreePage, policy: Policy) -> tuple[int, int]:
        reference = indexed.tree.reference
        if policy.two_dimensional_reference and policy.reference_texture:
            texture = self._device.array_texture(reference, 1 << REFERENCE_WIDTH_BITS, 1)
            self._owned.append(texture)
            return 0, texture.handle
        codes = ResidentCodes(self._device, self._uploader, reference, policy.reference_texture)
        self._owned.append(codes)
        return codes.arguments

    def _place_tree(self, indexed: TreePage, policy: Policy) -> tuple[int, ...]:
        tree = indexed.tree
        layout = tree.layout
        texel_bytes = 8 if layout.wide else 16
        width = (1 << layout.tree_width_bits) * layout.node_stride_bytes // texel_bytes
        parts = cuda_program.texture_parts(layout.wide)
        addresses: list[int] = []
        textures: list[list[int]] = []
        for array in [tree.nodes] if layout.merged_tree else [tree.nodes, tree.children]:
            handles: list[int] = []
            address = 0
            if policy.tree_texture and layout.two_dimensional_tree:
                handles.append(self._array_texture(array, width, texel_bytes))
            else:
                buffer = self._device.allocate(array.nbytes)
                self._owned.append(buffer)
                address = buffer.address
                self._uploader.copy_in(address, array)
                self._uploader.stream.synchronize()
            if policy.tree_texture and not layout.two_dimensional_tree:
                handles += self._part_textures(address, array.nbytes // texel_bytes, texel_bytes)
            if len(handles) > parts:
                raise BackendError(
                    "cuda", "the tree is too large for textures; use a smaller --page-size"
                )
            addresses.append(address)
            textures.append(handles + [0] * (parts - len(handles)))
        if layout.merged_tree:
            addresses.append(addresses[0] + layout.half_bytes if addresses[0] else 0)
            textures.append([0] * parts)
        return *addresses, *textures[0], *textures[1]

    def _array_texture(self, array: AnyArray, width: int, texel_bytes: int) -> int:
        if array.nbytes // (width * texel_bytes) > MAX_ARRAY_ROWS:
            raise BackendError(
                "cuda",
                "the tree is too large for two-dimensional textures; use a smaller --page-size",
            )
        texture = self._device.array_texture(array, width, texel_bytes)
        self._owned.append(texture)
        return texture.handle

    def _part_textures(self, address: int, texels: int, texel_bytes: int) -> list[int]:
        handles = []
        part_texels = 1 << cuda_program.TEXTURE_PART_BITS
        for first in range(0, texels, part_texels):
            texture = self._device.linear_texture(
                address + first * texel_bytes, min(part_texels, texels - first), texel_bytes
            )
            self._owned.append(texture)
            handles.append(texture.handle)
        return handles


FIRST_SET: Final = 0
LATER_SET: Final = 1
OTHER_SET: Final = 2
"""The sets of buffers for MEMs. The MEMs on earlier pages and those on the next page are merged
into the set that is not in use."""

LONG_COUNT: Final = 0
FILLED: Final = 8
NODE_VISITS: Final = {"match_kernel": 16, "find_mems": 24}
"""The offset of each counter in the buffer of counters, in bytes."""

CANDIDATES_OF_WARP: Final = 64
"""A warp finds the MEMs of at least this many candidate matches: of 32 at once, twice."""


@frozen
class TreeSearchContext:
    """The data that all searches of a run share."""

    program: Program  # The kernels, compiled for the policy and the node format.
    minimum_length: int
    pages: Sequence[ResidentPage]  # The pages to search, in the order of the reference.
    # The address of the codes of all pages on the device; 0 if no page needs them.
    joined_reference: int
    joined_count: int
    query_texture: bool  # Whether kernels read queries through a texture.
    profile: bool  # Whether the kernels count the nodes that they visit.


@frozen
class DeviceQueries:
    """A block of queries on the device."""

    count: int
    base_count: int
    offsets: int  # The address of the array that says where each query begins.
    codes: int
    texture: Texture | None  # The texture through which the codes are read, if the policy says so.

    @property
    def arguments(self) -> tuple[int, int]:
        """The kernel arguments for the codes."""
        return self.codes, 0 if self.texture is None else self.texture.handle


@frozen
class DeviceCandidates:
    """Candidate matches on the device."""

    # The address of the candidates. The buffer has one slot for each base of the block; the
    # candidates of a query begin at the slot of its first base.
    records: int
    # The address of the number of candidates before each query, with the total at the end.
    offsets: int
    queries: int  # The address of the array that names the query of each candidate.
    count: int

    @property
    def arguments(self) -> tuple[int, int, int, int]:
        """The kernel arguments."""
        return self.records, self.offsets, self.queries, self.count


class TreeStreamSearcher(StreamSearcher[TreeSearchContext, UploadedBlock]):
    """Searches trees on one stream: match, then print (`stream_searcher.StreamSearcher`)."""

    stage = "print_kernel"
    stages = MappingProxyType({"match_kernel": "match_kernel"})

    def _prepare(self, block: UploadedBlock) -> UploadedBlock:
        return block

    def search_strand(self, strand: Strand, max_rows: int) -> MemColumns | None:
        """Return the MEMs of a block on all pages, or None if there are too many."""
        context = self.context
        queries = self._queries_on(context, self.queries, strand)
        try:
            found = self._search_page(context, context.pages[0], queries, max_rows, FIRST_SET)
            free_set = OTHER_SET
            for page in context.pages[1:]:
                if found is None:
                    return None
                later = self._search_page(context, page, queries, max_rows - found.count, LATER_SET)
                if later is None:
                    return None
                found = self._merge(context, queries, found, later, free_set)
                free_set = FIRST_SET if free_set == OTHER_SET else OTHER_SET
            return None if found is None else self.download(queries.count, found)
        except DeviceMemoryError:
            for page in context.pages:
                page.expected.forget()
            raise
        finally:
            if queries.texture is not None:
                self.stream.synchronize()
                queries.texture.free()

    def _queries_on(
        self, context: TreeSearchContext, block: UploadedBlock, strand: Strand
    ) -> DeviceQueries:
        """Return a block's queries on one strand, bound to a texture if the policy says so."""
        codes = block.codes
        if strand is Strand.REVERSE:
            codes = self.buffer("reverse codes", block.size)
            words = -(-block.base_count // WORD_BYTES)
            self.stream.fill_zero(codes + words * WORD_BYTES, block.size - words * WORD_BYTES)
            self.launcher.launch_on(
                context.program,
                "reverse_complement",
                words,
                (block.codes, block.offsets, block.query_count, codes),
            )
        texture = None
        if context.query_texture:
            texture = self.device.linear_texture(codes, block.size // WORD_BYTES, WORD_BYTES)
        return DeviceQueries(block.query_count, block.base_count, block.offsets, codes, texture)

    def _search_page(
        self,
        context: TreeSearchContext,
        page: ResidentPage,
        queries: DeviceQueries,
        max_rows: int,
        set_number: int,
    ) -> DeviceMems | None:
        candidates = self._match(context, page, queries)
        return self._print(context, page, queries, candidates, max_rows, set_number)

    def _match(
        self, context: TreeSearchContext, page: ResidentPage, queries: DeviceQueries
    ) -> DeviceCandidates:
        """Find the candidate matches of all queries on a page."""
        buffer = self.buffer
        records = buffer("candidates", CANDIDATE_BYTES * queries.base_count)
        counts = buffer("candidate counts", COUNT_BYTES * queries.count)
        counters = buffer("counters", COUNTER_BYTES)
        self.stream.fill_zero(counters, COUNTER_BYTES)
        self.launcher.launch_on(
            context.program,
            "match_kernel",
            queries.count,
            (
                *page.tree_arguments,
                *page.reference_arguments,
                *queries.arguments,
                queries.offsets,
                np.uint32(queries.count),
                np.uint32(context.minimum_length),
                records,
                counts,
                counters + NODE_VISITS["match_kernel"],
            ),
        )
        offsets = buffer("candidate offsets", 8 * (queries.count + 1))
        self.launcher.scan(context.program, counts, queries.count, offsets)
        count = self._read_total(offsets, queries.count)
        self.stats.add(candidate_matches=count)
        candidate_queries = buffer("candidate queries", 4 * count)
        if count > 0:
            self.launcher.launch_on(
                context.program,
                "assign_queries",
                queries.count,
                (offsets, queries.count, candidate_queries),
            )
        return DeviceCandidates(records, offsets, candidate_queries, count)

    def _print(
        self,
        context: TreeSearchContext,
        page: ResidentPage,
        queries: DeviceQueries,
        candidates: DeviceCandidates,
        max_rows: int,
        set_number: int,
    ) -> DeviceMems | None:
        """Turn candidate matches into MEMs, or return None if there are too many."""
        counts = self.buffer("mem counts", COUNT_BYTES * candidates.count)
        found, place_count = self._find(context, page, queries, candidates, counts)
        offsets = self.buffer("mem offsets", 8 * (candidates.count + 1))
        self.launcher.scan(context.program, counts, candidates.count, offsets)
        query_offsets = self.buffer(f"offsets of mems {set_number}", 8 * (queries.count + 1))
        self.launcher.launch_on(
            context.program,
            "offset_query_mems",
            queries.count + 1,
            (candidates.offsets, offsets, queries.count, query_offsets),
        )
        count = self._read_total(offsets, candidates.count)
        if count > max_rows:
            return None
        columns = self._columns(set_number, count)
        if count > 0:
            page.expected.learn(candidates.count, count)
            self.launcher.launch_on(
                context.program,
                "place_mems",
                place_count,
                (
                    *(*queries.arguments, queries.offsets, *candidates.arguments),
                    *(page.page.begin, np.uint32(page.base_count), np.uint32(page.owned_count)),
                    *(context.joined_count, context.joined_reference),
                    *(found, place_count, offsets, *columns),
                ),
            )
            self._sort(context, page, queries, candidates, offsets, columns, count)
        if context.profile:
            self._read_visits()
        return DeviceMems(query_offsets, columns, count)

    def _find(
        self,
        context: TreeSearchContext,
        page: ResidentPage,
        queries: DeviceQueries,
        candidates: DeviceCandidates,
        counts: int,
    ) -> tuple[int, int]:
        """Find the MEMs of all candidates in one pass; return their address and the places used.

        The room for them follows from the last search; the kernel runs again if it is too small.
        """
        if candidates.count == 0:
            return 0, 0
        block_warps = max(1, self.device.block_threads // WARP_LANES)
        blocks = -(-candidates.count // (CANDIDATES_OF_WARP * block_warps))
        blocks = min(blocks, WAVES * self.device.resident_blocks)
        # The last chunk of a warp may be nearly empty.
        room = page.expected.room(candidates.count) + CHUNK_MEMS * block_warps * blocks
        counters = self.buffer("counters", COUNTER_BYTES)
        visits = counters + NODE_VISITS["find_mems"]
        while True:
            found = self.buffer("found mems", FOUND_MEM_BYTES * room)
            self.stream.fill_zero(counters + FILLED, 8)
            self.stream.fill_zero(visits, 8)
            self.launcher.launch(
                context.program,
                "find_mems",
                blocks,
                (
                    *(*page.tree_arguments, *queries.arguments, queries.offsets),
                    *(np.uint32(context.minimum_length), *candidates.arguments),
                    *(np.uint32(page.owned_count), found, room, counters + FILLED),
                    *(counts, visits),
                ),
            )
            filled = self._read_total(counters + FILLED, 0)
            if filled <= room:
                return found, filled
            room = filled

    def _sort(
        self,
        context: TreeSearchContext,
        page: ResidentPage,
        queries: DeviceQueries,
        candidates: DeviceCandidates,
        offsets: int,
        columns: tuple[int, int, int],
        count: int,
    ) -> None:
        """Sort the MEMs of each candidate match, and write where they start in the query."""
        begins = queries.offsets, *candidates.arguments, offsets
        long_candidates = self.buffer("long candidates", 8 * (count // FEW_ROWS + 1))
        long_count = self.buffer("counters", COUNTER_BYTES) + LONG_COUNT
        self.launcher.launch_on(
            context.program,
            "sort_candidates",
            candidates.count,
            (*begins, *columns, long_candidates, long_count),
        )
        if count > FEW_ROWS:
            self.launcher.launch(
                context.program,
                "sort_long_candidates",
                min(count // FEW_ROWS, self.device.resident_blocks),
                (*begins, long_candidates, long_count, page.page.begin, *columns),
            )

    def _merge(
        self,
        context: TreeSearchContext,
        queries: DeviceQueries,
        found: DeviceMems,
        later: DeviceMems,
        set_number: int,
    ) -> DeviceMems:
        """Merge the MEMs on earlier pages with those on a later one, into another set."""
        offsets = self.buffer(f"offsets of mems {set_number}", 8 * (queries.count + 1))
        count = found.count + later.count
        merged = DeviceMems(offsets, self._columns(set_number, count), count)
        self.launcher.launch_on(
            context.program,
            "merge_pages",
            max(queries.count + 1, found.count, later.count),
            (*found.arguments, *later.arguments, queries.count, *merged.arguments),
        )
        return merged

    def _read_visits(self) -> None:
        """Add the number of nodes that the kernels visited to the stats."""
        self.stream.copy_out(self._counters, self.buffer("counters", COUNTER_BYTES))
        self.stream.synchronize()
        for kernel, offset in NODE_VISITS.items():
            self.stats.add_node_visits(kernel, int(self._counters[offset // 8]))


KERNELS: Final = ("match_kernel", "find_mems", "place_mems", "sort_candidates", "merge_pages")
"""The kernels whose resources are reported."""


PIECE_BASES: Final = 1 << 10
"""The starts that a piece of a long query owns. One thread searches a piece, so a chromosome fills
the device."""

LONG_QUERY: Final = 1 << 12


class TreeCudaBackend(CudaStreamsBackend[TreePage, TreeSearchContext]):
    """Matches blocks of queries against suffix trees on a GPU (`CudaStreamsBackend`).

    `policy` and `profile`, which lets the kernels count the nodes that they visit, are those of the
    pages that are loaded next.
    """

    kernels = KERNELS
    searcher = TreeStreamSearcher
    piece_bases = PIECE_BASES
    long_query = LONG_QUERY

    def __init__(
        self,
        device: Device,
        cache: KernelCache,
        policy: Policy,
        stats: Stats,
        notice: Callable[[str], None],
        memory: int | None = None,
        profile: bool = False,
        max_block_bases: int = LARGEST_BLOCK,
        threads: int = 1,
        closes_device: bool = False,
    ) -> None:
        self.policy = policy
        self.profile = profile
        self._pages: list[ResidentPage] = []
        self._joined: ResidentCodes | None = None
        super().__init__(
            *(device, cache, stats, notice, memory, max_block_bases, threads, closes_device)
        )

    def load_pages(self, pages: Sequence[TreePage], minimum_length: int) -> None:
        """Copy a group of pages to the device, in place of the last group.

        Their trees have the policy's layout. `BackendError` is raised if they do not fit.
        """
        with self.device.current():
            self._let_go()
            wide = pages[0].tree.layout.wide
            program = self._program(tree_program(self.policy, wide, self.profile))
            joined = pages[0].joined_reference
            total_bytes = joined.size + sum(page.tree.byte_count for page in pages)
            try:
                with self._stats.stage("trees_to_device"), self._uploader.prepared(total_bytes):
                    for page in pages:
                        resident = ResidentPage(self.device, self._uploader, page, self.policy)
                        self._pages.append(resident)
                        self._stats.add_bytes(to_device=resident.size)
                    if any(page.page.end < joined.size for page in pages):
                        self._joined = ResidentCodes(self.device, self._uploader, joined, False)
            except DeviceMemoryError as error:
                self._let_go()
                raise BackendError(
                    "cuda",
                    f"the trees do not fit the device's memory ({error}); "
                    "use a smaller --page-size or --backend cpu",
                ) from error
        self._context = TreeSearchContext(
            program,
            min(minimum_length, LONGEST_MATCH),
            self._pages,
            0 if self._joined is None else self._joined.address,
            joined.size,
            self.policy.query_texture,
            self.profile,
        )

    def _let_go(self) -> None:
        self._context = None
        while self._pages:
            self._pages.pop().free()
        if self._joined is not None:
            self._joined.free()
            self._joined = None
