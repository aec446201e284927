"""Files of reads for the parsers that threads run: their text, and what is read from them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from helpers.naive import pairs_of
from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.bytes.file_part import plain_part

PIECE = 60
BLOCK = 16
CHUNK = 13


class Parts:
    """Where the parts of a file begin and end that are read."""

    def __init__(self):
        self.ranges = []

    def __call__(self, number, path, begin, end):
        self.ranges.append((begin, end))
        return plain_part(number, path, begin, end)

    @property
    def rest(self):
        """Where the part begins that one parser reads."""
        (begin,) = (begin for begin, end in self.ranges if end is None)
        return begin


def read(path, threads, block_size=BLOCK, chunk_size=CHUNK, any_letters=False):
    """Return the records of a file, or what is wrong with it."""
    rules = QueryRules(any_letters)
    try:
        with query_reader([str(path)], block_size, chunk_size, rules, threads) as reader:
            blocks = list(reader)
    except InputError as error:
        return str(error)
    assert [block.index for block in blocks] == list(range(len(blocks)))
    assert reader.bytes_read == path.stat().st_size
    return pairs_of(blocks)


def fastq_record(name, bases, quality=None, plus=""):
    return f"@{name}\n{bases}\n+{plus}\n{'@' * len(bases) if quality is None else quality}\n"


def fasta_record(name, bases, width=1 << 20):
    lines = [bases[at : at + width] for at in range(0, len(bases), width)]
    return "\n".join([f">{name}", *lines, ""])


def usual_fastq(count, seed=1):
    """Return four lines for each record; many lines begin with '@' or '+'."""
    random = np.random.default_rng(seed)
    text = ""
    for number in range(count):
        length = int(random.integers(1, 30))
        bases = "".join(random.choice(list("ACGTNacgtu-"), length))
        quality = "".join(random.choice(list("@+I!~>"), length))
        name = f"r{number}"
        text += fastq_record(f"{name} x", bases, quality, name if number % 3 == 0 else "")
    return text


def usual_fasta(count, seed=1):
    """Return records of one or more lines, some without bases, some followed by blank lines."""
    random = np.random.default_rng(seed)
    text = ""
    for number in range(count):
        bases = "".join(random.choice(list("ACGTNacgtu-* "), int(random.integers(0, 30))))
        text += fasta_record(f"r{number}>@ >x", bases, 10 if number % 3 == 0 else 30)
        text += "\n" * (number % 5 == 0)
    return text


class Kind(NamedTuple):
    """How to write a format."""

    record: Callable[[str, str], str]
    usual_text: Callable[..., str]
    fault: str


FASTQ = Kind(fastq_record, usual_fastq, "@bad\nACGT\n+\nIII\n")
FASTA = Kind(fasta_record, usual_fasta, ">bad\nAC1T\n")
