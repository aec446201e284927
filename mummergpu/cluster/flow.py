"""Sends parts of the work to workers, and yields the results in the order of the parts.

A part is searched, and its rows stay on the worker until the size of the output before it is known.
Then it is packed: compressed, with the block borders that the whole file will have.

If a worker ends, Dask sends its parts to another one; but it takes minutes to notice that a worker
hangs. So if the first part does not come in time, other workers get the parts of that worker, too,
and the first result counts: all of them find the same.
"""

from __future__ import annotations

import os
import pickle
import socket
import threading
import time
from asyncio import run_coroutine_threadsafe
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import Future as LocalFuture
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from mummergpu.cluster.connection import DIGEST, OpenCluster
from mummergpu.errors import BackendError, ClusterError, MummergpuError, OutputError
from mummergpu.runtime.frozen import frozen

Result = TypeVar("Result")


@frozen
class Fault:
    """Why a worker has not done a task.

    `is_of_machine` means that another worker may do it, for example if disk or memory is full.
    """

    error: MummergpuError
    worker: str
    is_of_machine: bool


def own_address() -> str:
    """Return the address of this worker."""
    from distributed import get_worker

    return str(get_worker().address)


def own_name() -> str:
    """Return the address and the machine of this worker."""
    return f"worker {own_address()} on {socket.gethostname()}"


def guarded(digest: str | None, function: Callable[..., Result], *arguments: Any) -> Result | Fault:
    """Call a function on a worker; return its result, or its exception as a `Fault`.

    `digest` is that of the sources of the driver. A fault among the arguments is returned.
    """
    for argument in arguments:
        if isinstance(argument, Fault):
            return argument
    try:
        if digest != DIGEST:
            raise ClusterError(own_name(), "has another version of mummergpu")
        return function(*arguments)
    except Exception as error:
        return _fault_of(error)


def _fault_of(error: Exception) -> Fault:
    is_of_machine = isinstance(
        error, OSError | MemoryError | OutputError | BackendError | ClusterError
    )
    clear: MummergpuError
    if isinstance(error, ClusterError):
        clear = error
    elif isinstance(error, MummergpuError) and not is_of_machine and _travels(error):
        clear = error
    elif isinstance(error, MummergpuError):
        clear = ClusterError(own_name(), str(error))
    elif isinstance(error, MemoryError):
        clear = ClusterError(own_name(), "out of memory; smaller blocks or fewer threads need less")
    elif isinstance(error, OSError):
        place = "" if error.filename is None else f"{error.filename}: "
        clear = ClusterError(own_name(), f"{place}{error.strerror or error}")
    else:
        clear = ClusterError(own_name(), f"internal: {type(error).__name__}: {error}")
    return Fault(clear, own_address(), is_of_machine)


def _travels(error: MummergpuError) -> bool:
    """Return whether an error can be sent to another process."""
    try:
        return str(pickle.loads(pickle.dumps(error))) == str(error)
    except Exception:
        return False


FIRST_PATIENCE: Final = 900.0
"""The seconds that the first parts may take: workers compile, and read the index."""

MOST_FAULTS: Final = 3
"""The number of workers that may fail at the same part."""

_TIMES_LONGEST: Final = 4
_LOOK_SECONDS: Final = 0.5
_SOON: Final = 10

Step = Callable[..., Any]
"""A function of a module, which a worker calls."""


@dataclass
class _Attempt:
    """A part at a worker: Dask's futures, and local futures of their values."""

    found: Any
    report: LocalFuture[Any]
    since: float
    packing: Any = None
    packed: LocalFuture[Any] | None = None


@dataclass
class _Flight:
    """A part in work."""

    number: int
    part: Any
    attempts: list[_Attempt] = field(default_factory=list)
    begun: int = 0
    avoided: set[str] = field(default_factory=set)
    faults: int = 0
    report: Any = None
    offsets: tuple[int, ...] | None = None
    result: Any = None
    is_done: bool = False


