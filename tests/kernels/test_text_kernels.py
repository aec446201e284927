"""The kernels that make text, on the host, beside the text of the host's own formatter."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.host_device import HostCompiler, HostDevice
from helpers.text_cases import STYLES, TEXT_CASES, TextCase, text_of_device

from mummergpu.matching.kmer import device_text
from mummergpu.output.mummer import MummerFormatter


@pytest.fixture(scope="module")
def compiler(cxx: str, library_folder: Path) -> HostCompiler:
    return HostCompiler(library_folder)


@pytest.mark.parametrize("case", TEXT_CASES, ids=lambda case: case.name)
def test_the_device_makes_the_text_of_the_host(compiler: HostCompiler, case: TextCase) -> None:
    for number, style in enumerate(STYLES):
        expected = case.text(style)
        # One warp, some, or more than there are tiles.
        device = HostDevice(1 << 32, (1, 3, 100_000)[number % 3])
        formatter = MummerFormatter(case.reference, style)
        text = text_of_device(device, compiler, formatter, case.block, case.columns)
        assert text == expected, style
        assert not device.buffers


@pytest.mark.parametrize("window_bytes", [1, 1000, 1 << 12, 70_001])
@pytest.mark.parametrize("piece_bytes", [1, 999, 1 << 14])
def test_windows_and_pieces_of_any_size_join_to_the_whole(
    compiler: HostCompiler,
    monkeypatch: pytest.MonkeyPatch,
    window_bytes: int,
    piece_bytes: int,
) -> None:
    monkeypatch.setattr(device_text, "WINDOW_BYTES", window_bytes)
    case = TEXT_CASES[1]
    formatter = MummerFormatter(case.reference, STYLES[-1], piece_bytes)
    device = HostDevice()
    text = text_of_device(device, compiler, formatter, case.block, case.columns)
    assert text == case.text(STYLES[-1])
    assert (device.launches.count("write_text") > 1) == (window_bytes < len(text))
