"""The machines of FASTA and FASTQ in plain Python, where a fuzzer can see their branches.

The functions are those of the package: the very code that is compiled, before it is compiled.
Only the runs of like bytes, which exist as machine code alone, are written a second time.
Whatever they do outside their arrays is an error here, where machine code would go on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from helpers.naive import fold

from mummergpu.input import fastx
from mummergpu.input.byte_runs import STEP

_LETTERS: Final = re.compile(rb"[A-Za-z]*")
_NAME: Final = re.compile(rb"[^\x00- ]*")
_QUALITY: Final = re.compile(rb"[!-~]*")
_TEXT: Final = re.compile(rb"[^\x00-\x1f]*")
_CODES: Final = bytes(b"ACGTN".index(letter) for letter in fold(bytes(range(256))))


def _end_of(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    found = pattern.match(text, at)
    assert found is not None
    return found.end()


def _steps(text: bytes, at: int, end: int) -> bytes:
    """The bytes up to the end of a run, and behind it to the end of a step.

    A step is written as a whole; the machines count on the byte that ends a name.
    """
    return text[at : end + STEP - (end - at) % STEP]


def encode_letters(text: bytes, at: int, codes: memoryview, to: int) -> int:
    end = _end_of(_LETTERS, text, at)
    written = _steps(text, at, end).translate(_CODES)
    codes[to : to + len(written)] = written
    return end


def copy_name(text: bytes, at: int, names: memoryview, to: int) -> int:
    end = _end_of(_NAME, text, at)
    written = _steps(text, at, end)
    names[to : to + len(written)] = written
    return end


def skip_quality(text: bytes, at: int) -> int:
    return _end_of(_QUALITY, text, at)


def skip_text(text: bytes, at: int) -> int:
    return _end_of(_TEXT, text, at)


Machine = Callable[..., int]


def plain_functions(instrument: Callable[[Any], Any] = lambda function: function) -> dict[str, Any]:
    """Return the functions of `fastx` uncompiled, by their names, calling each other.

    Parameters
    ----------
    instrument : callable, optional
        Given each function before it is used, and returns what to use in its place.
    """
    functions = dict(vars(fastx))
    for run in (encode_letters, copy_name, skip_quality, skip_text):
        functions[run.__name__] = run
    for name, value in vars(fastx).items():
        if hasattr(value, "py_func") and value.__module__ == fastx.__name__:
            plain = FunctionType(value.py_func.__code__, functions, name)
            functions[name] = instrument(plain)
    return functions


def _on_arrays(machine: Machine) -> Machine:
    """Give a machine in plain Python what a compiled one is given, and hold it to its word."""

    def run(
        text: npt.NDArray[np.uint8],
        at: int,
        end: int,
        state: npt.NDArray[np.int64],
        codes: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        names: npt.NDArray[np.uint8],
        name_offsets: npt.NDArray[np.int64],
    ) -> int:
        # What machine code may write or read behind the runs.
        assert text.size >= end + STEP and text[end] == ord("\n")
        assert codes.size >= state[fastx.BASES] + end - at + STEP
        assert names.size >= state[fastx.NAME_BYTES] + end - at + STEP
        assert offsets.size == name_offsets.size
        remembered = state.tolist()
        stopped = machine(
            text[: end + STEP].tobytes(),
            at,
            end,
            remembered,
            memoryview(codes),
            memoryview(offsets),
            memoryview(names),
            memoryview(name_offsets),
        )
        state[:] = remembered
        assert at <= stopped <= end
        assert stopped == end or remembered[fastx.STATUS] != fastx.GOING
        return stopped

    return run


class PlainMachines:
    """Both machines in plain Python, to stand in for the compiled ones."""

    def __init__(self, instrument: Callable[[Any], Any] = lambda function: function) -> None:
        functions = plain_functions(instrument)
        self.parse_fasta = _on_arrays(functions["parse_fasta"])
        self.parse_fastq = _on_arrays(functions["parse_fastq"])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let readers of records use these machines."""
        with (
            patch.object(fastx, "parse_fasta", self.parse_fasta),
            patch.object(fastx, "parse_fastq", self.parse_fastq),
        ):
            yield
