"""Processes of a Dask cluster on this machine, which tests may kill, stop and limit."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

SECONDS = 90.0

_SCHEDULER = """
import asyncio, sys
from distributed import Scheduler
async def main():
    async with Scheduler(host=sys.argv[2], protocol=sys.argv[3], port=0, dashboard=False) as one:
        open(sys.argv[1] + ".new", "w").write(one.address)
        import os
        os.replace(sys.argv[1] + ".new", sys.argv[1])
        await one.finished()
asyncio.run(main())
"""

_WORKER = """
import asyncio, sys
if sys.argv[3] != "-":
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
from distributed import Worker
async def main():
    async with Worker(sys.argv[1], name=sys.argv[2], nthreads=1, dashboard=False) as one:
        await one.finished()
asyncio.run(main())
"""


class DaskCluster:
    """A scheduler and its workers, each a process."""

    def __init__(self, folder, environment=None, protocol="tcp"):
        self._folder = folder
        self._environment = {**os.environ, **(environment or {})}
        self._processes = []
        self.workers = {}
        place = folder / "address"
        self.scheduler = self._start(_SCHEDULER, str(place), "127.0.0.1", protocol)
        wait_until(place.exists)
        self.address = place.read_text()

    def add_worker(self, name, file_bytes=None):
        """Start a worker with one thread, whose files have so many bytes at most."""
        limit = "-" if file_bytes is None else str(file_bytes)
        self.workers[name] = self._start(_WORKER, self.address, name, limit)

    def end_worker(self, name, number=signal.SIGKILL):
        """Send a signal to a worker."""
        self.workers[name].send_signal(number)
        if number == signal.SIGKILL:
            self.workers.pop(name).wait()

    def close(self):
        """End all processes."""
        for process in reversed(self._processes):
            with suppress(OSError):
                process.kill()
            process.wait()

    def _start(self, program, *words):
        log = open(self._folder / f"log{len(self._processes)}", "wb")
        with log:
            process = subprocess.Popen(
                [sys.executable, "-c", program, *words],
                env=self._environment,
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )
        self._processes.append(process)
        return process


def wait_until(is_so):
    """Wait until something is so."""
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def dask_cluster(folder, workers, **told):
    """Start a cluster for the ``with`` block."""
    cluster = DaskCluster(folder, **told)
    try:
        for number in range(workers):
            cluster.add_worker(f"w{number}")
        yield cluster
    finally:
        cluster.close()
