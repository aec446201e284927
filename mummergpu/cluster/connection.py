"""Opens a cluster of Dask, and asks its scheduler."""

from __future__ import annotations

import importlib
import logging
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

from mummergpu.cluster.options import OF_LOCAL, SLURM, ClusterOptions
from mummergpu.errors import ClusterError, LibraryError, MummergpuError
from mummergpu.runtime import optional_imports
from mummergpu.runtime.optional_imports import in_one_line
from mummergpu.runtime.processors import processor_count

CONNECT_SECONDS: Final = 30
"""How long a scheduler may take to answer."""

SIGN_SECONDS: Final = 30.0
"""How long a worker may be silent: Dask's send a sign of life every .5 s, to every 6 s of 1,000."""

_FRESH_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.5
_QUIET: Final = ("distributed", "distributed.client", "tornado.application", "dask_jobqueue")
_LARGE_GRAPH: Final = "distributed.admin.large-graph-warning-threshold"
_LIGHT: Final = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500 ms",
    "distributed.worker.memory.monitor-interval": "500 ms",
}
"""Processes here are not profiled every 10 ms, nor looked at every 20: nobody sees the result."""


Notice = Callable[[str], None]


class OpenCluster:
    """A client of a scheduler, and what is known of its workers."""

    def __init__(self, client: Any, options: ClusterOptions, notice: Notice) -> None:
        self.client = client
        self.name = options.name
        self.processes = options.processes
        self.patience = options.patience
        self.notice = notice
        self._threads: dict[str, int] = {}
        self._last_seen: dict[str, float] = {}
        self._looked = 0.0

    @property
    def workers(self) -> set[str]:
        """The addresses of the workers."""
        if time.monotonic() - self._looked > _FRESH_SECONDS:
            self.look_for_workers()
        return set(self._threads)

    @property
    def thread_count(self) -> int:
        """The threads of all workers."""
        return sum(self._threads[worker] for worker in self.workers)

    @property
    def window(self) -> int:
        """How many parts are under way, so that no thread of a worker waits."""
        return 2 * self.thread_count + len(self._threads) + 1

    def look_for_workers(self) -> set[str]:
        """Ask the scheduler which workers there are."""
        found = self._ask(self.client.scheduler.identity, n_workers=-1)["workers"]
        self._threads = {address: int(one["nthreads"]) for address, one in found.items()}
        self._last_seen = {address: one.get("last_seen", 0.0) for address, one in found.items()}
        self._looked = time.monotonic()
        return set(self._threads)

    def workers_alive(self) -> set[str]:
        """Return the workers that send signs of life, as Dask's do though all threads are busy.

        Waits for the first of them, or for long enough to say that there is none.
        """
        before = self._last_seen
        deadline = time.monotonic() + SIGN_SECONDS
        alive: set[str] = set()
        while not alive and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
            workers = self.look_for_workers()
            alive = {one for one in workers if self._last_seen[one] > before.get(one, 0.0)}
        return alive

    def places(self) -> dict[str, set[str]]:
        """Return the workers that work on each key of Dask, or hold what came of it."""
        scheduler = self.client.scheduler
        found: dict[str, set[str]] = {}
        for worker, keys in self._ask(scheduler.processing, workers=None).items():
            for key in keys:
                found.setdefault(key, set()).add(worker)
        for key, workers in self._ask(scheduler.who_has, keys=None).items():
            found.setdefault(key, set()).update(workers)
        return found

    def on_all(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Call a function on all workers; return what each of them returns or raises."""
        with self.told():
            found: dict[str, Any] = self.client.run(
                function, *arguments, on_error="return", callback_timeout=2 * CONNECT_SECONDS
            )
        return found

    def tell_all(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function on all workers that still answer at once."""
        with suppress(Exception):
            self.client.run(function, *arguments, on_error="ignore", callback_timeout=2)

    def _ask(self, call: Callable[..., Any], **arguments: Any) -> Any:
        with self.told():
            return self.client.sync(call, callback_timeout=CONNECT_SECONDS, **arguments)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raise what fails between this process and the scheduler as one clear error."""
        import dask

        try:
            with dask.config.set({_LARGE_GRAPH: "1 TB"}):
                yield
        except MummergpuError:
            raise
        except Exception as error:
            self.refuse_if_gone(error)
            raise ClusterError(self.name, _words_of(error)) from error

    def refuse_if_gone(self, error: BaseException) -> None:
        """Raise what to tell the user if the scheduler has gone, or workers end one by one."""
        from distributed import KilledWorker

        if isinstance(error, KilledWorker):
            message = "several workers ended at the same part of the work; out of memory?"
            raise ClusterError(self.name, message) from None
        # The connection is found to be broken a moment after what went by it has failed.
        time.sleep(0.05)
        if self.client.status != "running":
            message = "the scheduler has gone, and nothing is written"
            raise ClusterError(self.name, message) from None


@contextmanager
def open_cluster(options: ClusterOptions, notice: Notice) -> Generator[OpenCluster]:
    """Connect to a cluster, or start one, for the ``with`` block.

    Raises
    ------
    LibraryError
        If Dask's library is missing.
    ClusterError
        If the cluster cannot be reached or started.
    """
    library = optional_imports.find("distributed", "distributed")
    if library.problem is not None:
        raise LibraryError("--cluster", "distributed", "dask", library.problem)
    with ExitStack() as stack:
        client = options.client
        if client is None:
            _silence()
            try:
                client = _client_of(options, stack)
            except MummergpuError:
                raise
            except Exception as error:
                raise ClusterError(options.name, _words_of(error)) from error
            stack.callback(_close, client)
        cluster = OpenCluster(client, options, notice)
        _wait_for_workers(cluster, options)
        yield cluster


def _wait_for_workers(cluster: OpenCluster, options: ClusterOptions) -> None:
    """Wait for all processes here, or the first one elsewhere; jobs may wait for long."""
    needed = options.processes or 1
    deadline = time.monotonic() + 4 * CONNECT_SECONDS
    is_told = False
    while len(cluster.look_for_workers()) < needed:
        if not options.address.startswith(SLURM) and time.monotonic() > deadline:
            raise ClusterError(options.name, "the scheduler has no workers")
        if not is_told:
            cluster.notice("waiting for workers")
            is_told = True
        time.sleep(0.1)


def _client_of(options: ClusterOptions, stack: ExitStack) -> Any:
    """Return a client of a scheduler; the stack ends what is started for it."""
    import distributed

    # Its functions tell no types.
    library: Any = distributed
    processes = options.processes
    if processes is not None:
        import dask

        threads = options.threads or max(1, processor_count() // processes)
        with dask.config.set(_LIGHT):
            started = library.LocalCluster(
                n_workers=processes,
                threads_per_worker=threads,
                processes=True,
                resources={OF_LOCAL: 1},
                # Without an address, it would be the same for two runs.
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                host="127.0.0.1",
                silence_logs=logging.CRITICAL,
            )
        stack.callback(_close, started)
        return library.Client(started, timeout=CONNECT_SECONDS)
    if options.address.startswith(SLURM):
        started = _slurm_cluster(options.address[len(SLURM) :])
        stack.callback(_close, started)
        return library.Client(started, timeout=CONNECT_SECONDS)
    return library.Client(options.address, timeout=CONNECT_SECONDS, set_as_default=False)


def _slurm_cluster(path: str) -> Any:
    """Start jobs of SLURM, with the options of a file in YAML; ``jobs`` says how many."""
    library = optional_imports.find("dask-jobqueue", "dask_jobqueue")
    if library.problem is not None:
        raise LibraryError("--cluster slurm:FILE", "dask-jobqueue", "dask", library.problem)
    import dask_jobqueue
    import yaml

    with open(path, encoding="utf-8") as file:
        told = yaml.safe_load(file)
    if not isinstance(told, dict) or not isinstance(told.get("jobs"), int):
        raise ClusterError(path, "it must say jobs: N, and dask-jobqueue's options, such as cores")
    jobs = told.pop("jobs")
    # Its modules tell no types.
    jobqueue: Any = dask_jobqueue
    cluster: Any = jobqueue.SLURMCluster(**told)
    cluster.scale(jobs=jobs)
    return cluster


def _silence() -> None:
    """Leave it to errors to tell what has happened: Dask's log has many lines for each."""
    # It sets the levels of its loggers when it is imported.
    importlib.import_module("distributed")
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _close(opened: Any) -> None:
    """Close a client or a cluster, which may have gone already."""
    with suppress(Exception):
        opened.close(timeout=5)


def _words_of(error: Exception) -> str:
    if isinstance(error, TimeoutError | OSError):
        return f"cannot be reached: {in_one_line(error)}"
    return in_one_line(error)
