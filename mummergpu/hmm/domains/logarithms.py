"""Logarithms and exponentials of the C library in compiled code: HMMER's numbers have its bits.

Numpy's own differ in some, and machine code that is kept between runs names no library.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, Final, NamedTuple, cast

from mummergpu.runtime.llvm import intrinsic, ir, types

_LIBRARY: Final = "libm.so.6" if sys.platform == "linux" else None


class Logarithms(NamedTuple):
    """The addresses of C's functions, for `log32`, `log64` and `exp64`."""

    short: int
    long: int
    exponential: int


@cache
def logarithms() -> Logarithms:
    """Return the addresses in this process."""
    library = ctypes.CDLL(_LIBRARY)
    functions = library.logf, library.log, library.exp
    addresses = (ctypes.cast(one, ctypes.c_void_p).value for one in functions)
    return Logarithms(*(cast(int, one) for one in addresses))


def _calling(bits: int) -> Any:
    def _log(typing_context: Any, address: Any, value: Any) -> Any:
        """Call a function at an address with a number."""
        numbers = types.float32 if bits == 32 else types.float64

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FloatType() if bits == 32 else ir.DoubleType()
            function = ir.FunctionType(kind, [kind]).as_pointer()
            return builder.call(builder.inttoptr(arguments[0], function), [arguments[1]])

        return numbers(types.int64, numbers), generate

    return _log


_log32 = _calling(32)
_log64 = _calling(64)
log32 = cast(Any, intrinsic(_log32))
log64 = cast(Any, intrinsic(_log64))
exp64 = cast(Any, intrinsic(_log64))
