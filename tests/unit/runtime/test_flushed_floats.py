"""Denormal numbers, which HMMER flushes to zero."""

import platform
import sys

import pytest

from mummergpu.runtime.flushed_floats import flushed_floats


def test_denormal_numbers_are_zero_meanwhile():
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("only the registers of x86-64 on Linux are known")
    least, half = [sys.float_info.min], [0.5]
    with pytest.raises(ValueError, match="to the caller"), flushed_floats():
        assert least[0] * half[0] == 0
        raise ValueError("to the caller")
    assert least[0] * half[0] > 0
