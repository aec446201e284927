"""The text that a device makes is that of the host: of awkward lines, and of very many."""

from __future__ import annotations

import pytest
from helpers.text_cases import STYLES, TEXT_CASES, TextCase, many_rows, text_of_device

from mummergpu.cuda.device import Device
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.matching.kmer.device_text import WINDOW_BYTES
from mummergpu.output.matches.mummer import MummerFormatter

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


def check(device: Device, cache: KernelCache, case: TextCase, number: int) -> int:
    style = STYLES[number % len(STYLES)]
    formatter = MummerFormatter(case.reference, style)
    text = text_of_device(device, cache, formatter, case.block, case.columns)
    # Not compared by pytest, which would look for the difference for minutes.
    is_same = text == case.text(style)
    assert is_same, (case.name, style)
    return len(text)


@pytest.mark.parametrize("case", TEXT_CASES, ids=lambda case: case.name)
def test_awkward_lines_are_those_of_the_host(
    device: Device, cache: KernelCache, case: TextCase
) -> None:
    for number in range(len(STYLES)):
        check(device, cache, case, number)


@pytest.mark.parametrize("record_count", [1, 2000])
def test_many_lines_are_those_of_the_host(
    device: Device, cache: KernelCache, record_count: int
) -> None:
    """Lines of several windows."""
    case = many_rows(record_count)
    for number in (0, 7):
        assert check(device, cache, case, number) > 2 * WINDOW_BYTES
