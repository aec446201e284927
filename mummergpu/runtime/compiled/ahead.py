"""Compiles in several processes, ahead of the first call, what a run needs and nobody has kept.

Numba compiles in one thread of a process. So the first compilation of a run starts processes that
share the list (`signatures`), the largest first, and waits for them; then the run loads what they
have kept, and need not import numba.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from mummergpu.runtime.compiled import code_cache
from mummergpu.runtime.compiled.code_target import GENERIC_TARGETS, chosen_target, compile_for
from mummergpu.runtime.compiled.native.function import (
    NativeFunction,
    before_the_first_compilation,
)
from mummergpu.runtime.compiled.native.store import native_stores
from mummergpu.runtime.compiled.signatures import Signature, needed_by
from mummergpu.runtime.processors import processor_count

Progress = Callable[[int, int], None]
"""Told how many of how many functions have been compiled; at the beginning, none."""

_FEWEST: Final = 4
"""Fewer functions are compiled in this process: another one has to import numba first."""

_CHILD: Final = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from mummergpu.runtime.compiled.ahead import serve
serve(*json.loads(sys.argv[2]))
"""


def expect(words: Sequence[str], processes: int | None, progress: Progress) -> None:
    """Compile in this way what a command line needs, once something has to be compiled.

    `processes` is the most that may compile; None stands for the processors of this process.
    """

    def compile_needed() -> None:
        compile_in_processes(needed_by(words), processes, progress)

    before_the_first_compilation(compile_needed)


def compile_in_processes(
    signatures: Iterable[Signature], processes: int | None, progress: Progress
) -> int:
    """Compile what is not kept yet, and return how many functions have been compiled.

    There are no errors: what cannot be compiled here is compiled, or fails, where it is called.
    """
    lacking = [one for one in signatures if is_lacking(one)]
    count = min(processes or processor_count(), len(lacking))
    stores = native_stores()
    if len(lacking) < _FEWEST or count < 2 or not sys.executable:
        return 0
    if not stores or stores[0].folder() is None:
        return 0
    progress(0, len(lacking))
    queue, lock, done = iter(lacking), threading.Lock(), 0
    children = [_start() for _ in range(count)]

    def feed(child: subprocess.Popen[str]) -> None:
        nonlocal done
        assert child.stdin is not None and child.stdout is not None
        # A child that has ended leaves its work to the caller.
        with suppress(OSError, ValueError):
            while True:
                with lock:
                    signature = next(queue, None)
                if signature is None:
                    return
                print(json.dumps(signature[1:]), file=child.stdin, flush=True)
                if not child.stdout.readline():
                    return
                with lock:
                    done += 1
                    progress(done, len(lacking))

    try:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(feed, children))
    finally:
        for child in children:
            _end(child)
    return done


def function_of(signature: Signature) -> NativeFunction | None:
    """Return the function of a signature, or None if there is no such function (any more)."""
    try:
        found: Any = getattr(importlib.import_module(signature.module), signature.name)
    except (ImportError, AttributeError):
        return None
    return found if isinstance(found, NativeFunction) else None


def is_lacking(signature: Signature) -> bool:
    """Return whether there is such a function, and no code of it is kept."""
    function = function_of(signature)
    return function is not None and function.keeper.load(signature.types) is None


def serve(places: list[str], target: str | None) -> None:
    """Compile what the lines of standard input name, and answer each with a line."""
    compile_for(next((one for one in GENERIC_TARGETS if one.name == target), None))
    code_cache.keep_code_in(tuple(places))
    for line in sys.stdin:
        module, name, types = json.loads(line)
        function = function_of(Signature(frozenset(), module, name, types))
        if function is not None:
            function.keeper.compile(types, function)
        print("done", flush=True)


def _start() -> subprocess.Popen[str]:
    target = chosen_target()
    facts = [list(code_cache.code_places()), None if target is None else target.name]
    return subprocess.Popen(
        [sys.executable, "-c", _CHILD, json.dumps(sys.path), json.dumps(facts)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _end(child: subprocess.Popen[str]) -> None:
    """End a child: one that waits for work ends by itself."""
    assert child.stdin is not None and child.stdout is not None
    with suppress(OSError):
        child.stdin.close()
    child.stdout.close()
    if sys.exc_info()[0] is not None:
        child.kill()
    child.wait()
