"""Several devices as one backend: each holds the pages, and a block goes to a free stream."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import fields
from typing import Any, Generic, Self, TypeVar

from mummergpu.cuda.pool import DevicePool
from mummergpu.errors import BackendError
from mummergpu.index.kmer_page import KmerPage
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.interface import ResidentBackend, TextBackend, WorkSizes
from mummergpu.matching.backends.streaming import STREAMS, StreamingBackend
from mummergpu.matching.block_text import BlockText, RowFormat
from mummergpu.matching.resident_matches import ResidentMatches
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import MemColumns

PageType = TypeVar("PageType")
Result = TypeVar("Result")


@contextmanager
def naming_device(number: int, name: str) -> Iterator[None]:
    """Put the number and the name of a device into every `BackendError` of a ``with`` statement."""
    try:
        yield
    except BackendError as error:
        raise BackendError(error.backend, f"device {number} ({name}): {error.message}") from error


class SeveralDevices(Generic[PageType]):
    """Searches blocks of queries on several GPUs; many threads may call it at once.

    The backends do not close their devices; the pool is closed with this backend. After the first
    failure of any device every search raises an error with the number and the name of that device,
    so that no thread waits for a stream that never becomes free.
    """

    name = "cuda"

    def __init__(
        self,
        backends: Mapping[int, StreamingBackend[PageType, Any]],
        pool: DevicePool,
        stats: Stats,
        notice: Callable[[str], None],
    ) -> None:
        self._backends = dict(backends)
        self._pool = pool
        self._stats = stats
        self._notice = notice
        self._changed = threading.Condition()
        self._free_streams = dict.fromkeys(backends, STREAMS)
        self._block_counts = dict.fromkeys(backends, 0)
        self._failure: str | None = None
        every = list(backends.values())
        self.sizes = WorkSizes(
            **{
                field.name: min(getattr(backend.sizes, field.name) for backend in every)
                for field in fields(WorkSizes)
            }
        )
        self._record_devices()

    @property
    def first(self) -> StreamingBackend[PageType, Any]:
        """The backend of the first device."""
        return next(iter(self._backends.values()))

    def memory_for_pages(self, reference_bases: int) -> int:
        """Return the most bytes of pages that fit the smallest device (`interface.Backend`)."""
        every = self._backends.values()
        return min(backend.memory_for_pages(reference_bases) for backend in every)

    def load_pages(self, pages: Sequence[PageType], minimum_length: int) -> None:
        """Copy a group of pages to all devices at the same time, in place of the last group."""

        def load(number: int) -> None:
            with self._watching(number):
                self._backends[number].load_pages(pages, minimum_length)

        with ThreadPoolExecutor(len(self._backends), thread_name_prefix="load") as executor:
            # All devices are waited for; then the first error is raised.
            list(executor.map(load, self._backends))

    def for_windows(self, page: KmerPage, minimum_length: int) -> Self:
        """Return these backends as ones that search windows (`KmerCudaBackend.for_windows`)."""
        other = copy(self)
        other._backends = {
            number: backend.for_windows(page, minimum_length)  # type: ignore[attr-defined]
            for number, backend in self._backends.items()
        }
        return other

    def release_pages(self) -> None:
        """Release the pages and their memory on all devices."""
        for number, backend in self._backends.items():
            with self._watching(number):
                backend.release_pages()

    def find_mems(
        self, block: QueryBlock, strands: Sequence[Strand], max_rows: int
    ) -> dict[Strand, MemColumns] | None:
        """Return the MEMs of a block (`interface.Backend.find_mems`), found on a free device."""
        with self._free_device() as number:
            return self._backends[number].find_mems(block, strands, max_rows)

    @property
    def makes_text(self) -> bool:
        """Whether every device makes text of the matches on the loaded pages."""
        every = self._backends.values()
        return all(isinstance(backend, TextBackend) and backend.makes_text for backend in every)

    def set_format(self, row_format: RowFormat) -> None:
        """Set the format of the text on all devices that make text."""
        for backend in self._backends.values():
            if isinstance(backend, TextBackend):
                backend.set_format(row_format)

    def find_text(
        self, block: QueryBlock, strands: Sequence[Strand], max_rows: int
    ) -> BlockText | None:
        """Return the text of a block (`interface.TextBackend.find_text`), made on a free device."""
        with self._free_device() as number:
            backend = self._backends[number]
            assert isinstance(backend, TextBackend)
            return backend.find_text(block, strands, max_rows)

    @property
    def hands_over(self) -> bool:
        """Whether every device hands over the matches on the loaded pages."""
        every = self._backends.values()
        return all(isinstance(backend, ResidentBackend) and backend.hands_over for backend in every)

    def use_matches(
        self, block: QueryBlock, max_rows: int, use: Callable[[ResidentMatches], Result]
    ) -> Result | None:
        """Return what is made of matches on a free device (`interface.ResidentBackend`)."""
        with self._free_device() as number:
            backend = self._backends[number]
            assert isinstance(backend, ResidentBackend)
            return backend.use_matches(block, max_rows, use)

    def close(self) -> None:
        """Wait for running searches, then free all memory and close all devices.

        A device that fails now raises `BackendError` when all are closed, if none has failed
        before.
        """
        failed_before = self._failure is not None
        self._fail("the backend is closed")
        try:
            with ExitStack() as stack:
                stack.callback(self._pool.close)
                for number in reversed(self._backends):
                    stack.callback(self._close_backend, number)
        except BackendError:
            # The run has ended with an earlier error, which says more.
            if not failed_before:
                raise
        if not failed_before:
            self._record_blocks()

    def _close_backend(self, number: int) -> None:
        with self._naming(number):
            self._backends[number].close()

    @contextmanager
    def _free_device(self) -> Iterator[int]:
        """Take a stream for a ``with`` statement; give the number of its device."""
        number = self._take_stream()
        try:
            with self._watching(number):
                yield number
        finally:
            self._return_stream(number)

    def _take_stream(self) -> int:
        """Wait for a free stream, and return the device of it: the one with most free streams."""
        with self._changed:
            while True:
                if self._failure is not None:
                    raise BackendError(self.name, self._failure)
                number = max(self._backends, key=self._preference)
                if self._free_streams[number] > 0:
                    self._free_streams[number] -= 1
                    self._block_counts[number] += 1
                    return number
                self._changed.wait()

    def _preference(self, number: int) -> tuple[int, int]:
        """Return what decides between devices: free streams, then how few blocks each has had."""
        return self._free_streams[number], -self._block_counts[number]

    def _return_stream(self, number: int) -> None:
        with self._changed:
            self._free_streams[number] += 1
            self._changed.notify()

    def _fail(self, message: str) -> None:
        """Make all searches that wait or come later raise an error with the first message."""
        with self._changed:
            if self._failure is None:
                self._failure = message
            self._changed.notify_all()

    @contextmanager
    def _naming(self, number: int) -> Iterator[None]:
        with naming_device(number, self._backends[number].device.name):
            yield

    @contextmanager
    def _watching(self, number: int) -> Iterator[None]:
        """Name the device in an error of a ``with`` statement, and end the other searches."""
        try:
            with self._naming(number):
                yield
        except BackendError as error:
            self._fail(error.message)
            raise
        except BaseException as error:
            # Only the message: an exception would hold the memory of its frames.
            name = self._backends[number].device.name
            self._fail(f"device {number} ({name}): {type(error).__name__}: {error}")
            raise

    def _record_devices(self) -> None:
        """Record the names and the memory of all devices, in place of those of the last one."""
        names, architectures, memory = [], [], 0
        for number, backend in self._backends.items():
            names.append(f"{backend.device.name} ({number})")
            architectures.append(backend.device.architecture)
            with backend.device.current():
                memory += backend.device.memory()[1]
        self._stats.set(
            device=", ".join(names),
            architecture=", ".join(dict.fromkeys(architectures)),
            device_memory=memory,
        )

    def _record_blocks(self) -> None:
        """Record how many blocks each device has searched."""
        counts = self._block_counts
        self._stats.set(device_blocks={str(number): count for number, count in counts.items()})
        texts = [f"{count:,} on device {number}" for number, count in counts.items()]
        self._notice(f"blocks searched: {', '.join(texts)}")
