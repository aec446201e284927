"""Compiles in several processes what a run is going to call, from when it first misses some code.

Numba compiles on one thread of a process, and most of its time is spent in Python. So the first
code that is missing starts a process that imports numba once and then forks: its copies share
what is listed, what takes longest first, and keep it. The run waits for each function only when it
comes to it, and need not import numba. What is not listed, or cannot be kept, it compiles itself.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import ceil
from time import monotonic
from typing import Any, BinaryIO, Final, NamedTuple

from mummergpu.runtime.compiled import code_cache
from mummergpu.runtime.compiled.code_target import GENERIC_TARGETS, chosen_target, compile_for
from mummergpu.runtime.compiled.native import function as native
from mummergpu.runtime.compiled.native.function import NativeFunction, keeps_code
from mummergpu.runtime.compiled.pending import resolve

_MIN_COST: Final = 10
"""Less is compiled in this process: another one has to begin, and to import the package."""

_INDEX_BYTES: Final = 2
_REPORT: Final = 3
"""The bytes that tell of a function: its number, and whether it has been compiled."""

_TOLD_SECONDS: Final = 10.0

_CHILD: Final = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from mummergpu.runtime.compiled.ahead import serve
serve()
"""


class Listed(NamedTuple):
    """A function that is compiled for some types of arguments.

    Attributes
    ----------
    module, name : str
        Where the function stands.
    types : str
        The text of its types (`native.values.flatten`).
    cost : int
        About the tenths of a second that it takes to compile.
    """

    module: str
    name: str
    types: str
    cost: int


class Progress(NamedTuple):
    """What is told while others compile.

    Attributes
    ----------
    begin : callable
        Called before they begin.
    go_on : callable
        Called at times, with how many functions have been compiled, and the seconds since.
    """

    begin: Callable[[], None] = lambda: None
    go_on: Callable[[int, float], None] = lambda functions, seconds: None


def function_of(listed: Listed) -> NativeFunction | None:
    """Return the function that is listed, or None if there is no such function (any more)."""
    try:
        found: Any = getattr(importlib.import_module(listed.module), listed.name)
    except (ImportError, AttributeError):
        return None
    return found if isinstance(found, NativeFunction) else None


def lacking(listed: Iterable[Listed]) -> list[Listed]:
    """Return what is not kept yet, what takes longest first."""
    found = ((one, function_of(one)) for one in listed)
    missing = (one for one, its in found if its is not None and its.keeper.load(one.types) is None)
    return sorted(missing, key=lambda one: -one.cost)


