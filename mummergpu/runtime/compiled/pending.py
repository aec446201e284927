"""Functions that are compiled: each waits for numba until something needs numba.

A warm run needs no compiler, and the import of numba takes longer than a small search. So a
decorator of `mummergpu.runtime.jit` returns a `Pending` in place of numba's dispatcher. The first
time that anything needs numba, `resolve` puts the dispatchers into the modules in place of all
pending functions. From then on they are used as if they had been there from the start.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Final

_LOCK: Final = threading.RLock()
_waiting: list[Pending] = []
_before_the_first: list[Callable[[], None]] = []
_has_resolved = False


class Pending:
    """Stands for an object that numba makes of a function; `make` imports numba."""

    def __init__(self, function: Callable[..., Any], make: Callable[[Any], Any]) -> None:
        self.function = function
        self._make = make
        self._made: Any = None

    def made(self) -> Any:
        """Return numba's object, always the same one, and put it in place."""
        resolve()
        return self._made

    def make(self) -> None:
        """Let numba make the object, if it has not done so yet."""
        if self._made is None:
            self._made = self._make(self.function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call numba's object."""
        return self.made()(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        # Only for names that are not found here: all that a dispatcher has besides.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made(), name)


def wait_for_numba(pending: Pending) -> Any:
    """Return a new one itself, or numba's object if numba has been imported already."""
    with _LOCK:
        _waiting.append(pending)
        # There is nothing to gain any more; and code outside this package may use numba with it.
        if _has_resolved or "numba" in sys.modules:
            return pending.made()
    return pending


def before_numba_compiles(action: Callable[[], None]) -> None:
    """Call `action` once when numba has been imported, and at once if it has been already."""
    with _LOCK:
        if not (_has_resolved or "numba" in sys.modules):
            _before_the_first.append(action)
            return
    action()


def resolve() -> None:
    """Import numba, and put its objects into the modules in place of all that wait for it.

    Numba looks up the names that a function uses in the globals of its module, so these globals
    are what has to be changed.
    """
    global _has_resolved
    with _LOCK:
        if not _waiting and _has_resolved:
            return
        waiting = list(_waiting)
        for pending in waiting:
            pending.make()
        spaces = {id(space): space for space in (one.function.__globals__ for one in waiting)}
        for space in spaces.values():
            for name, value in list(space.items()):
                if isinstance(value, Pending):
                    value.make()
                    space[name] = value._made
        del _waiting[: len(waiting)]
        _has_resolved = True
        actions = _before_the_first[:]
        _before_the_first.clear()
    for action in actions:
        action()
