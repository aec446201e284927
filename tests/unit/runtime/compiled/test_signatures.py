"""Signatures: the text of types, and the numbers that values are passed as."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import pytest

from mummergpu.mapping.options import Limits
from mummergpu.runtime.compiled.signatures import UnsuitedValueError, flatten, types_of_text
from mummergpu.sequence.mems import MemRows

COLUMNS = MemRows(*(np.zeros(2, np.int64) for _ in range(3)))


@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros(3, np.uint8), 3, True),
        (np.zeros((2, 3), np.float32), np.int64(4), np.bool_(0)),
        ((np.zeros(3), (np.zeros(2, bool), 3)), np.zeros((1, 1, 1), np.uint32)),
        (np.zeros(0, np.int64),),
        ((),),
        (COLUMNS, 3, (True, (Limits(1, 2, 3), np.zeros((1, 2), np.uint8))), ()),
    ],
)
def test_the_text_of_values_tells_their_types(arguments):
    text = flatten(arguments, [])
    assert types_of_text(text) == tuple(numba.typeof(one) for one in arguments)


def test_bundles_of_two_names_are_told_apart():
    class One(NamedTuple):
        number: int

    class Other(NamedTuple):
        number: int

    assert flatten((One(1),), []) != flatten((Other(1),), [])


@pytest.mark.parametrize(
    "text", ["x", "i)", "[|V5,1]", "mummergpu.no.Such(i)", "mummergpu.mapping.options.Nothing(i)"]
)
def test_a_text_of_no_types_is_an_error(text):
    with pytest.raises((UnsuitedValueError, numba.core.errors.NumbaError)):
        types_of_text(text)


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((4, 4))[::2],
        np.zeros((2, 3), order="F"),
        np.frombuffer(b"abc", np.uint8),
        1.5,
        np.uint8(3),
        np.uint64(3),
        None,
    ],
)
def test_other_values_have_no_text(value):
    with pytest.raises(UnsuitedValueError):
        flatten((value,), [])
