"""The tree search on a GPU: both kernels of the paper, with all 128 policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from mummergpu.cuda.device import Device, DeviceMemoryError
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.errors import BackendError
from mummergpu.index.tree.flatten import TreePage
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.backends.cuda_streams import LONGEST_MATCH, CudaStreamsBackend
from mummergpu.matching.backends.memory_plan import LARGEST_BLOCK
from mummergpu.matching.backends.stream_searcher import ResidentCodes
from mummergpu.matching.tree.cuda_program import tree_program
from mummergpu.matching.tree.cuda_search import ResidentPage, TreeSearchContext, TreeStreamSearcher
from mummergpu.runtime.stats import Stats

KERNELS: Final = ("match_kernel", "count_mems", "write_mems", "sort_candidates", "merge_pages")
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
                with (
                    self._stats.stage("trees_to_device"),
                    self._uploader.prepared(total_bytes),
                ):
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
