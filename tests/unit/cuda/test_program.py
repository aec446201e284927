"""What a program is made of: its files, its macros, and the constants of both sides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mummergpu.cuda.program import (
    BLOCK_THREADS,
    CONSTANTS_HEADER,
    COUNTS_PER_THREAD,
    WARP_LANES,
    ProgramSource,
)
from mummergpu.errors import BackendError

PROGRAM = ProgramSource(
    "plain", "engine/program.cu", (("FAST", 1), ("WIDE", 0)), (("FEW", 3), ("MANY", 1 << 32))
)


def test_macros_are_options_of_the_compiler() -> None:
    assert PROGRAM.definitions() == ["-DFAST=1", "-DWIDE=0"]


def test_constants_are_a_header() -> None:
    assert PROGRAM.constants_header().splitlines()[1:] == [
        "#pragma once",
        f"constexpr unsigned int BLOCK_THREADS = {BLOCK_THREADS}u;",
        f"constexpr unsigned int WARP_LANES = {WARP_LANES}u;",
        f"constexpr unsigned int COUNTS_PER_THREAD = {COUNTS_PER_THREAD}u;",
        "constexpr unsigned int FEW = 3u;",
        "constexpr unsigned long long MANY = 4294967296ull;",
    ]


def test_what_is_generated_follows_the_constants() -> None:
    program = replace(PROGRAM, generated="struct Plain {};\n")
    assert program.constants_header() == PROGRAM.constants_header() + "struct Plain {};\n"


def test_a_program_is_made_of_its_own_files_and_the_common_ones() -> None:
    sources = {name: name for name in ("common/a", "engine/b", "engine/program.cu", "other/c", "d")}
    assert PROGRAM.files(sources) == {
        "common/a": "common/a",
        "engine/b": "engine/b",
        "engine/program.cu": "engine/program.cu",
        CONSTANTS_HEADER: PROGRAM.constants_header(),
    }


def test_an_entry_that_is_missing_is_named() -> None:
    with pytest.raises(BackendError, match=r"not complete: no engine/program\.cu"):
        PROGRAM.files({"common/a": ""})
