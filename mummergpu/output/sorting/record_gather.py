"""The compiled loop that joins records of BAM which lie anywhere in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from mummergpu.output.bytes.text_stores import TextArray
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, jit_without_refcounts
from mummergpu.runtime.llvm import address_of, intrinsic, ir, types

STEP: Final = 32
"""The bytes that `copy_step` copies."""

_LINE_BYTES: Final = 64
_LINES: Final = 6
"""The cache lines of a record that are asked for before they are copied."""

_AHEAD: Final = 8
"""How many records before it is copied a record is asked for."""

_FLAGS: Final = 19
"""Where in a record the upper byte of its flags lies."""

_DUPLICATE: Final = np.uint8(1024 >> 8)


def _generate_copy(typing_context: Any, text: Any, at: Any, address: Any) -> Any:
    """Copy `STEP` bytes from an address in memory."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.VectorType(ir.IntType(8), STEP)
        target = address_of(context, builder, kind, signature.args[0], *arguments[:2])
        origin = builder.inttoptr(arguments[2], kind.as_pointer())
        builder.store(builder.load(origin, align=1, typ=kind), target, align=1)
        return context.get_dummy_value()

    return types.void(text, types.int64, types.int64), generate


def _generate_prefetch(typing_context: Any, address: Any) -> Any:
    """Prefetch the cache line of an address in memory, which need not be readable."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte_pointer = ir.IntType(8).as_pointer()
        integer = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, integer, integer, integer])
        function = builder.module.globals.get("llvm.prefetch.p0") or ir.Function(
            builder.module, function_type, "llvm.prefetch.p0"
        )
        pointer = builder.inttoptr(arguments[0], byte_pointer)
        # Prefetch for reading (0), into all caches (3), as data (1).
        builder.call(function, [pointer, *(ir.Constant(integer, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(types.int64), generate


copy_step = cast("Callable[[TextArray, int, int], None]", intrinsic(_generate_copy))
"""Copies `STEP` bytes into a text, at an index, from an address in memory."""

_prefetch_address = cast("Callable[[int], None]", intrinsic(_generate_prefetch))


@jit_without_refcounts
def gather_records(
    text: TextArray,
    size: int,
    skipped: int,
    addresses: Int64Array,
    sizes: Int64Array,
    duplicates: ByteArray,
) -> None:
    """Write records one after the other, and flag some of them as duplicates."""
    at = -skipped
    for record in range(addresses.size):
        if record + _AHEAD < addresses.size:
            ahead = addresses[as_index(record + _AHEAD)]
            for line in range(_LINES):
                _prefetch_address(ahead + line * _LINE_BYTES)
        address = addresses[as_index(record)]
        bytes_of_record = sizes[as_index(record)]
        first, last = max(0, -at), min(bytes_of_record, size - at)
        for place in range(first, last, STEP):
            copy_step(text, at + place, address + place)
        flags = at + _FLAGS
        if duplicates[as_index(record)] and 0 <= flags and flags < size:
            text[as_index(flags)] |= _DUPLICATE
        at += bytes_of_record
