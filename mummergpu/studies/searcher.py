"""The open backend of a study, with the measurements that a study needs besides searches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from mummergpu.errors import BackendError
from mummergpu.index.options import TreeOptions
from mummergpu.index.tree.flatten import TreePage
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.backends.cuda_streams import STREAMS
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.options import DeviceOptions
from mummergpu.runtime.memory import keep_freed_memory
from mummergpu.runtime.stats import Stats
from mummergpu.studies.machine import device_facts, processor_facts
from mummergpu.studies.records import SweepMachine

if TYPE_CHECKING:
    from mummergpu.matching.tree.cuda import TreeCudaBackend

ONE_BLOCK: Final = 1 << 30
"""More bases than the queries of a study have: on a GPU they are searched as one block."""

GATHER_RUNS: Final = 5

MapFunction = Callable[..., Iterable[Any]]


class StudySearcher:
    """A backend that searches trees in any layout, one after the other: here, the processor."""

    is_device = False

    def __init__(self) -> None:
        from mummergpu.matching.tree.cpu import TreeCpuBackend

        self.stats = Stats()
        self.backend: Backend[TreePage] = TreeCpuBackend(self.stats)
        # About the bases of a block of queries. It does not depend on the number of threads: the
        # same sweep must have the same blocks everywhere.
        self.block_size = self.backend.sizes.block_bases

    def machine(self, threads: int, gathers_per_second: dict[str, float]) -> SweepMachine:
        """Return the facts about the machine."""
        return processor_facts(threads, gathers_per_second)

    def gathers_per_second(
        self, table_bytes: int, threads: int, map_function: MapFunction
    ) -> dict[str, float]:
        """Measure the records at random addresses that are read per second (`gathers`)."""
        from mummergpu.studies.gathers import processor_gathers

        return processor_gathers(table_bytes, GATHER_RUNS, threads, map_function)

    def compile_programs(self, policies: Sequence[str], wide: bool, profile: bool) -> None:
        """Compile all programs that the policies need; only a GPU has any."""

    def set_policy(self, policy: str, profile: bool) -> None:
        """Set the policy of the trees that are loaded next; only a GPU needs to know it."""

    def close(self) -> None:
        """Release the backend."""
        self.backend.close()


class DeviceSearcher(StudySearcher):
    """A GPU."""

    is_device = True

    def __init__(self, backend: TreeCudaBackend, stats: Stats, options: DeviceOptions) -> None:
        self.backend = self._cuda = backend
        self.stats = stats
        # A study uses one stream, and few blocks need as much memory as is planned for each.
        self.block_size = min(ONE_BLOCK, 2 * STREAMS * backend.sizes.block_bases)
        self._options = options
        keep_freed_memory()

    def machine(self, threads: int, gathers_per_second: dict[str, float]) -> SweepMachine:
        """Return the facts about the machine."""
        device = self._cuda.device
        with device.current():
            return device_facts(self._options.number, device, threads, gathers_per_second)

    def gathers_per_second(
        self, table_bytes: int, threads: int, map_function: MapFunction
    ) -> dict[str, float]:
        """Measure the records at random addresses that the device reads per second."""
        from mummergpu.studies.gathers import device_gathers

        return device_gathers(self._cuda.device, self._cuda.cache, table_bytes, GATHER_RUNS)

    def compile_programs(self, policies: Sequence[str], wide: bool, profile: bool) -> None:
        """Compile the programs of all policies, several at a time."""
        from mummergpu.cuda.kernel_cache import Programs
        from mummergpu.matching.tree.cuda_program import tree_program

        if self._options.kernel_folder is None:
            return
        programs = dict.fromkeys(
            tree_program(Policy.from_code(code), wide, counting)
            for counting in ((False, True) if profile else (False,))
            for code in policies
        )
        with ThreadPoolExecutor() as executor:
            list(executor.map(Programs(self._cuda.device, self._cuda.cache).cubin, programs))

    def set_policy(self, policy: str, profile: bool) -> None:
        """Set the policy of the trees that are loaded next, and whether kernels count nodes."""
        self._cuda.policy = Policy.from_code(policy)
        self._cuda.profile = profile


def open_searcher(options: DeviceOptions, notice: Callable[[str], None]) -> StudySearcher:
    """Open the backend that the options name, or the best available one; the caller closes it.

    `notice` receives messages that -v shows. `BackendError` is raised if a requested backend is not
    available.
    """
    if options.backend == "cpu":
        return StudySearcher()
    from mummergpu.matching.open_cuda import open_cuda_backend

    stats = Stats()
    try:
        backend: Any = open_cuda_backend(TreeOptions(), options, stats, notice, ONE_BLOCK)
    except BackendError as error:
        if options.backend == "cuda":
            raise
        notice(f"no cuda backend: {error.message}")
        return StudySearcher()
    return DeviceSearcher(backend, stats, options)
