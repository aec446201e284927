"""Gives numba the machine code of earlier runs through numba's cache interface.

This interface of numba is not public and may change. `KeptCode.suits` checks that the parts
needed here exist. Any later error counts as a miss, and numba compiles.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import blake2b
from typing import Any, Final

from mummergpu.runtime.cache_places import PROCESSOR_CODE, processor_code_places
from mummergpu.runtime.compiled.code_generation import (
    PACKAGE,
    digest_of_sources,
    generation_of_code,
)
from mummergpu.runtime.compiled.code_store import CodeStore
from mummergpu.runtime.compiled.code_target import accepted_targets, chosen_target

_KEY_BYTES: Final = 32
_CODE_PACKAGE: Final = "mummergpu_code"

# Computed as early as possible: if the package is updated while a process runs, the process must
# not save code from the old sources under the name of the new ones.
_SOURCES: Final = digest_of_sources()


class _Trouble:
    """Passes the first message of all stores to a listener, as soon as there is one."""

    def __init__(self) -> None:
        self._first: str | None = None
        self._listener: Callable[[str], None] | None = None

    def tell(self, line: str) -> None:
        """Pass the first line to the listener, or keep it until there is one."""
        if self._first is None:
            self._first = line
            if self._listener is not None:
                self._listener(line)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Set the listener, and pass it the line kept so far."""
        self._listener = listener
        if self._first is not None:
            listener(self._first)

    def forget(self) -> None:
        """Tell of the next trouble again: it is one of other folders."""
        self._first = None


_trouble: Final = _Trouble()
_chosen_places: list[tuple[str, ...]] = []
_when_places_change: list[Callable[[], None]] = [_trouble.forget]


def on_cache_trouble(listener: Callable[[str], None]) -> None:
    """Call `listener` once, when code cannot be kept or kept code cannot be used.

    It receives one line for the user that names the folder.
    """
    _trouble.listen(listener)


def keep_code_in(places: tuple[str, ...]) -> None:
    """Set the folders for code, instead of those from the environment; none keep nothing."""
    _chosen_places[:] = [places]
    process_store.cache_clear()
    for forget in _when_places_change:
        forget()


def when_places_change(forget: Callable[[], None]) -> None:
    """Call `forget` whenever code is to be kept elsewhere: what knows the stores of before."""
    _when_places_change.append(forget)


def tell_trouble(line: str) -> None:
    """Pass what a store says to the listener of `on_cache_trouble`; only the first line counts."""
    _trouble.tell(line)


def code_places() -> tuple[str, ...]:
    """Return the folders in which this process keeps code, the best first.

    They are those from `keep_code_in`, or else those that the environment names.
    """
    return _chosen_places[0] if _chosen_places else processor_code_places(os.environ)


@cache
def packaged_places() -> tuple[str, ...]:
    """Return the folders of code that came as a package (`packaging/compiled-code`)."""
    try:
        found = importlib.util.find_spec(_CODE_PACKAGE)
    except (ImportError, ValueError):
        return ()
    folders = () if found is None else found.submodule_search_locations or ()
    return tuple(os.path.join(folder, PROCESSOR_CODE) for folder in folders)


def digest_at_start() -> str | None:
    """Return the digest of the package's sources as they were when this process began."""
    return _SOURCES


def sources_are_unchanged() -> bool:
    """Return whether the sources are those of this process: only then may it keep code."""
    return digest_of_sources() == _SOURCES


def can_be_kept(function: Callable[..., Any]) -> bool:
    """Return whether the digest of the sources tells all that a function is."""
    path = os.path.abspath(function.__code__.co_filename)
    return function.__closure__ is None and path.startswith(PACKAGE + os.sep)


@cache
def process_store() -> CodeStore:
    """Return the store of this process."""
    places = code_places()
    if _SOURCES is None:
        places = ()
    return CodeStore(
        *(places, generation_of_code(_SOURCES or ""), tell_trouble),
        packaged=packaged_places() if places else (),
    )


