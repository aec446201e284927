"""Compiles functions with numba: to images, as parts of other functions, or for numba's dispatcher.

Numba optimises each function and makes machine code and a wrapper of it, also if others only
inline it: half of the time of compiling. Here a function is translated to LLVM's code (`Callee`),
and optimised once, as a part of what is called from Python.

What this needs of numba is private, so `can_defer` looks for it. Without it, there are no images,
and numba compiles each function in its usual way.

Nothing imports this module before something has to be compiled (`lazy_dispatch.py`).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Final

import numba
from numba.core import codegen, cpu
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher, cpu_target
from numba.np.numpy_support import as_dtype

from mummergpu.runtime.compiled.announcement import compilation
from mummergpu.runtime.compiled.image import UNSUITED, pack_code
from mummergpu.runtime.compiled.linker import ENTRY, UnsuitedCodeError, image_of, target_machine
from mummergpu.runtime.compiled.signatures import text_of_result, types_of_text
from mummergpu.runtime.compiled.sources import digest_of_function, digest_of_sources
from mummergpu.runtime.compiled.store import process_store

_LIBRARY: Final[Any] = codegen.JITCodeLibrary
_OPTIONS: Final[dict[str, Any]] = {"error_model": "numpy", "nogil": True}
_NO_WRAPPERS: Final = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# The caller keeps the arrays of the arguments alive, so a function need not count references to
# them: numba counts with atomic operations, whenever an array is passed to an inlined function. In
# loops of a few nanoseconds a step, that takes three quarters of the time. The option is private.
if hasattr(getattr(cpu, "CPUTargetOptions", None), "_nrt"):
    _OPTIONS["_nrt"] = False

_WORD_BYTES: Final = 8

_DATA: Final = object.__basicsize__
_SHAPE, _FLAGS = _DATA + 16, _DATA + 48
"""Where an array of numpy has the address of its elements, that of its shape, and its flags."""

_WRITABLE_IN_ORDER: Final = 0x401
"""The flags of arrays that are contiguous and not read-only."""


def compile_image(callee: Callee, types: str) -> bytes:
    """Return the image of a function for types of arguments (`signatures.flatten`).

    `UnsuitedValueError` or `UnsuitedCodeError` if there can be none; `NumbaError` if the function
    cannot be compiled.
    """
    kinds = types_of_text(types)
    with global_compiler_lock:
        callee.compile(kinds)
        result: Any = callee.overloads[kinds]
        if result.library.has_dynamic_globals or result.lifted:
            raise UnsuitedCodeError("code of this process")
        returned = text_of_result(result.signature.return_type)
        return pack_code(image_of(_object_of(result, kinds)), returned)


def has_unusual_settings() -> bool:
    """Return whether this process has set numba up to make other code (`levels` sees variables)."""
    names = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT")
    return any(getattr(numba.config, name, None) for name in names)


def _object_of(result: Any, kinds: tuple[Any, ...]) -> bytes:
    """Return an object file with position-independent code, and `ENTRY` before the function."""
    from llvmlite import binding

    name, machine = result.fndesc.llvm_func_name, target_machine()
    module = binding.parse_bitcode(result.library._get_module_for_linking().as_bitcode())
    # Numba lets a library's functions go where nobody in it calls them.
    module.get_function(name).linkage = "external"
    _optimise(module, result.library.codegen, machine)
    passed = [str(argument.type) for argument in module.get_function(name).arguments]
    entry = binding.parse_assembly(_entry_before(name, passed, kinds))
    entry.triple, entry.data_layout = module.triple, module.data_layout
    module.link_in(entry)
    # Nothing else of the module is needed: numba's wrappers call the interpreter.
    for part in (*module.functions, *module.global_variables):
        if not part.is_declaration and part.name != ENTRY:
            part.linkage = "internal"
    options = binding.create_pipeline_tuning_options(speed_level=0)
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, binding.create_pass_builder(machine, options))
    code: bytes = machine.emit_object(module)
    return code


def _optimise(module: Any, generator: Any, machine: Any) -> None:
    """Optimise a function with all that it calls, as numba does for one of them, for a machine."""
    cheap: dict[str, Any] = {
        "loop_vectorize": generator._loopvect,
        "slp_vectorize": False,
        "opt": generator._opt_level,
        "cost": "cheap",
    }
    own = generator._tm
    generator._tm = machine
    try:
        for choice in (cheap, {}):
            passes, builder = generator._module_pass_manager(**choice)
            passes.run(module, builder)
    finally:
        generator._tm = own


def _leaves(kinds: Any) -> Iterator[Any]:
    """Yield the types of the arrays and numbers of arguments, in their order."""
    for kind in kinds:
        if isinstance(kind, numba.types.BaseTuple):
            yield from _leaves(kind)
        else:
            yield kind


def _entry_before(name: str, kinds: list[str], leaves: tuple[Any, ...]) -> str:
    """Return LLVM's code of a function that takes the arguments of another one from memory.

    An array is the address of its object (`signatures.flatten`). Numba passes two objects (neither
    is given: nothing here counts references), the number of elements, the bytes of one, their
    address, the shape and the strides.
    """
    lines, values = ["%refused0 = add i1 0, 0"], ["%result", "%exception"]
    arrays = 0

    def load(value: str, kind: str, base: str, offset: int) -> str:
        lines.append(f"{value}.at = getelementptr i8, ptr {base}, i64 {offset}")
        lines.append(f"{value} = load {kind}, ptr {value}.at")
        return value

    for number, leaf in enumerate(_leaves(leaves)):
        own, at = f"%v{number}", number * _WORD_BYTES
        if not isinstance(leaf, numba.types.Array):
            values.append(load(own, kinds[len(values)], "%arguments", at))
            continue
        array = load(f"{own}.array", "ptr", "%arguments", at)
        data = load(f"{own}.data", "ptr", array, _DATA)
        shape = load(f"{own}.shape", "ptr", array, _SHAPE)
        flags = load(f"{own}.flags", "i32", array, _FLAGS)
        sizes = [load(f"{own}.size{n}", "i64", shape, n * _WORD_BYTES) for n in range(leaf.ndim)]
        item = as_dtype(leaf.dtype).itemsize
        # Only arrays in C's order pass, so the strides follow from the shape, the last one first.
        strides, count = [str(item)], "1"
        for n in reversed(range(leaf.ndim)):
            lines.append(f"{own}.count{n} = mul i64 {count}, {sizes[n]}")
            count = f"{own}.count{n}"
            lines.append(f"{own}.stride{n} = mul i64 {count}, {item}")
            strides.insert(0, f"{own}.stride{n}")
        # An array without elements passes in any order, and read-only: nothing of it is touched.
        lines += [
            f"{own}.in_order = and i32 {flags}, {_WRITABLE_IN_ORDER}",
            f"{own}.is_other = icmp ne i32 {own}.in_order, {_WRITABLE_IN_ORDER}",
            f"{own}.has_elements = icmp ne i64 {count}, 0",
            f"{own}.is_refused = and i1 {own}.is_other, {own}.has_elements",
            f"%refused{arrays + 1} = or i1 %refused{arrays}, {own}.is_refused",
        ]
        arrays += 1
        values += ["null", "null", count, str(item), data, *sizes, *strides[1:]]
    passed = ", ".join(f"{kind} {value}" for kind, value in zip(kinds, values, strict=True))
    return "\n".join(
        [
            f'declare i32 @"{name}"({", ".join(kinds)})',
            f"define i32 @{ENTRY}(ptr %arguments, ptr %result, ptr %exception) {{",
            *lines,
            f"br i1 %refused{arrays}, label %refuse, label %pass",
            f"refuse:\nret i32 {UNSUITED}\npass:",
            f'%status = call i32 @"{name}"({passed})',
            "ret i32 %status",
            "}",
        ]
    )


class _PlainLibrary(_LIBRARY):  # type: ignore[misc]
    """The code of a function and of all that it calls, not optimised; no memory is filled with it.

    A caller links it into its own, as numba does with its libraries.
    """

    def finalize(self) -> None:
        """Link the called functions."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            # Earlier versions of numba have none.
            getattr(self, "_reload_init", set()).update(getattr(library, "_reload_init", ()))
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


