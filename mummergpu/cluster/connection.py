"""Opens a Dask cluster, queries its scheduler, and checks its workers before any work.

All workers must have the same programs, and see the same files.
"""

from __future__ import annotations

import importlib
import logging
import os
import platform
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b
from importlib import metadata
from typing import Any, Final, NamedTuple

from mummergpu.cluster.options import OF_LOCAL, SLURM, ClusterOptions
from mummergpu.errors import ClusterError, LibraryError, MummergpuError
from mummergpu.runtime import optional_imports
from mummergpu.runtime.compiled.sources import digest_of_sources
from mummergpu.runtime.optional_imports import in_one_line
from mummergpu.runtime.processors import processor_count
from mummergpu.version import __version__

CONNECT_SECONDS: Final = 30
"""How long a scheduler may take to answer."""

SIGN_SECONDS: Final = 30.0
"""How long a worker may be silent: heartbeats come every 0.5 s, or 6 s with 1,000 workers."""

_FRESH_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.5
_QUIET: Final = ("distributed", "distributed.client", "tornado.application", "dask_jobqueue")
_LARGE_GRAPH: Final = "distributed.admin.large-graph-warning-threshold"
_LIGHT: Final = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500 ms",
    "distributed.worker.memory.monitor-interval": "500 ms",
}
"""No profiling every 10 ms, and fewer checks than every 20 ms, whose results nobody sees."""


Notice = Callable[[str], None]


