"""Machine code from earlier runs, in the form in which numba asks for it.

What is used of numba here has no promise to stay as it is. `KeptCode.suits` tells whether
the parts that are needed are there. Whatever goes wrong later is a miss: numba compiles.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from typing import Any, Final

import numba
from llvmlite import binding

from mummergpu.runtime.cache_places import processor_code_places
from mummergpu.runtime.code_generation import PACKAGE, digest_of_sources, generation_of_code
from mummergpu.runtime.code_store import CodeStore

_KEY_BYTES: Final = 32

# Taken as early as possible: an update of the package while a process runs must not let it
# keep code of the old sources under the name of the new.
_SOURCES: Final = digest_of_sources()


class _Trouble:
    """Passes on what a store says, as soon as there is someone to listen."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._listener: Callable[[str], None] | None = None

    def tell(self, line: str) -> None:
        """Pass on a line, or keep it until there is a listener."""
        if self._listener is None:
            self._waiting.append(line)
        else:
            self._listener(line)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Take a listener, which gets what was said before, too."""
        self._listener = listener
        for line in self._waiting:
            listener(line)
        self._waiting.clear()


_trouble: Final = _Trouble()
_chosen_places: list[tuple[str, ...]] = []


def on_cache_trouble(listener: Callable[[str], None]) -> None:
    """Call `listener` once, when code cannot be kept or what was kept is of no use.

    Parameters
    ----------
    listener : callable
        Takes one line for people that names the folder.
    """
    _trouble.listen(listener)


def keep_code_in(places: tuple[str, ...]) -> None:
    """Choose where code is kept, instead of where the environment says.

    Parameters
    ----------
    places : tuple of str
        As in `CodeStore`; none of them to keep nothing.
    """
    _chosen_places[:] = [places]
    process_store.cache_clear()


@cache
def process_store() -> CodeStore:
    """Return the store of this process.

    Returns
    -------
    CodeStore
        By default it is where the environment of the process says.
    """
    places = _chosen_places[0] if _chosen_places else processor_code_places(os.environ)
    if _SOURCES is None:
        places = ()
    return CodeStore(places, generation_of_code(_SOURCES or ""), _trouble.tell)


class KeptCode:
    """The cache of one function, with the methods that a numba dispatcher calls.

    Numba's own cache imports all that numba can compile before it looks on disk, which takes
    two tenths of a second. The compiler imports that by itself where nothing is found.

    Parameters
    ----------
    function : callable
        A function of this package, not yet compiled.
    counts_references : bool
        Whether its code needs numba's runtime.
    options : str
        The options with which it is compiled.
    """

    cache_path = None

    def __init__(self, function: Callable[..., Any], counts_references: bool, options: str) -> None:
        self._function = function
        self._counts_references = counts_references
        self._options = options

    @staticmethod
    def suits(dispatcher: Any) -> bool:
        """Tell whether a dispatcher can be given such a cache.

        Parameters
        ----------
        dispatcher : Dispatcher
            Of ``numba.njit``.

        Returns
        -------
        bool
            False if numba lacks something that is needed.
        """
        try:
            from numba.core.compiler import CompileResult
            from numba.core.serialize import dumps
        except ImportError:
            return False
        parts = (CompileResult, "_reduce"), (CompileResult, "_rebuild"), (dispatcher, "_cache")
        return callable(dumps) and all(hasattr(owner, name) for owner, name in parts)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the code for a signature.

        Parameters
        ----------
        signature : tuple of numba types
            The arguments' types.
        target_context : numba context
            What the code is made for.

        Returns
        -------
        CompileResult or None
            None if there is none that can be used.
        """
        try:
            content = process_store().load(self._key(signature))
            if content is None:
                return None
            from numba.core.compiler import CompileResult

            rebuild: Callable[..., Any] = CompileResult._rebuild
            if self._counts_references:
                _start_counting(target_context)
            result = rebuild(target_context, *pickle.loads(content))
            return result if tuple(result.signature.args) == tuple(signature) else None
        except Exception:
            # The content is whole, so this numba is another one than the key can tell apart.
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep the code for a signature, if that is possible.

        Parameters
        ----------
        signature : tuple of numba types
            As in `load_overload`.
        result : CompileResult
            What numba has compiled.
        """
        try:
            # Neither code with an address of this process in it, nor code of sources that are
            # not on disk any more.
            if result.lifted or result.library.has_dynamic_globals:
                return
            if digest_of_sources() != _SOURCES:
                return
            from numba.core import serialize

            dumps: Callable[[Any], bytes] = serialize.dumps
            process_store().save(self._key(signature), dumps(result._reduce()))
        except Exception:
            return

    def enable(self) -> None:
        """Do nothing: it always is."""

    def disable(self) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing: nothing can be out of date."""

    def _key(self, signature: Any) -> bytes:
        code = self._function.__code__
        names = (self._function.__module__, self._function.__qualname__, code.co_filename)
        parts = (*names, code.co_firstlineno, self._options, signature, _processor())
        return blake2b(repr(parts).encode() + code.co_code, digest_size=_KEY_BYTES).digest()


class GuardedCache:
    """Numba's own cache, with every failure turned into a miss.

    Parameters
    ----------
    inner : numba cache
        What does the work.
    """

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
    """Let a dispatcher look for machine code on disk before it compiles.

    A function from outside the package is compiled in each process: the name of a generation
    does not depend on its source.

    Parameters
    ----------
    dispatcher : Dispatcher
        Of ``numba.njit``; anything else is left as it is.
    counts_references, options
        As in `KeptCode`.
    """
    function = getattr(dispatcher, "py_func", None)
    if function is None or function.__closure__ is not None:
        return
    if not os.path.abspath(function.__code__.co_filename).startswith(PACKAGE + os.sep):
        return
    if KeptCode.suits(dispatcher):
        dispatcher._cache = KeptCode(function, counts_references, options)
    else:
        _keep_as_numba_does(dispatcher)


def _keep_as_numba_does(dispatcher: Any) -> None:
    """Let numba keep the code, in the folder of this generation; keep nothing if it will not."""
    folder = process_store().folder()
    if folder is None:
        return
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
    """Start numba's runtime, or else import all that a compilation needs, which starts it."""
    try:
        from numba.core.runtime.nrt import rtsys

        rtsys.initialize(target_context)
    except (ImportError, AttributeError):
        target_context.refresh()


@cache
def _processor() -> tuple[str, str, str, bool]:
    """Return what LLVM makes code for: this machine, unless numba's settings say otherwise."""
    name = getattr(numba.config, "CPU_NAME", None)
    features = getattr(numba.config, "CPU_FEATURES", None)
    if name is None:
        name = binding.get_host_cpu_name()
    if features is None:
        features = binding.get_host_cpu_features().flatten()
    # Numba leaves the AVX of some processors out.
    avx = bool(getattr(numba.config, "ENABLE_AVX", True))
    return binding.get_process_triple(), name, features, avx
