"""Functions that are compiled: each waits for numba until something needs numba.

A warm run needs no compiler, and the import of numba takes longer than a small search. So a
decorator of `mummergpu.runtime.jit` returns a `Pending` in place of numba's object. The first time
that anything needs numba, `resolve` puts numba's objects into the modules in place of the pending
ones that numba could not use otherwise. A `PendingFunction` stays, and tells numba what it is.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from mummergpu.errors import VariableError

SETTING_PREFIX: Final = "NUMBA_"
SETTINGS_FILE: Final = ".numba_config.yaml"
_PRINTING: Final = tuple(SETTING_PREFIX + word for word in ("DEBUG", "DUMP_", "TRACE"))
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
        self.make()
        return self._made

    def make(self) -> None:
        """Let numba make the object, if it has not done so yet."""
        if self._made is None:
            self._made = self._make(self.function)

    def stays(self) -> bool:
        """Return whether numba can use this where compiled functions name it."""
        return False

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call numba's object."""
        return self.made()(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        # Only for names that are not found here: all that a dispatcher has besides.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made(), name)


class PendingFunction(Pending):
    """Stands for a dispatcher; compiled callers compile another one (`compiler.callee_of`).

    `inlined` says whether callers have its code as a part of theirs in any case.
    """

    targetoptions: Final[dict[str, Any]] = {}
    """Where numba looks for an option to inline before it finds types."""

    def __init__(
        self,
        function: Callable[..., Any],
        make: Callable[[Any], Any],
        counts_references: bool,
        inlined: bool,
    ) -> None:
        super().__init__(function, make)
        self._counts_references = counts_references
        self._inlined = inlined
        self._callee: Any = None

    def stays(self) -> bool:
        """Return whether numba can compile callees in that way."""
        return self.callee() is not None

    def callee(self) -> Any:
        """Return the dispatcher for compiled callers, or None if they have to take numba's."""
        if self._callee is None:
            from mummergpu.runtime.compiled.compiler import callee_of

            self._callee = callee_of(self.function, self._counts_references, self._inlined)
        return self._callee

    @property
    def _numba_type_(self) -> Any:
        """The type of a global name that has this value, where numba finds types."""
        callee = self.callee()
        return (self.made() if callee is None else callee)._numba_type_


def wait_for_numba(pending: Pending) -> Any:
    """Return a new one itself, or numba's object if numba has been imported already."""
    with _LOCK:
        _waiting.append(pending)
        # There is nothing to gain any more; and code outside this package may use numba with it.
        if _has_resolved or "numba" in sys.modules:
            if not _has_resolved:
                _refuse_settings()
            return pending if pending.stays() else pending.made()
    return pending


def before_numba_compiles(action: Callable[[], None]) -> None:
    """Call `action` once when numba has been imported, and at once if it has been already."""
    with _LOCK:
        if not (_has_resolved or "numba" in sys.modules):
            _before_the_first.append(action)
            return
    action()


def numba_settings() -> list[str]:
    """Return the variables of the environment, and the file, that set numba up."""
    names = sorted(name for name in os.environ if name.startswith(SETTING_PREFIX))
    return [*names, SETTINGS_FILE] if os.path.exists(SETTINGS_FILE) else names


def _refuse_settings() -> None:
    """Import numba; raise `VariableError` if no function can be called with its settings."""
    names = numba_settings()
    printing = [
        name
        for name in names
        if name.startswith(_PRINTING) and name != f"{SETTING_PREFIX}DEBUGINFO"
        if os.environ.get(name, "") not in ("", "0", "none")
    ]
    if printing:
        raise VariableError(printing, "numba would print to standard output, among results")
    try:
        from numba import config
    except Exception as error:
        if not names:
            raise
        raise VariableError(names, f"numba cannot be imported ({error})") from error
    if getattr(config, "DISABLE_JIT", False):
        disabling = [name for name in names if "DISABLE_JIT" in name]
        raise VariableError(disabling or names, "numba is told to compile nothing")


def resolve() -> None:
    """Import numba, and put its objects into the modules in place of those that cannot stay.

    Numba looks up the names that a function uses in the globals of its module, so these globals
    are what has to be changed.
    """
    global _has_resolved
    with _LOCK:
        if not _waiting and _has_resolved:
            return
        if not _has_resolved:
            _refuse_settings()
        for pending in _waiting:
            if not pending.stays():
                pending.make()
        spaces = {id(space): space for space in (one.function.__globals__ for one in _waiting)}
        for space in spaces.values():
            for name, value in list(space.items()):
                if isinstance(value, Pending) and not value.stays():
                    value.make()
                    space[name] = value._made
        _waiting.clear()
        _has_resolved = True
        actions = _before_the_first[:]
        _before_the_first.clear()
    for action in actions:
        action()
