"""Logarithms and exponentials of the C library in compiled code: HMMER's numbers have its bits.

Numpy's own differ in some, and machine code that is kept between runs names no library. `exp32` is
that of Easel's vectors.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.runtime.arrays import Float32Array
from mummergpu.runtime.jit import inline
from mummergpu.runtime.llvm import intrinsic, ir, types

_LIBRARY: Final = "libm.so.6" if sys.platform == "linux" else None

_LEAST_LOG: Final = np.float32(-88.3762626647949)
"""Here and below the exponential is 0."""
_LOG2_INVERSE: Final = np.float32(1.44269504088896341)
_LOG2: Final = np.float32(0.693359375)
_LOG2_REST: Final = np.float32(-2.12194440e-4)
_COEFFICIENTS: Final = tuple(
    map(
        np.float32,
        (
            *(1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3),
            *(4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1),
        ),
    )
)
"""Of exp(f) - 1 - f over f * f, for f up to half of log 2 (S. Moshier's Cephes library)."""


class Logarithms(NamedTuple):
    """The addresses of C's functions, for `log32`, `log64`, `exp64` and `exp32_of_c`."""

    short: int
    long: int
    exponential: int
    short_exponential: int


@cache
def logarithms() -> Logarithms:
    """Return the addresses in this process."""
    library = ctypes.CDLL(_LIBRARY)
    functions = library.logf, library.log, library.exp, library.expf
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
exp32_of_c = cast(Any, intrinsic(_log32))


@inline
def exp32(log: np.float32) -> np.float32:
    """Return the exponential of a float32, a few units of the last place off.

    Each operation rounds to float32, in the order of Easel's vectors.
    """
    # Without branches, for loops over many; what is no number stays so.
    is_zero = log <= _LEAST_LOG
    known = np.float32(0) if is_zero or log != log else log
    scaled = known * _LOG2_INVERSE + np.float32(0.5)
    turns = np.int32(scaled)
    turns -= np.int32(turns > scaled)
    rest = known - np.float32(turns) * _LOG2
    rest = rest - np.float32(turns) * _LOG2_REST
    found = np.float32(0)
    for coefficient in _COEFFICIENTS:
        found = found * rest + coefficient
    found = found * (rest * rest) + rest + np.float32(1)
    found = found * np.int32((turns + 127) << 23).view(np.float32)
    return np.float32(0) if is_zero else found if log == log else log


@inline
def fill_exponentials(logs: Float32Array, columns: int) -> None:
    """Replace the logarithms in the first columns by their exponentials."""
    for row in range(len(logs)):
        for column in range(columns):
            logs[row, column] = exp32(logs[row, column])
