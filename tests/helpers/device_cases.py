"""What any device must make of the cases: the host's in `tests/kernels`, a real one in `tests/gpu`.

Both folders import the tests, and have devices of their own for them.
"""

import pytest

from helpers.device_columns import columns_of_device, columns_of_host, difference, on_host
from helpers.text_cases import STYLES, TEXT_CASES, text_of_device
from mummergpu.output.matches.mummer import MummerFormatter

cases = pytest.mark.parametrize("case", TEXT_CASES, ids=lambda case: case.name)


def wrong_text(device, cache, case, style):
    """Say that the text of a device is not that of the host, or None.

    Of the texts, pytest would look for the difference for minutes.
    """
    formatter = MummerFormatter(case.reference, style)
    text = text_of_device(device, cache, formatter, case.block, case.columns)
    return None if text == case.text(style) else f"the text of {case.name}, {style}"


def wrong_columns(device, cache, case):
    """Say where the columns that a device leaves are not those of the host, or None."""
    found = difference(on_host(columns_of_device(device, cache, case)), columns_of_host(case))
    return None if found is None else f"the columns of {case.name}: {found}"


@cases
def test_the_text_is_that_of_the_host(devices, cache, case):
    for number, style in enumerate(STYLES):
        assert wrong_text(devices[number % len(devices)], cache, case, style) is None


@cases
def test_the_columns_are_those_of_the_host(devices, cache, case):
    for device in devices:
        assert wrong_columns(device, cache, case) is None
