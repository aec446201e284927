"""References, blocks of queries and matches in memory, as files and searches would give them."""

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.sequence.codes import encode, with_margins
from mummergpu.sequence.mems import MemColumns


def offsets_of(items):
    """Where each item begins if all are joined, and their whole size."""
    return np.cumsum([0, *map(len, items)], dtype=np.int64)


def letters_of(texts):
    return np.frombuffer(bytearray(b"".join(texts)), dtype=np.uint8)


def named_records(records):
    """A reference of names and bases."""
    names, texts = zip(*records, strict=True)
    lengths = np.array([*map(len, texts)], dtype=np.int64)
    starts = offsets_of(texts)[:-1] + np.arange(lengths.size)
    return Reference("r.fa", encode(b"N".join(texts)), starts, lengths, names)


def reference_of(records):
    """Records named r0, r1."""
    return named_records((b"r%d" % number, _bytes(one)) for number, one in enumerate(records))


def named_queries(queries):
    """A block of names and bases."""
    given = list(queries)
    names, texts = [name for name, _ in given], [bases for _, bases in given]
    codes = with_margins(encode(b"".join(texts)))
    return QueryBlock(0, codes, offsets_of(texts), letters_of(names), offsets_of(names))


def block_of(queries):
    """Queries without names."""
    return named_queries((b"", _bytes(one)) for one in queries)


def columns_of(rows):
    """The columns of the rows of each query."""
    flat = np.array([row for each in rows for row in each], dtype=np.int64).reshape(-1, 3)
    return MemColumns(offsets_of(rows), *(np.ascontiguousarray(column) for column in flat.T))


def _bytes(text):
    return text.encode() if isinstance(text, str) else text
