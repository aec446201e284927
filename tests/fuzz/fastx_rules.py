"""What FASTA and FASTQ are, line by line: which texts are right, and what they hold.

Written from the rules, not from the parsers, and without their hurry.
"""

import re
from typing import Final

from helpers.naive import fold

_NUCLEOTIDE_CODES: Final = b"ACGTURYSWKMBDHVNX"
_SPACES: Final = b" \t\v\f"
_FASTA_LINE: Final = re.compile(rb"[A-Za-z*\-. \t\v\f]*")
_FASTQ_LINE: Final = re.compile(rb"[A-Za-z*\-.]+")
_QUALITY_LINE: Final = re.compile(rb"[!-~]+")


class WrongTextError(Exception):
    """A text is not FASTA, or not FASTQ."""


def records_of(text, is_fastq, any_letters=False):
    """Return names and sequences.

    Parameters
    ----------
    text : bytes
        Any text.
    is_fastq : bool
        FASTQ, not FASTA.
    any_letters : bool, default False
        Whether records may have more than a tenth of letters that are no code of bases.

    Raises
    ------
    WrongTextError
        If a line breaks the rules.
    """
    lines = _lines_of(text)
    pairs = _fastq_records(lines) if is_fastq else _fasta_records(lines)
    if not any_letters and any(_is_foreign(sequence) for _, sequence in pairs):
        raise WrongTextError("a record that is no DNA")
    return [(name, fold(sequence)) for name, sequence in pairs]


def _is_foreign(sequence):
    letters = sequence.translate(None, b"*-.").upper()
    foreign = letters.translate(None, _NUCLEOTIDE_CODES)
    return 10 * len(foreign) > len(letters)


def _lines_of(text):
    """Lines end with a line feed, behind a carriage return or not; the last may lack both."""
    lines = text.split(b"\n")
    last = lines.pop()
    if last:
        lines.append(last)
    lines = [line.removesuffix(b"\r") for line in lines]
    if any(b"\r" in line for line in lines):
        raise WrongTextError("a carriage return inside a line")
    return lines


def _name_of(line):
    """The name is what stands between the mark and the first space."""
    return re.split(rb"[ \t\v\f]", line[1:], maxsplit=1)[0]


def _fasta_records(lines):
    pairs = []
    for line in lines:
        if not pairs:
            line = line.lstrip(_SPACES)
            if not line:
                continue
            if not line.startswith(b">"):
                raise WrongTextError("text before the first record")
        if line.startswith(b">"):
            pairs.append((_name_of(line), b""))
        elif _FASTA_LINE.fullmatch(line):
            name, sequence = pairs[-1]
            pairs[-1] = (name, sequence + line.translate(None, _SPACES))
        else:
            raise WrongTextError("no line of bases")
    return pairs


def _fastq_records(lines):
    pairs = []
    left = lines[::-1]
    while left:
        header = left.pop()
        if not header:
            continue
        if not header.startswith(b"@"):
            raise WrongTextError("a record begins with '@'")
        name = _name_of(header)
        sequence = _take_sequence(left)
        left.pop()
        _take_quality(left, len(sequence))
        pairs.append((name, sequence))
    return pairs


def _take_sequence(left):
    """Take the lines up to that with '+'; one blank line may stand for a record without bases."""
    if len(left) > 1 and not left[-1] and left[-2].startswith(b"+"):
        left.pop()
        return b""
    sequence = b""
    while left and not left[-1].startswith(b"+"):
        line = left.pop()
        if not _FASTQ_LINE.fullmatch(line):
            raise WrongTextError("no line of bases")
        sequence += line
    if not left:
        raise WrongTextError("the text ends inside a record")
    return sequence


def _take_quality(left, length):
    """Take as many characters as there are bases, in whole lines."""
    while length > 0:
        if not left:
            raise WrongTextError("the text ends inside a record")
        line = left.pop()
        if not _QUALITY_LINE.fullmatch(line):
            raise WrongTextError("no line of quality")
        length -= len(line)
    if length < 0:
        raise WrongTextError("more quality than bases")