class Compilers:
    """Processes that compile a list of functions.

    Parameters
    ----------
    listed : sequence of Listed
        What is compiled, in this order.
    processes : int
        The most that compile at once; no more are started than make it shorter.
    progress : Progress
    target : str or None
        The name of the generic target (`code_target`); None for this machine's own processor.

    Raises
    ------
    OSError
        If no process can be started.
    """

    def __init__(
        self, listed: Sequence[Listed], processes: int, progress: Progress, target: str | None
    ) -> None:
        self._numbers = {one[:3]: number for number, one in enumerate(listed)}
        self._left = set(range(len(listed)))
        self._progress = progress
        self._lock = threading.Lock()
        self._begin = monotonic()
        self._told = 0.0
        self.compiled = 0
        facts = {
            "places": code_cache.code_places(),
            "target": target,
            "processes": _useful_processes([one.cost for one in listed], processes),
            "listed": listed,
        }
        # Most runs find everything kept, and start no process.
        import subprocess

        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        # A process that has ended at once is one that reports nothing.
        with suppress(OSError):
            _write_all(self._input, json.dumps(facts).encode() + b"\n")

    def wait_for(self, module: str, name: str, types: str) -> None:
        """Wait until a function is kept, if it is listed, or until nobody is left to compile it."""
        number = self._numbers.get((module, name, types))
        with self._lock:
            while number in self._left:
                self._read_reports()

    def wait(self) -> None:
        """Wait until everything is kept that can be."""
        with self._lock:
            while self._left:
                self._read_reports()

    def close(self) -> None:
        """End the processes, whatever they do; nothing can be waited for afterwards."""
        # Each of them ends as soon as nobody can write to its input any more.
        self._input.close()
        with self._lock:
            self._left.clear()
            assert self._process.stdout is not None
            self._process.stdout.close()
        self._process.wait()

    @property
    def _input(self) -> Any:
        assert self._process.stdin is not None
        return self._process.stdin

    def _read_reports(self) -> None:
        """Wait for reports, or until it is time to tell how far this is."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if poll.poll(_TOLD_SECONDS * 1000):
            # Nobody writes a part of a report, so nobody reads one.
            reports = os.read(descriptor, 1000 * _REPORT)
            for at in range(0, len(reports), _REPORT):
                self._left.discard(int.from_bytes(reports[at : at + _INDEX_BYTES]))
                self.compiled += reports[at + _INDEX_BYTES]
            if not reports:
                self._left.clear()
        seconds = monotonic() - self._begin
        if self._left and seconds >= self._told + _TOLD_SECONDS:
            self._told = seconds
            self._progress.go_on(self.compiled, seconds)


def _useful_processes(costs: Sequence[int], most: int) -> int:
    """Return how many processes end as soon as any number would: one has what takes longest.

    Each takes memory, and compiles again what several functions call.
    """
    return max(1, min(most, len(costs), ceil(sum(costs) / max(costs)) + 1))


def _write_all(file: BinaryIO, content: bytes) -> None:
    """Write to a file without a buffer, which may take less at once."""
    view = memoryview(content)
    while view:
        view = view[file.write(view) :]


@contextmanager
def compiled_ahead(
    list_needed: Callable[[], Iterable[Listed]], processes: int, progress: Progress
) -> Iterator[None]:
    """Have others compile meanwhile what a run needs, once the first of it is found to be missing.

    Parameters
    ----------
    list_needed : callable
        Returns what the run is thought to call.
    processes : int
        The most processes that compile; with one, the run itself compiles.
    progress : Progress
    """
    lock = threading.Lock()
    started: list[Compilers | None] = []

    def wait_for(module: str, name: str, types: str) -> None:
        with lock:
            if not started:
                started.append(_started(list_needed(), processes, progress))
        if started[0] is not None:
            started[0].wait_for(module, name, types)

    if processes < 2 or not hasattr(os, "fork") or not sys.executable:
        yield
        return
    native.ask_first(wait_for)
    try:
        yield
    finally:
        native.ask_first(None)
        for one in started:
            if one is not None:
                one.close()


def _started(needed: Iterable[Listed], processes: int, progress: Progress) -> Compilers | None:
    """Start the compilers, or return None where that is not worth it, or not possible."""
    missing = lacking(needed)
    if sum(one.cost for one in missing) < _MIN_COST or not keeps_code():
        return None
    target = chosen_target()
    progress.begin()
    try:
        return Compilers(missing, processes, progress, None if target is None else target.name)
    except OSError:
        return None


def serve() -> None:
    """Compile what standard input lists, in several processes, and report it to standard output."""
    # An interrupt is for the run, which ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    facts = json.loads(sys.stdin.readline())
    compile_for(next((one for one in GENERIC_TARGETS if one.name == facts["target"]), None))
    code_cache.keep_code_in(tuple(facts["places"]))
    # The run compiles, or says, what cannot be kept.
    if not keeps_code():
        return
    listed = [Listed(*one) for one in facts["listed"]]
    # Numba makes many objects and little garbage.
    gc.disable()
    resolve()
    # The last one is small. Numba loads with it what all others need, and the copies share that.
    if facts["processes"] > 1:
        _compile(listed, len(listed) - 1)
        del listed[-1]
    gc.freeze()
    reading, writing = os.pipe()
    os.write(writing, b"".join(n.to_bytes(_INDEX_BYTES) for n in range(len(listed))))
    os.close(writing)
    with suppress(OSError):
        while facts["processes"] > 1 and os.fork():
            facts["processes"] -= 1
    threading.Thread(target=_end_with_input, daemon=True).start()
    # Nobody writes a part of a number, so nobody reads one.
    while taken := os.read(reading, _INDEX_BYTES):
        _compile(listed, int.from_bytes(taken))
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _compile(listed: Sequence[Listed], number: int) -> None:
    """Compile a function, and report it; a fault of it shows where the run calls it."""
    done = False
    with suppress(Exception):
        one = listed[number]
        function = function_of(one)
        if function is not None and function.keeper.load(one.types) is None:
            function.keeper.compile(one.types, function)
            done = True
    os.write(1, number.to_bytes(_INDEX_BYTES) + bytes([done]))


def _end_with_input() -> None:
    """End this process when that ends which has started it, or when it closes its end."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
