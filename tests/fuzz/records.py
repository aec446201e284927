"""Target: any text through the parsers of FASTA and of FASTQ.

The records must be those that the rules say, or the text is refused where they refuse it; and
whatever the pieces the text comes in, and whether the parsers are compiled or not, the same
records, or the same words, must come out.
"""

from itertools import chain
from typing import Final

from helpers.naive import pairs_of
from helpers.parsed_text import reader_of

from fuzz.fastx_rules import WrongTextError, records_of
from fuzz.plain_parsers import PlainParsers
from fuzz.visible import instrument_module
from mummergpu.errors import InputError
from mummergpu.input.records import record_reader as records
from mummergpu.input.records.record_arrays import UNLIMITED_BLOCK, Limits, RecordOptions
from mummergpu.sequence.codes import flatten

SMALL_LIMITS: Final = Limits(9, 3, 12)
CHUNK_SIZES: Final = (2, 3, 33)
EXAMPLES: Final = (
    b">a b\nACGT\r\nAC GT\n\n>b\n*-.nN\n",
    b"@a b\nACGT\n+a\nII\nII\n@b\n\n+\n\n@c\r\nA\r\n+\r\n@",
)

_parsers = PlainParsers()


def instrument(function):
    """Show the branches of the parsers, and of what feeds them, to a fuzzer."""
    instrument_module(records, function)
    global _parsers
    _parsers = PlainParsers(function)


def _outcome(text, is_fastq, chunk_size, limits, any_letters=False):
    blocks = []
    try:
        options = RecordOptions(limits, chunk_size, any_letters, keeps_qualities=True)
        reader = reader_of(text, is_fastq, options)
        while (block := reader.next_block()) is not None:
            flatten(block.codes)
            blocks.append(pairs_of([block]))
            assert block.qualities.size == block.codes.size
            assert (block.qualities <= 93 if is_fastq else block.qualities == 0xFF).all()
    except InputError as error:
        return str(error)
    assert all(len(block) <= limits.records for block in blocks)
    return list(chain.from_iterable(blocks))


def _check_rules(found, text, is_fastq, any_letters):
    """Hold what was found to what the rules say."""
    expected: list[tuple[bytes, bytes]] | None
    try:
        expected = records_of(text, is_fastq, any_letters)
    except WrongTextError:
        expected = None
    right = isinstance(found, str) if expected is None else found == expected
    assert right, f"{found!r}, and by the rules {expected!r}"


def one_input(data):
    """Read any bytes as FASTA and as FASTQ."""
    whole = len(data) + 2
    for is_fastq in (False, True):
        with _parsers.in_place():
            found = _outcome(data, is_fastq, whole, UNLIMITED_BLOCK)
            with_any_letters = _outcome(data, is_fastq, whole, UNLIMITED_BLOCK, True)
        _check_rules(found, data, is_fastq, False)
        _check_rules(with_any_letters, data, is_fastq, True)
        assert _outcome(data, is_fastq, whole, UNLIMITED_BLOCK) == found, "compiled, it differs"
        for chunk_size in CHUNK_SIZES:
            pieces = _outcome(data, is_fastq, chunk_size, SMALL_LIMITS)
            assert pieces == found, f"in pieces of {chunk_size} bytes it is {pieces!r}"
