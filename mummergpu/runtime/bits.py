"""Where the bits of a word lie and how many there are, in compiled code: one instruction each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from mummergpu.runtime.llvm import intrinsic, ir, types


def _generate_lowest_bit(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def _generate_bit_count(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


_BitOf = Callable[[np.uint64], int]

lowest_bit = cast(_BitOf, intrinsic(_generate_lowest_bit))
"""Returns the number of the lowest bit that is set; called with a word that has one."""
bit_count = cast(_BitOf, intrinsic(_generate_bit_count))
"""Returns how many bits are set."""
