"""Compiles functions that are written as LLVM's text, without numba, and keeps their images.

The text has one function ``i32 @entry(ptr, ptr, ptr)``: its first argument points to numbers of 64
bits, its second to where an integer is returned; it returns 0. It may call nothing but what
`image.ALLOWED_SYMBOLS` names, and LLVM's own functions that become instructions.
"""

from __future__ import annotations

import ctypes
import threading
from contextlib import suppress
from typing import Any, Final

from mummergpu.runtime.blake2 import blake2b
from mummergpu.runtime.compiled.image import Call, load_code, pack_code
from mummergpu.runtime.compiled.levels import usable_levels
from mummergpu.runtime.compiled.linker import ENTRY, UnsuitedCodeError, image_of, target_machine
from mummergpu.runtime.compiled.signatures import NOTHING
from mummergpu.runtime.compiled.store import process_store

ATTRIBUTES: Final = "#0"
"""The text after the function; `compiled_text` explains its meaning."""

_LOCK: Final = threading.RLock()
_KEY_BYTES: Final = 32
_SPEED: Final = 2
_called: Final[dict[tuple[str, int], Call]] = {}
_engines: Final[list[Any]] = []
"""The engines that hold code compiled in this process only."""

compiled_count = 0
"""How many texts this process has compiled."""


def compiled_text(text: str, number_count: int) -> Call:
    """Return a caller of the function of a text, with a list of `number_count` numbers.

    The call releases the interpreter's lock. The image of an earlier run is used if there is one.
    """
    with _LOCK:
        if (text, number_count) not in _called:
            _called[text, number_count] = _loaded_or_compiled(text, number_count)
        return _called[text, number_count]


def _loaded_or_compiled(text: str, number_count: int) -> Call:
    global compiled_count
    key = blake2b(text.encode(), digest_size=_KEY_BYTES).digest()
    packed = process_store().load(key) if usable_levels() else None
    with suppress(OSError):
        if packed is not None:
            return load_code(packed, number_count)
    compiled_count += 1
    module, machine = _optimised(text)
    with suppress(UnsuitedCodeError, OSError):
        packed = pack_code(image_of(machine.emit_object(module)), NOTHING)
        call = load_code(packed, number_count)
        if usable_levels():
            process_store().save(key, packed)
        return call
    return _in_this_process(module, machine, number_count)


def _optimised(text: str) -> tuple[Any, Any]:
    """Return LLVM's module of a text, and the machine that it is optimised for."""
    from llvmlite import binding

    machine = target_machine(_SPEED)
    module = binding.parse_assembly(
        f"{text}\nattributes {ATTRIBUTES} = "
        '{ nounwind "no-trapping-math"="true" "prefer-vector-width"="512" }\n'
    )
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    tuning = binding.create_pipeline_tuning_options(speed_level=_SPEED)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False
    passes = binding.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    return module, machine


def _in_this_process(module: Any, machine: Any, number_count: int) -> Call:
    """Return a caller of code that LLVM has loaded itself, where images cannot be loaded."""
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
