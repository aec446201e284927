"""The state that a FASTA or FASTQ parser keeps between two pieces of its text.

A parser is always in one of a few modes (in a name, at the start of a line of bases, ...). It
keeps all that it must remember in an array of numbers, its state. A record, a line or a name
may therefore be split between two pieces at any byte, and none has to fit into a buffer.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt16Array
from mummergpu.sequence.codes import CodeArray


class Columns(NamedTuple):
    """The output arrays of a parser of FASTA, FASTQ or BAM; `BlockArrays` makes room in them.

    Attributes
    ----------
    codes : ndarray, dtype=uint8
        The base codes; has room for as many more as the text may have (two for each byte of BAM),
        and `STEP`.
    offsets : ndarray, dtype=int64
        Where in `codes` each record begins; has room for as many records as may begin in the text
        (at most at every other byte), up to the limit of the block.
    names : ndarray, dtype=uint8
        The names; has room for as many more bytes as the text has, and `STEP`.
    name_offsets : ndarray, dtype=int64
        Where in `names` each name begins; as long as `offsets`.
    qualities : ndarray, dtype=uint8
        The qualities, 0 to 93, at the indices of their bases; as long as `codes`, or empty if they
        are not kept.
    code_of_byte : ndarray, dtype=uint8, shape=(256,) or (0,)
        The code of each byte of text if the letters are symbols of a model.
    flags : ndarray, dtype=uint16
        The flag of each record of BAM, if qualities are kept.
    tags : ndarray, dtype=uint8
        Then also the tags, one after the other; has room for all bytes of text.
    tag_offsets : ndarray, dtype=int64
        Where in `tags` those of each record begin, and where one more would.
    """

    codes: CodeArray
    offsets: Int64Array
    names: ByteArray
    name_offsets: Int64Array
    qualities: ByteArray
    code_of_byte: ByteArray
    flags: UInt16Array
    tags: ByteArray
    tag_offsets: Int64Array


# The entries of a state, by index.
MODE: Final = 0
STATUS: Final = 1
LINE: Final = 2  # the line that the next byte lies on, counted from 1
STARTED: Final = 3  # 1 as soon as a record has begun
RECORDS: Final = 4  # of this block, as the next two
BASES: Final = 5
NAME_BYTES: Final = 6
GAP: Final = 7  # 1 if a break is put between two records
RECORD_LIMIT: Final = 8  # a block is full as soon as it reaches one of the limits
BASE_LIMIT: Final = 9
NAME_BYTE_LIMIT: Final = 10
BLANK: Final = 11  # 1 after a blank line where the bases should be
QUALITY: Final = 12  # quality characters of the record
SUSPECT_LINE: Final = 13  # a later quality line that starts with '@', 0 if there is none
SUSPECT_QUALITY: Final = 14  # the quality characters before it
ANY_LETTERS: Final = 15  # 1 if records may have any letters
GAP_SYMBOLS: Final = 16  # the gap symbols (no letters) among the bases of the record
FOREIGN: Final = 17  # letters of the record that are neither bases nor IUPAC codes
FOREIGN_LINE: Final = 18  # the line of the first of them
QUALITY_MODE: Final = 19  # QUALITY_LINE, or KEPT_QUALITY_LINE if qualities are kept
KEEPS_LETTERS: Final = 20  # 1 if letters that stand for several bases have codes of their own
KEEPS_COMMENTS: Final = 21  # 1 if the text after a name on its line is kept after the name
COMMENT_BYTES: Final = 22  # the bytes after the name of the record
LETTERS: Final = 23  # NUCLEOTIDES, AMINO_ACIDS or SYMBOLS
HAS_LINES: Final = 24  # 1 if each line that is not blank is a record without a name
STATE_SIZE: Final = 25

# What the letters are: bases, amino acids, or symbols of a model.
NUCLEOTIDES: Final = 0
AMINO_ACIDS: Final = 1
SYMBOLS: Final = 2

# The codes of a byte that is no symbol of the model, and of one that is passed over.
NO_SYMBOL: Final = 255
PASSED_OVER: Final = 254

# The modes of FASTA and FASTQ, then those of FASTQ alone.
LINE_START: Final = 0
NAME: Final = 1
DESCRIPTION: Final = 2
SEQUENCE: Final = 3
SEQUENCE_START: Final = 4
PLUS_LINE: Final = 5
QUALITY_START: Final = 6
QUALITY_LINE: Final = 7
KEPT_QUALITY_LINE: Final = 8

LINE_STARTS: Final = (LINE_START, SEQUENCE_START, QUALITY_START)
"""The modes in which the previous line is complete."""

# Why a parser stopped: it needs more text, or a record begins the next block, ...
GOING: Final = 0
WAITING: Final = 1
FULL: Final = 2
# ... or the text has a fault at the byte whose index the parser returns.
BARE_RETURN: Final = 3
BAD_BASE: Final = 4
BAD_START: Final = 5
BLANK_LINE: Final = 6
BAD_QUALITY: Final = 7
QUALITY_LENGTH: Final = 8
NOT_DNA: Final = 9
BAD_SYMBOL: Final = 10


def is_foreign(foreign: int, letters: int) -> bool:
    """Return whether more than a tenth of a record's letters are foreign to DNA and RNA.

    `letters` does not count gap symbols.
    """
    return foreign * 10 > letters
