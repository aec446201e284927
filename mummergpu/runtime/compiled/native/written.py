"""Compiles functions that are written as LLVM's text, without numba, and keeps their code.

The text has one function ``i32 @entry(ptr, ptr, ptr)``: its first argument points to numbers of 64
bits, its second to where an integer is returned; it returns 0. It may call nothing but what
`loader.ALLOWED_SYMBOLS` names, and LLVM's own functions that become instructions.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final

from mummergpu.runtime.compiled.native.image import UnsuitedCodeError, image_of
from mummergpu.runtime.compiled.native.loader import load_code, pack_code
from mummergpu.runtime.compiled.native.store import native_stores
from mummergpu.runtime.compiled.native.values import NOTHING

ENTRY: Final = "entry"
ATTRIBUTES: Final = "#0"
"""What the text writes behind the function; `compiled_text` says what it stands for."""

_LOCK: Final = threading.RLock()
_KEY_BYTES: Final = 32
_SPEED: Final = 2
_called: Final[dict[tuple[str, str, int], Callable[[list[int]], Any]]] = {}
_engines: Final[list[Any]] = []
"""What holds code that was compiled in this process only."""

compiled_count = 0
"""How many texts this process has compiled."""


def compiled_text(text: str, number_count: int, avx512: str = "") -> Callable[[list[int]], Any]:
    """Return what calls the function of a text with a list of so many numbers.

    The call releases the interpreter's lock. Code of an earlier run is used if it was kept. What
    `avx512` has is compiled in place of the text where the processor has these instructions.
    """
    global compiled_count
    with _LOCK:
        found = _called.get((text, avx512, number_count))
        if found is None:
            both = (text + avx512).encode()
            key = blake2b(both, digest_size=_KEY_BYTES).digest()
            packed = next(
                (code for store in native_stores() if (code := store.load(key)) is not None), None
            )
            if packed:
                with suppress(OSError):
                    found = load_code(packed, number_count)
            if found is None:
                compiled_count += 1
                found = _compiled(text, number_count, avx512, key)
            _called[text, avx512, number_count] = found
        return found


def _compiled(text: str, number_count: int, avx512: str, key: bytes) -> Callable[[list[int]], Any]:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    features = binding.get_host_cpu_features()
    if avx512 and features.get("avx512f"):
        text = avx512
    cpu = binding.get_host_cpu_name()
    options = {"cpu": cpu, "features": features.flatten(), "opt": 2}
    machine = target.create_target_machine(reloc="pic", codemodel="small", **options)
    module = binding.parse_assembly(
        f"{text}\nattributes {ATTRIBUTES} = "
        '{ nounwind "no-trapping-math"="true" "prefer-vector-width"="512" }\n'
    )
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    tuning = binding.create_pipeline_tuning_options(speed_level=_SPEED)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False
    passes = binding.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    with suppress(UnsuitedCodeError, OSError):
        packed = pack_code(image_of(machine.emit_object(module), ENTRY), NOTHING)
        caller = load_code(packed, number_count)
        stores = native_stores()
        if stores and stores[0].folder() is not None:
            stores[0].save(key, packed)
        return caller
    return _in_this_process(module, machine, number_count)


def _in_this_process(module: Any, machine: Any, number_count: int) -> Callable[[list[int]], Any]:
    """Return what calls code that LLVM has loaded itself, where images cannot be loaded."""
    from llvmlite import binding

    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _engines.append(engine)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    function = kind(engine.get_function_address(ENTRY))
    arguments = ctypes.c_int64 * number_count

    def call(numbers: list[int]) -> None:
        function(arguments(*numbers), None, None)

    return call