class OpenCluster:
    """A client of a scheduler, and the known state of its workers."""

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
        """The number of parts in work at once, so that no thread of a worker waits."""
        return 2 * self.thread_count + len(self._threads) + 1

    def look_for_workers(self) -> set[str]:
        """Ask the scheduler for the addresses of its workers."""
        found = self._ask(self.client.scheduler.identity, n_workers=-1)["workers"]
        self._threads = {address: int(one["nthreads"]) for address, one in found.items()}
        self._last_seen = {address: one.get("last_seen", 0.0) for address, one in found.items()}
        self._looked = time.monotonic()
        return set(self._threads)

    def workers_alive(self) -> set[str]:
        """Return the workers that send heartbeats; Dask's do so even if all threads are busy.

        Wait for the first heartbeat, or for `SIGN_SECONDS` if there is none.
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
        """Return the workers that compute each Dask key, or hold its result."""
        scheduler = self.client.scheduler
        found: dict[str, set[str]] = {}
        for worker, keys in self._ask(scheduler.processing, workers=None).items():
            for key in keys:
                found.setdefault(key, set()).add(worker)
        for key, workers in self._ask(scheduler.who_has, keys=None).items():
            found.setdefault(key, set()).update(workers)
        return found

    def on_all(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Call a function on all workers; return the result or the exception of each."""
        with self.clear_errors():
            found: dict[str, Any] = self.client.run(
                function, *arguments, on_error="return", callback_timeout=2 * CONNECT_SECONDS
            )
        return found

    def tell_all(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function on all workers that still answer at once."""
        with suppress(Exception):
            self.client.run(function, *arguments, on_error="ignore", callback_timeout=2)

    def start_on_all(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function on all workers, and do not wait for it; its failures do not count."""
        threading.Thread(target=self.tell_all, args=(function, *arguments), daemon=True).start()

    def _ask(self, call: Callable[..., Any], **arguments: Any) -> Any:
        with self.clear_errors():
            return self.client.sync(call, callback_timeout=CONNECT_SECONDS, **arguments)

    @contextmanager
    def clear_errors(self) -> Iterator[None]:
        """Raise failures between this process and the scheduler as one clear error."""
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
        """Raise a clear error if the scheduler has gone, or workers end one by one."""
        from distributed import KilledWorker

        if isinstance(error, KilledWorker):
            message = "several workers ended at the same part of the work; out of memory?"
            raise ClusterError(self.name, message) from None
        # The broken connection is noticed a moment after the requests on it have failed.
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
    """Wait for all local processes, or for the first remote worker; jobs may be queued for long."""
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
    """Return a client of a scheduler; the stack ends the processes started for it."""
    import distributed

    # The functions of distributed have no types.
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
                # Without an address, two runs would share it.
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
    """Start SLURM jobs, with the options of a YAML file; ``jobs`` is their number."""
    library = optional_imports.find("dask-jobqueue", "dask_jobqueue")
    if library.problem is not None:
        raise LibraryError("--cluster slurm:FILE", "dask-jobqueue", "dask", library.problem)
    import dask_jobqueue
    import yaml

    with open(path, encoding="utf-8") as file:
        options = yaml.safe_load(file)
    if not isinstance(options, dict) or not isinstance(options.get("jobs"), int):
        raise ClusterError(path, "it must say jobs: N, and dask-jobqueue's options, such as cores")
    jobs = options.pop("jobs")
    # The modules of dask-jobqueue have no types.
    jobqueue: Any = dask_jobqueue
    cluster: Any = jobqueue.SLURMCluster(**options)
    cluster.scale(jobs=jobs)
    return cluster


def _silence() -> None:
    """Silence Dask's log, which has many lines for each error."""
    # Dask sets the levels of its loggers when it is imported.
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


DIGEST: Final = digest_of_sources()
"""The digest of the sources of this process when it began."""

_LIBRARIES: Final = ("numpy", "isal", "pysam", "pyhmmer", "distributed")
"""The libraries whose versions may change the output, or the data sent between processes."""

_LOOKED_AT: Final = 1 << 16
"""The number of first and last bytes by which files are compared."""

_SIGN: Final = "shared"
_SECONDS_TO_APPEAR: Final = 20.0
"""How long a file made by one machine may take to appear on another."""


class WorkerFacts(NamedTuple):
    """A worker's machine and its programs, each with its version."""

    host: str
    versions: tuple[tuple[str, str], ...]


class FileFacts(NamedTuple):
    """Size and digest of a file as a machine sees it; the reason if it cannot be read."""

    size: int
    digest: str
    problem: str = ""


def worker_facts() -> WorkerFacts:
    """Return the facts of this process."""
    own = f"{__version__} ({(DIGEST or 'unknown')[:12]})"
    python = ".".join(platform.python_version_tuple()[:2])
    libraries = [(name, _version_of(name)) for name in _LIBRARIES]
    return WorkerFacts(socket.gethostname(), (("mummergpu", own), ("python", python), *libraries))


def _version_of(library: str) -> str:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(library)
    return "none"


def check_versions(cluster: OpenCluster) -> None:
    """Refuse a worker whose programs differ from those of this process.

    Raises
    ------
    ClusterError
        With the worker and the difference.
    """
    own = dict(worker_facts().versions)
    for address, facts in sorted(cluster.on_all(worker_facts).items()):
        if isinstance(facts, Exception):
            raise ClusterError(f"worker {address}", f"mummergpu does not run there: {facts}")
        for name, version in facts.versions:
            if version != own[name]:
                raise ClusterError(
                    f"worker {address} on {facts.host}",
                    f"has {name} {version}, and this process {own[name]}: install the same "
                    "versions everywhere",
                )


def file_facts(paths: Sequence[str]) -> list[FileFacts]:
    """Return the facts of some files, as this machine sees them."""
    return [_facts_of(path) for path in paths]


def _facts_of(path: str) -> FileFacts:
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            seen = file.read(_LOOKED_AT) + os.pread(
                file.fileno(), _LOOKED_AT, max(0, size - _LOOKED_AT)
            )
    except OSError as error:
        return FileFacts(0, "", error.strerror or str(error))
    return FileFacts(size, blake2b(seen, digest_size=16).hexdigest())


def check_files(cluster: OpenCluster, paths: Sequence[str]) -> None:
    """Refuse a worker that does not see a file, or sees another one at its path.

    Raises
    ------
    ClusterError
        With the worker and the path.
    """
    own = file_facts(paths)
    for address, seen in sorted(cluster.on_all(file_facts, tuple(paths)).items()):
        if isinstance(seen, Exception):
            raise ClusterError(f"worker {address}", str(seen))
        for path, ours, theirs in zip(paths, own, seen, strict=True):
            if ours.problem:
                continue
            if theirs != ours:
                problem = theirs.problem or "it is another file"
                message = f"does not see '{path}' ({problem}): put it where all machines see it"
                raise ClusterError(f"worker {address}", message)


def sign_folder(folder: str, name: str) -> str:
    """Create a file in a folder of parts if this machine sees the driver's file there.

    Return the problem, empty if there is none.
    """
    try:
        os.stat(os.path.join(folder, _SIGN))
        with open(os.path.join(folder, name), "wb"):
            pass
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _sign(folder: str) -> tuple[str, str]:
    name = f"sign-{socket.gethostname()}-{os.getpid()}"
    return name, sign_folder(folder, name)


def check_folders(cluster: OpenCluster, folders: Sequence[str]) -> None:
    """Refuse a worker that cannot write where this process reads.

    Of `folders` with the same parent, one is checked. Raise `ClusterError` with the worker and the
    folder.
    """
    for folder in {os.path.dirname(folder): folder for folder in folders}.values():
        _check_folder(cluster, folder)


def _check_folder(cluster: OpenCluster, folder: str) -> None:
    with open(os.path.join(folder, _SIGN), "wb"):
        pass
    shared = os.path.dirname(folder)
    deadline = time.monotonic() + _SECONDS_TO_APPEAR
    for address, sign in sorted(cluster.on_all(_sign, folder).items()):
        if isinstance(sign, Exception):
            raise ClusterError(f"worker {address}", str(sign))
        name, problem = sign
        path = os.path.join(folder, name)
        while not problem and not os.path.exists(path):
            if time.monotonic() > deadline:
                problem = "what it writes there does not appear here"
            time.sleep(0.1)
        if problem:
            message = f"cannot write parts into '{shared}' ({problem}): write to where all see it"
            raise ClusterError(f"worker {address}", message)
        with suppress(OSError):
            os.unlink(path)