@frozen
class Steps:
    """The steps of a part on a worker.

    `find` searches a part, given the work and the part. `report` reduces its result to the report
    for the driver, whose `sizes` are the bytes for each file (None: the driver gets the result).
    `pack` receives the work, the result of `find`, and its offset in each file.
    """

    find: Step
    report: Step | None = None
    pack: Step | None = None


class Flow:
    """Sends parts to workers.

    `work` is the argument of `Steps` besides a part, with a unique `token`. `begins` are the bytes
    in each file before the first part.
    """

    def __init__(
        self, cluster: OpenCluster, work: Any, steps: Steps, begins: Sequence[int] = ()
    ) -> None:
        self._cluster = cluster
        self._work = work
        self._steps = steps
        self._offsets = list(begins)
        self._name = os.urandom(8).hex()
        self._wake = threading.Event()
        self._suspects: set[str] = set()
        self._longest: float | None = None
        self._first_since = 0.0
        self._leniency = 1

    def results(self, parts: Iterable[Any]) -> Generator[tuple[Any, Any]]:
        """Yield the report of each part, and its packed rows, in the order of the parts.

        Raises
        ------
        MummergpuError
            If a worker raises an error that any other would raise, too.
        ClusterError
            If workers or the scheduler fail.
        """
        flights: deque[_Flight] = deque()
        waiting, number = iter(parts), 0
        is_over = False
        while True:
            while not is_over and len(flights) < self._cluster.window:
                part = next(waiting, None)
                if part is None:
                    is_over = True
                    break
                flights.append(_Flight(number, part))
                self._begin(flights[-1])
                number += 1
            if not flights:
                return
            self._wake.clear()
            self._advance(flights)
            if not flights[0].is_done:
                self._look_after(flights)
                self._wake.wait(_LOOK_SECONDS)
                continue
            done = flights.popleft()
            self._first_since = time.monotonic()
            yield done.report, done.result
            del done

    def _submit(self, flight: _Flight, name: str, step: Step, *arguments: Any, soon: bool) -> Any:
        key = f"mummergpu-{name}-{self._name}-{flight.number}-{flight.begun}"
        avoided = self._suspects | flight.avoided
        usable = [one for one in self._cluster.workers if one not in avoided]
        where = {"workers": usable, "allow_other_workers": True} if avoided and usable else {}
        with self._cluster.clear_errors():
            return self._cluster.client.submit(
                guarded,
                *(DIGEST, step, *arguments),
                key=key,
                priority=_SOON if soon else 0,
                **where,
            )

    def _fetch(self, future: Any) -> LocalFuture[Any]:
        """Return a local future for the value of a Dask future, without a waiting thread."""
        client = self._cluster.client

        async def gather() -> Any:
            return await client.gather(future, asynchronous=True)

        fetched = run_coroutine_threadsafe(gather(), client.loop.asyncio_loop)
        fetched.add_done_callback(lambda _: self._wake.set())
        return fetched

    def _begin(self, flight: _Flight) -> None:
        """Send a part to a worker."""
        flight.begun += 1
        steps = self._steps
        found = self._submit(flight, "find", steps.find, self._work, flight.part, soon=False)
        report = found
        if steps.report is not None:
            report = self._submit(flight, "report", steps.report, found, soon=True)
        flight.attempts.append(_Attempt(found, self._fetch(report), time.monotonic()))

    def _advance(self, flights: Sequence[_Flight]) -> None:
        """Take results that have arrived, and pack parts once all earlier sizes are known."""
        is_known = True
        for flight in flights:
            for attempt in list(flight.attempts):
                if not flight.is_done:
                    self._look_at(flight, attempt)
            if is_known and flight.offsets is None and flight.report is not None:
                flight.offsets = tuple(self._offsets)
                if self._steps.pack is not None:
                    for number, size in enumerate(flight.report.sizes):
                        self._offsets[number] += size
            is_known = flight.offsets is not None
            for attempt in flight.attempts:
                self._pack(flight, attempt)

    def _pack(self, flight: _Flight, attempt: _Attempt) -> None:
        pack = self._steps.pack
        if pack is None or flight.offsets is None or attempt.packing is not None:
            return
        if not attempt.report.done() or flight.is_done:
            return
        arguments = self._work, attempt.found, flight.offsets
        attempt.packing = self._submit(flight, "pack", pack, *arguments, soon=True)
        attempt.packed = self._fetch(attempt.packing)

    def _look_at(self, flight: _Flight, attempt: _Attempt) -> None:
        """Take the result of an attempt, if it has arrived."""
        wanted = attempt.packed if attempt.packed is not None else attempt.report
        if not wanted.done():
            return
        try:
            value = wanted.result()
        except (Exception, CancelledError) as error:
            self._cluster.refuse_if_gone(error)
            value = Fault(ClusterError(self._cluster.name, f"{error}"), "", True)
        if isinstance(value, Fault):
            self._take_fault(flight, attempt, value)
            return
        if wanted is attempt.report and flight.report is None:
            flight.report = value
            self._longest = max(self._longest or 0.0, time.monotonic() - attempt.since)
        if wanted is attempt.packed or self._steps.pack is None:
            flight.result, flight.is_done = value, True
            flight.attempts.clear()

    def _take_fault(self, flight: _Flight, attempt: _Attempt, fault: Fault) -> None:
        """Send a part that a worker could not do to another one."""
        flight.attempts.remove(attempt)
        flight.faults += 1
        flight.avoided.add(fault.worker)
        if not fault.is_of_machine or flight.faults >= MOST_FAULTS:
            raise fault.error
        self._cluster.notice(f"another worker gets a part again: {fault.error}")
        if not flight.attempts:
            self._begin(flight)

    def _look_after(self, flights: Sequence[_Flight]) -> None:
        """If the first part is late, send all parts of its worker to other workers, too."""
        first = flights[0]
        since = max(self._first_since, *(attempt.since for attempt in first.attempts))
        waited = time.monotonic() - since
        patience, max_patience = FIRST_PATIENCE, FIRST_PATIENCE
        if self._longest is not None:
            usual = max(self._cluster.patience, _TIMES_LONGEST * self._longest)
            max_patience = FIRST_PATIENCE + usual
            patience = min(max_patience, usual * self._leniency)
        if waited < patience:
            return
        workers = self._cluster.look_for_workers()
        places = self._cluster.places()
        stuck = {worker for one in first.attempts for worker in _workers_of(one, places)}
        self._suspects = (self._suspects | stuck) & workers
        if not workers - self._suspects:
            # All of them are late, which may only mean that the machines have other work.
            alive = self._cluster.workers_alive() if patience < max_patience else set()
            if not alive:
                words = f"no worker has answered for {waited:.0f} s"
                raise ClusterError(self._cluster.name, words)
            self._suspects -= alive
            self._leniency *= 2
            # A live worker, and its results, may wait for the result of a silent one, because Dask
            # fetches the values of several workers together, and waits for all of them.
            stuck -= alive
            if not stuck and not any(one.found.done() for one in first.attempts):
                return
        late = ", ".join(sorted(stuck)) or "those that are late"
        self._cluster.notice(f"other workers get the parts of {late}")
        for flight in flights:
            needs_stuck = all(_workers_of(one, places) & stuck for one in flight.attempts)
            if not flight.is_done and (flight is first or needs_stuck):
                self._begin(flight)


def _workers_of(attempt: _Attempt, places: dict[str, set[str]]) -> set[str]:
    """Return the workers that have a part or its results."""
    keys = [one.key for one in (attempt.found, attempt.packing) if one is not None]
    return {worker for key in keys for worker in places.get(key, ())}
