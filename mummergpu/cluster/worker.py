"""The state of a run on a worker, and the steps of a part."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from mummergpu.cluster.joined_files import PackedPart, pack_part
from mummergpu.cluster.options import OF_LOCAL
from mummergpu.cuda.driver import driver_facts
from mummergpu.input.blocks.reader import LongReads
from mummergpu.matching.options import DeviceOptions
from mummergpu.output.bytes.compression import compressor_of
from mummergpu.runtime.stats import StatsTotals

_IDLE_SECONDS: Final = 600.0
"""After this time without work, a run whose end was not reported is released."""


class PartReport(NamedTuple):
    """The report of a part for the driver.

    `sizes` are the bytes for each file, 0 if its rows are not plain bytes; `totals` are counts and
    times; `summary` is that of the reads, and `long_reads` counts those that are too long to map.
    """

    sizes: tuple[int, ...]
    totals: StatsTotals
    summary: Any = None
    long_reads: LongReads = LongReads()


@dataclass
class FoundRows:
    """The result of a part: for each file its bytes, or rows prepared by its sink."""

    rows: list[Any]
    report: PartReport


def sizes_of(rows: Sequence[Any]) -> tuple[int, ...]:
    """Return the bytes for each file."""
    return tuple(one.size if isinstance(one, np.ndarray) else 0 for one in rows)


class PartFinder(Protocol):
    """Does the work of a job on a worker, with the index loaded."""

    def find(self, work: Any, part: Any) -> Any:
        """Return the result of a part; several threads may call this."""

    def close(self) -> None:
        """Release the index."""


class Work(Protocol):
    """The description of a run for workers, sent with each part.

    Attributes
    ----------
    token : str
        A name that no other run has.
    """

    @property
    def token(self) -> str: ...  # noqa: D102

    def open(self, threads: int, number: int | None) -> PartFinder:
        """Load the data of the work; `number` is that of a process of ``local:N``."""


class RowWork(Work, Protocol):
    """Work whose rows go to files.

    `compressions` is how workers compress each file (`compressor_of`); `folders` are the folders
    for the parts of each file, None to send them to the driver.
    """

    @property
    def compressions(self) -> tuple[str | None, ...]: ...  # noqa: D102
    @property
    def folders(self) -> tuple[str | None, ...]: ...  # noqa: D102


@dataclass
class _Opened:
    finder: PartFinder
    used: float
    users: int = 0


_opened: Final[dict[str, _Opened]] = {}
_forgotten: Final[set[str]] = set()
_lock: Final = threading.Lock()


def find(work: Work, part: Any) -> Any:
    """Do the work on a part, with the data that this process has loaded for it."""
    place = threads_and_number()
    with _lock:
        opened = _open(work, *place)
        opened.users += 1
    try:
        return opened.finder.find(work, part)
    finally:
        with _lock:
            opened.users -= 1
            opened.used = time.monotonic()


def _open(work: Work, threads: int, number: int | None) -> _Opened:
    """Return the data of a run, loaded once; the caller holds the lock."""
    if work.token not in _opened:
        _forget_idle()
        _opened[work.token] = _Opened(work.open(threads, number), time.monotonic())
    return _opened[work.token]


def begin_to_open(work: Work, dask_worker: Any = None) -> None:
    """Begin to load the data of a run, which its first part would wait for."""

    def open_work() -> None:
        # Whoever does the first part raises the error again. The run may have failed meanwhile.
        with suppress(Exception), _lock:
            if work.token not in _forgotten:
                _open(work, *threads_and_number(dask_worker))

    # In a thread: the worker could not answer while this waits.
    threading.Thread(target=open_work, daemon=True).start()


def begin_to_import(module: str) -> None:
    """Begin to import the module of a job."""
    threading.Thread(target=import_module, args=(module,), daemon=True).start()


def report(found: FoundRows) -> PartReport:
    """Return the report of a part."""
    return found.report


def pack(work: RowWork, found: FoundRows, offsets: Sequence[int]) -> list[PackedPart | list[Any]]:
    """Return the rows of a part as they will be in the files."""
    packed: list[PackedPart | list[Any]] = []
    _, process = threads_and_number()
    for number, rows in enumerate(found.rows):
        if isinstance(rows, list):
            packed.append(rows)
            continue
        compressor = compressor_of(work.compressions[number])
        place = offsets[number], compressor, work.folders[number]
        # On a shared file system, others see a file only when its data have been sent.
        packed.append(pack_part(rows, *place, is_synced=process is None))
    return packed


def forget(token: str) -> None:
    """Release the index of a finished run, as soon as nobody uses it."""
    # In a thread: the worker could not answer while this waits.
    threading.Thread(target=_forget, args=(token,), daemon=True).start()


def _forget(token: str) -> None:
    while True:
        with _lock:
            opened = _opened.get(token)
            if opened is None or opened.users == 0:
                _opened.pop(token, None)
                _forgotten.add(token)
                break
        time.sleep(0.1)
    if opened is not None:
        opened.finder.close()


def _forget_idle() -> None:
    now = time.monotonic()
    for token, one in list(_opened.items()):
        if one.users == 0 and now - one.used > _IDLE_SECONDS:
            _opened.pop(token).finder.close()


def threads_and_number(worker: Any = None) -> tuple[int, int | None]:
    """Return the threads of a worker, and its number among the processes of ``local:N``.

    The worker is that of the task that calls this, unless another one is given.
    """
    from distributed import get_worker

    worker = worker or get_worker()
    number = int(worker.name) if OF_LOCAL in worker.state.total_resources else None
    return int(worker.state.nthreads), number


def device_of_process(device: DeviceOptions, threads: int, process: int | None) -> DeviceOptions:
    """Return the options of a worker's GPU: the processes of ``local:N`` take turns at the GPUs."""
    number = device.number
    if process is not None and device.backend != "cpu":
        count = len(driver_facts().devices)
        if number < count:
            number = (number + process) % count
    return replace(device, threads=threads, number=number)
