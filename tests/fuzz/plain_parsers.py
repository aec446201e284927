"""The parsers of FASTA and FASTQ in plain Python, where a fuzzer can see their branches.

The functions are those of the package: the very code that is compiled, before it is compiled.
Only the runs of like bytes, which exist as machine code alone, are written a second time.
Whatever they do outside their arrays is an error here, where machine code would go on.
"""

import re
from contextlib import contextmanager
from typing import Final
from unittest.mock import patch

from helpers.naive import fold
from helpers.uncompiled import Uncompiled

from mummergpu.input.records import parser_state
from mummergpu.input.records import record_reader as records
from mummergpu.input.records.byte_runs import RESIDUE_CODE_OF_BYTE, STEP
from mummergpu.input.records.fastx import parse_fasta, parse_fastq
from mummergpu.sequence.codes import LETTER_CODE_OF_BYTE, NUCLEOTIDES

_LETTERS: Final = re.compile(rb"[A-Za-z]*")
_NAME: Final = re.compile(rb"[^\x00- ]*")
_QUALITY: Final = re.compile(rb"[!-~]*")
_TEXT: Final = re.compile(rb"[^\x00-\x1f]*")
_LETTER_CODES: Final = LETTER_CODE_OF_BYTE.tobytes()
_RESIDUE_CODES: Final = RESIDUE_CODE_OF_BYTE.tobytes()
_CODES: Final = bytes(b"ACGTN".index(letter) for letter in fold(bytes(range(256))))


def _end_of(pattern, text, at):
    found = pattern.match(text, at)
    assert found is not None
    return found.end()


def _steps(text, at, end):
    """The bytes up to the end of a run, and behind it to the end of a step.

    A step is written as a whole; the parsers count on the byte that ends a name.
    """
    return text[at : end + STEP - (end - at) % STEP]


def encode_letters(text, at, codes, to, keeps_letters=False):
    end = _end_of(_LETTERS, text, at)
    written = _steps(text, at, end).translate(_CODES)
    if keeps_letters:
        kept = text[at:end].translate(_LETTER_CODES)
        written = kept + written[len(kept) :]
    codes[to : to + len(written)] = written
    return end, sum(map(text[at:end].upper().count, NUCLEOTIDES.foreign_letters))


def encode_residues(text, at, codes, to):
    end = _end_of(_LETTERS, text, at)
    codes[to : to + end - at] = text[at:end].translate(_RESIDUE_CODES)
    return end


def copy_name(text, at, names, to):
    end = _end_of(_NAME, text, at)
    written = _steps(text, at, end)
    names[to : to + len(written)] = written
    return end


def copy_quality(text, at, qualities, to):
    end = _end_of(_QUALITY, text, at)
    written = bytes((byte - 33) % 256 for byte in _steps(text, at, end))
    qualities[to : to + len(written)] = written
    return end


def skip_quality(text, at):
    return _end_of(_QUALITY, text, at)


def skip_text(text, at):
    return _end_of(_TEXT, text, at)


_RUNS: Final = {
    run.__name__: run
    for run in (encode_letters, encode_residues, copy_name, copy_quality, skip_quality, skip_text)
}


def _on_arrays(parser):
    """Give a parser in plain Python what a compiled one is given, and hold it to its word."""

    def run(text, at, end, state, columns):
        # What machine code may write or read behind the runs.
        assert text.size >= end + STEP and text[end] == ord("\n")
        assert columns.codes.size >= state[parser_state.BASES] + end - at + STEP
        assert columns.names.size >= state[parser_state.NAME_BYTES] + end - at + STEP
        assert columns.offsets.size == columns.name_offsets.size
        kept = columns.qualities.size
        assert kept in (0, max(kept, state[parser_state.BASES] + end - at + STEP))
        remembered = state.tolist()
        stopped = parser(
            text[: end + STEP].tobytes(),
            at,
            end,
            remembered,
            parser_state.Columns(*map(memoryview, columns)),
        )
        state[:] = remembered
        assert at <= stopped <= end
        assert stopped == end or remembered[parser_state.STATUS] != parser_state.GOING
        return stopped

    return run


class PlainParsers:
    """Both parsers in plain Python, to stand in for the compiled ones."""

    def __init__(self, instrument=lambda function: function):
        uncompiled = Uncompiled(_RUNS, instrument)
        self._parse_fasta = _on_arrays(uncompiled.function(parse_fasta))
        self._parse_fastq = _on_arrays(uncompiled.function(parse_fastq))

    @contextmanager
    def in_place(self):
        """Let readers of records use these parsers."""
        with (
            patch.object(records, "parse_fasta", self._parse_fasta),
            patch.object(records, "parse_fastq", self._parse_fastq),
        ):
            yield