class KeptCode:
    """The cache of one function, with the methods that a numba dispatcher calls.

    Before numba's own cache looks on disk, it imports the code for everything that numba can
    compile. That takes two tenths of a second. Here the compiler imports it, only on a miss.
    """

    cache_path = None

    def __init__(
        self,
        function: Callable[..., Any],
        counts_references: bool,
        options: str,
    ) -> None:
        self._function = function
        self._counts_references = counts_references
        self._options = options

    @staticmethod
    def suits(dispatcher: Any) -> bool:
        """Return whether a dispatcher can use such a cache."""
        try:
            from numba.core.compiler import CompileResult
            from numba.core.serialize import dumps
        except ImportError:
            return False
        parts = (CompileResult, "_reduce"), (CompileResult, "_rebuild"), (dispatcher, "_cache")
        return callable(dumps) and all(hasattr(owner, name) for owner, name in parts)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the code for a signature."""
        try:
            content = self._find(signature)
            if content is None:
                return None
            from numba.core.compiler import CompileResult

            rebuild: Callable[..., Any] = CompileResult._rebuild
            if self._counts_references:
                _start_counting(target_context)
            result = rebuild(target_context, *pickle.loads(content))
            if tuple(result.signature.args) != tuple(signature):
                return None
            return result
        except Exception:
            # The content is intact, so this numba differs in a way that the key does not cover.
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep the code for a signature, if that is possible."""
        try:
            # Code with an address of this process in it cannot be kept, nor code whose sources are
            # no longer on disk.
            if result.lifted or result.library.has_dynamic_globals:
                return
            if not sources_are_unchanged():
                return
            from numba.core import serialize

            dumps: Callable[[Any], bytes] = serialize.dumps
            process_store().save(next(self._keys(signature)), dumps(result._reduce()))
        except Exception:
            return

    def enable(self) -> None:
        """Do nothing: the cache is always enabled."""

    def disable(self) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing: kept code cannot be out of date."""

    def _find(self, signature: Any) -> bytes | None:
        for key in self._keys(signature):
            content = process_store().load(key)
            if content is not None:
                return content
        return None

    def _keys(self, signature: Any) -> Iterator[bytes]:
        """Yield the keys of the code for a signature, one for each of `_targets`."""
        code = self._function.__code__
        names = (self._function.__module__, self._function.__qualname__)
        for target in _targets():
            parts = (*names, code.co_firstlineno, self._options, signature, target)
            yield blake2b(repr(parts).encode() + code.co_code, digest_size=_KEY_BYTES).digest()


class GuardedCache:
    """Numba's own cache, but every failure counts as a miss."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the code for a signature, or None."""
        try:
            return self._inner.load_overload(signature, target_context)
        except Exception:
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep the code for a signature, if that is possible."""
        try:
            self._inner.save_overload(signature, result)
        except Exception:
            return


def keep(dispatcher: Any, counts_references: bool, options: str) -> None:
    """Make a dispatcher look for machine code on disk before it compiles.

    A function from outside the package is compiled in each process, because the name of a
    generation does not depend on its source.
    """
    function = getattr(dispatcher, "py_func", None)
    if function is None or not can_be_kept(function):
        return
    if KeptCode.suits(dispatcher):
        dispatcher._cache = KeptCode(function, counts_references, options)
    else:
        _keep_as_numba_does(dispatcher)


def _keep_as_numba_does(dispatcher: Any) -> None:
    """Let numba keep the code in the folder of this generation; if it cannot, keep nothing."""
    folder = process_store().folder()
    if folder is None:
        return
    import numba

    config: Any = numba.config
    try:
        before = config.CACHE_DIR
        config.CACHE_DIR = folder
        try:
            dispatcher.enable_caching()
        finally:
            config.CACHE_DIR = before
        if hasattr(dispatcher, "_cache"):
            dispatcher._cache = GuardedCache(dispatcher._cache)
    except Exception:
        return


def _start_counting(target_context: Any) -> None:
    """Start numba's runtime; if that fails, import the compiler, which starts it."""
    try:
        from numba.core.runtime.nrt import rtsys

        rtsys.initialize(target_context)
    except (ImportError, AttributeError):
        target_context.refresh()


@cache
def _targets() -> tuple[tuple[str, str, str, bool], ...]:
    """Return what code may have been compiled for: first what this process compiles for.

    Generic targets follow that this machine can run, unless numba's settings name a target.
    """
    import numba
    from llvmlite import binding

    triple = binding.get_process_triple()
    chosen = chosen_target()
    if chosen is not None:
        return ((triple, chosen.cpu, "", chosen.has_avx),)
    name = getattr(numba.config, "CPU_NAME", None)
    features = getattr(numba.config, "CPU_FEATURES", None)
    # Numba does not use AVX on some processors.
    avx = bool(getattr(numba.config, "ENABLE_AVX", True))
    generic = []
    if name is None and features is None:
        usable = [target for target in accepted_targets() if avx or not target.has_avx]
        generic = [(triple, target.cpu, "", target.has_avx) for target in usable]
    if name is None:
        name = binding.get_host_cpu_name()
    if features is None:
        features = binding.get_host_cpu_features().flatten()
    return ((triple, name, features, avx), *generic)
