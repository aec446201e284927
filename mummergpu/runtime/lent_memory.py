"""Memory that callers lend to compiled functions, which make no arrays: they take parts of it."""

from __future__ import annotations

from mmap import mmap
from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import inline
from mummergpu.runtime.llvm import intrinsic, ir, types

_LINE: Final = 64
"""The bytes of a cache line, of which each part has its own."""


class LentMemory(NamedTuple):
    """Bytes, of which `take` returns parts."""

    content: ByteArray
    taken: Int64Array  # (1,): the bytes taken so far; there may be fewer

    @classmethod
    def of_bytes(cls, count: int) -> LentMemory:
        """Return memory in pages of its own, which go back to the system at once."""
        content = np.frombuffer(mmap(-1, count), dtype=np.uint8)
        return cls(content, np.zeros(1, dtype=np.int64))


def _take(typing_context: Any, memory: Any, shape: Any, kind: Any) -> Any:
    """Take an array of numbers of a kind, as ``np.float32``; its content is whatever was there.

    Arrays must not be used before `needed` has said that there are enough bytes.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from numba.core import cgutils
        from numba.np import arrayobj

        unpack: Any = cgutils.unpack_tuple
        populate: Any = arrayobj.populate_array
        content, taken = (
            context.make_array(one)(context, builder, builder.extract_value(arguments[0], n))
            for n, one in enumerate(memory.types)
        )
        found = context.make_array(signature.return_type)(context, builder)
        sizes: list[Any] = unpack(builder, arguments[1])
        strides: list[Any] = []
        stride = item = ir.Constant(ir.IntType(64), kind.dtype.bitwidth // 8)
        for size in reversed(sizes):
            strides.insert(0, stride)
            stride = builder.mul(stride, size)
        begin = builder.load(taken.data)
        data = builder.bitcast(builder.gep(content.data, [begin]), found.data.type)
        populate(found, data, sizes, strides, item, None)
        lines = builder.add(stride, ir.Constant(stride.type, _LINE - 1))
        lines = builder.and_(lines, ir.Constant(stride.type, -_LINE))
        builder.store(builder.add(begin, lines), taken.data)
        return found._getvalue()

    sizes = types.UniTuple(types.int64, len(shape))
    return types.Array(kind.dtype, len(shape), "C")(memory, sizes, kind), generate


take = cast(Any, intrinsic(_take))


@inline
def needed(memory: LentMemory) -> int:
    """Return the bytes taken if there are fewer, and 0 otherwise."""
    return int(memory.taken[0]) if memory.taken[0] > memory.content.size else 0
