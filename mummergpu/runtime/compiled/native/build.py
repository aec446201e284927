"""Makes images of machine code from what numba has compiled."""

from __future__ import annotations

from typing import Any, Final

from mummergpu.runtime.compiled.code_target import chosen_target
from mummergpu.runtime.compiled.native.image import MachineImage, UnsuitedCodeError, image_of
from mummergpu.runtime.compiled.native.loader import ALLOWED_SYMBOLS, pack_code
from mummergpu.runtime.compiled.native.values import UnsuitedValueError, text_of_result

_ENTRY: Final = "entry"
_WORD_BYTES: Final = 8

_SETTINGS: Final = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT")


def has_usual_settings() -> bool:
    """Return whether numba compiles as it does if nobody but `code_target.compile_for` sets it.

    Otherwise the code that it makes is another; it must not be kept without its settings.
    """
    from numba import config

    target = chosen_target()
    expected = (None, None) if target is None else (target.cpu, "")
    if (getattr(config, "CPU_NAME", None), getattr(config, "CPU_FEATURES", None)) != expected:
        return False
    return not any(getattr(config, name, None) for name in _SETTINGS)


def build_code(result: Any, optimise: bool = False) -> bytes:
    """Return the code of a function that can be called without numba; empty if there is none.

    `optimise` what has only been translated.
    """
    try:
        told = text_of_result(result.signature.return_type)
        image = image_of(_object_of(result, optimise), _ENTRY)
    except (UnsuitedValueError, UnsuitedCodeError):
        return b""
    return pack_code(image, told) if _is_on_its_own(image) else b""


def _is_on_its_own(image: MachineImage) -> bool:
    return all(name in ALLOWED_SYMBOLS for _, name in image.symbols)


def compile_code(dispatcher: Any, kinds: tuple[Any, ...]) -> bytes:
    """Return the code of a callee (`callees.Callee`) for types of arguments, or nothing."""
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        dispatcher.compile(kinds)
        result = dispatcher.overloads[kinds]
        if result.library.has_dynamic_globals or result.lifted:
            return b""
        return build_code(result, optimise=True)


def _object_of(result: Any, optimise: bool) -> bytes:
    """Return an object file with position-independent code, and `_ENTRY` before the function."""
    from llvmlite import binding

    name = result.fndesc.llvm_func_name
    module = binding.parse_bitcode(result.library._get_module_for_linking().as_bitcode())
    # Numba lets a library's functions go where nobody in it calls them.
    module.get_function(name).linkage = "external"
    if optimise:
        _optimise(module, result.library.codegen)
    kinds = [str(argument.type) for argument in module.get_function(name).arguments]
    entry = binding.parse_assembly(_entry_before(name, kinds))
    entry.triple, entry.data_layout = module.triple, module.data_layout
    module.link_in(entry)
    # Nothing else of the module is needed: numba's wrappers call the interpreter.
    for part in (*module.functions, *module.global_variables):
        if not part.is_declaration and part.name != _ENTRY:
            part.linkage = "internal"
    target = chosen_target()
    machine = binding.Target.from_triple(module.triple).create_target_machine(
        cpu=binding.get_host_cpu_name() if target is None else target.cpu,
        features=result.target_context.codegen()._tm_features,
        opt=3,
        reloc="pic",
        codemodel="small",
    )
    options = binding.create_pipeline_tuning_options(speed_level=0)
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, binding.create_pass_builder(machine, options))
    code: bytes = machine.emit_object(module)
    return code


def _optimise(module: Any, generator: Any) -> None:
    """Optimise a function with all that it calls, as numba does for one of them."""
    cheap: dict[str, Any] = {
        "loop_vectorize": generator._loopvect,
        "slp_vectorize": False,
        "opt": generator._opt_level,
        "cost": "cheap",
    }
    for choice in (cheap, {}):
        passes, builder = generator._module_pass_manager(**choice)
        passes.run(module, builder)


def _entry_before(name: str, kinds: list[str]) -> str:
    """Return LLVM's code of a function that takes the arguments of another one from memory."""
    lines, passed = [], ["ptr %result", "ptr %exception"]
    for number, kind in enumerate(kinds[2:]):
        at = number * _WORD_BYTES
        lines.append(f"%p{number} = getelementptr i8, ptr %arguments, i64 {at}")
        lines.append(f"%v{number} = load {kind}, ptr %p{number}")
        passed.append(f"{kind} %v{number}")
    return "\n".join(
        [
            f'declare i32 @"{name}"({", ".join(kinds)})',
            f"define i32 @{_ENTRY}(ptr %arguments, ptr %result, ptr %exception) {{",
            *lines,
            f'%status = call i32 @"{name}"({", ".join(passed)})',
            "ret i32 %status",
            "}",
        ]
    )
