"""Plain arrays have the types that numba gives them, and others are left to numba."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaTypeError

from mummergpu.runtime import jit
from mummergpu.runtime.compiled import compiler
from mummergpu.runtime.compiled.compiler import (
    tell_types_of_plain_arrays,
    type_of_plain_arrays,
)


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


ARRAYS = [
    *(np.zeros(3, dtype) for dtype in "bBhHiIqQfd?FDO"),
    np.zeros((2, 3)),
    np.zeros((2, 3), order="F"),
    np.zeros((4, 4))[::2, ::2],
    np.zeros(0, np.uint8),
    np.zeros((), np.int64),
    np.zeros(8, np.uint8)[1:].view(np.uint8),
    np.frombuffer(bytes(9), np.uint8)[1:].view(np.int64),
    read_only(np.zeros(3, np.int32)),
    np.zeros(2, [("a", "i4"), ("b", "u1")]),
]


class Pair(NamedTuple):
    numbers: np.ndarray
    count: int


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_the_types_are_those_of_numba(array: np.ndarray) -> None:
    assert type_of_plain_arrays(array) == numba.typeof(array)


@pytest.mark.parametrize(
    "value",
    [
        (),
        (np.zeros(2), np.ones(2)),
        (1, np.zeros(2), (np.zeros(1), 2.0, None)),
        Pair(np.zeros(2, np.uint8), 3),
    ],
    ids=["empty", "equal", "nested", "named"],
)
def test_the_types_of_tuples_are_those_of_numba(value: tuple[Any, ...]) -> None:
    assert type_of_plain_arrays(value) == numba.typeof(value)


def test_numba_is_asked_for_everything_else() -> None:
    for value in (1, b"", np.int8(1), np.ma.array([1]), np.rec.array([(1,)])):
        assert type_of_plain_arrays(value) is None


def double(numbers: np.ndarray) -> np.ndarray:
    return numbers * 2


def test_masked_arrays_are_still_refused() -> None:
    with pytest.raises(NumbaTypeError, match="MaskedArray"):
        jit.jit(double)(np.ma.array([1, 2]))
    assert jit.jit(double)(np.array([1, 2])).tolist() == [2, 4]


def test_a_numba_that_has_changed_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler.types, "Array", None)
    assert type_of_plain_arrays(np.zeros(1)) is None

    class Other:
        """A dispatcher without the method."""

    other = Other()
    tell_types_of_plain_arrays(other)
    assert vars(other) == {}