@cache
def can_defer() -> bool:
    """Return whether numba has the parts that are needed here."""
    context: Any = cpu_target.target_context
    generator = context.codegen()
    parts = ("_raise_if_finalized", "_finalize_dynamic_globals", "_get_module_for_linking")
    return (
        all(callable(getattr(_LIBRARY, name, None)) for name in parts)
        and callable(getattr(context, "get_executable", None))
        and getattr(generator, "_library_class", None) is _LIBRARY
        and all(hasattr(generator, name) for name in ("_module_pass_manager", "_tm", "_loopvect"))
    )


class Callee(CPUDispatcher):
    """A function as its compiled callers see it: a call from Python would find no code."""

    def compile(self, sig: Any) -> Any:
        """Translate the function for types of arguments; numba calls this while it finds types."""
        with _nothing_executable(self.targetctx):
            return super().compile(sig)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Translate no inlined function again for each number that callers write: LLVM sees it."""
        if self.targetoptions["forceinline"]:
            args = tuple(map(numba.types.unliteral, args))
        return super().get_call_template(args, kws)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Refuse."""
        raise RuntimeError("a callee has no code of its own")


def callee_of(function: Callable[..., Any], inlined: bool) -> Callee | None:
    """Return the dispatcher of a function for compiled callers, or None where that is numba's."""
    if not can_defer():
        return None
    options = {**_OPTIONS, **_NO_WRAPPERS, "nogil": not inlined, "forceinline": inlined}
    return Callee(function, {}, options)


@contextmanager
def _nothing_executable(context: Any) -> Iterator[None]:
    """Have numba make no machine code meanwhile; it compiles in one thread at a time."""
    with global_compiler_lock:
        generator = context.codegen()
        if generator._library_class is _PlainLibrary:
            yield
            return
        generator._library_class = _PlainLibrary
        context.get_executable = _no_executable
        try:
            yield
        finally:
            # What the classes have comes into view again.
            del generator._library_class, context.get_executable


def _no_executable(library: Any, description: Any, environment: Any) -> Any:
    """Return an object of its own that stands for a function without code of its own."""
    # It is an extension module, which has no types.
    make: Any = importlib.import_module("numba._dynfunc")
    library._ensure_finalized()
    module, name = description.lookup_module(), description.qualname.split(".")[-1]
    return make.make_function(module, name, "not executable", 0, environment, (library,))


def type_of(numba_object: Any) -> Any:
    """Return the type of a dispatcher, or of an intrinsic, where compiled functions name it."""
    context: Any = cpu_target.typing_context
    # It may have been made while numba finds types.
    context.refresh()
    return context.resolve_value_type(numba_object)


def dispatcher_of(function: Callable[..., Any], inlined: bool) -> Any:
    """Return numba's dispatcher of a function, with numba's own cache in the store's folder."""
    dispatcher: Any = numba.njit(**_OPTIONS, forceinline=inlined)(function)
    # Numba keeps code that checks bounds under the name of code that does not.
    is_kept = not inlined and not has_unusual_settings() and digest_of_function(function)
    # Which classes its arguments have is not known here: their fields may be in any module.
    sources = digest_of_sources() if is_kept else None
    folder = None if sources is None else process_store().folder()
    if folder is not None and sources is not None:
        config: Any = numba.config
        # The setting is one for the whole process, and other threads must not find it changed.
        with global_compiler_lock:
            before, config.CACHE_DIR = config.CACHE_DIR, os.path.join(folder, sources)
            try:
                dispatcher.enable_caching()
                dispatcher._cache = _GuardedCache(dispatcher._cache)
            except (AttributeError, OSError, RuntimeError):
                pass
            finally:
                config.CACHE_DIR = before
    return dispatcher


class _GuardedCache:
    """Numba's own cache, but every failure counts as a miss, and misses are announced."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the code for a signature, or None."""
        found = None
        with suppress(Exception):
            found = self._inner.load_overload(signature, target_context)
        if found is None:
            compilation.begin()
        return found

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep the code for a signature, if that is possible."""
        compilation.end()
        with suppress(Exception):
            self._inner.save_overload(signature, result)
