"""The reference and the queries of a study, in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryBlock, QueryRules
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.reference import Reference, read_reference
from mummergpu.runtime.frozen import frozen
from mummergpu.sequence.strand import Strand

_HASH_BYTES = 16


@frozen
class DataSet:
    """The input of a study's runs; its name is that of the workload or the reference's file."""

    name: str
    reference: Reference
    blocks: tuple[QueryBlock, ...]
    minimum_length: int
    strands: tuple[Strand, ...]

    @property
    def query_count(self) -> int:
        """The number of queries."""
        return sum(block.query_count for block in self.blocks)

    @property
    def query_bases(self) -> int:
        """The number of bases of all queries."""
        return sum(block.base_count for block in self.blocks)

    @property
    def median_query_length(self) -> int:
        """The median length of a query in bases."""
        lengths = np.concatenate([np.diff(block.offsets) for block in self.blocks])
        return int(np.median(lengths))

    def query_digest(self) -> str:
        """Return a BLAKE2b hash of the bases and the lengths of the queries, in their order.

        It does not depend on how the queries are divided into blocks, nor on their names.
        """
        codes, lengths = (hashlib.blake2b(digest_size=_HASH_BYTES) for _ in range(2))
        for block in self.blocks:
            codes.update(np.ascontiguousarray(block.codes).data)
            lengths.update(np.diff(block.offsets).astype("<i8").data)
        return codes.hexdigest() + lengths.hexdigest()


def read_data_set(
    name: str,
    reference_path: str,
    query_paths: Sequence[str],
    block_size: int,
    minimum_length: int,
    strands: tuple[Strand, ...],
    rules: QueryRules | None = None,
) -> DataSet:
    """Read a reference and at least one query into memory.

    `InputError` is raised if a file cannot be read or is not valid, or if there are no queries.
    """
    any_letters = rules is not None and rules.any_letters
    reference = read_reference(reference_path, any_letters=any_letters)
    with query_reader(query_paths, block_size, rules=rules) as reader:
        blocks = tuple(reader)
    if not any(block.query_count for block in blocks):
        raise InputError("has no queries to measure with", query_paths[0])
    return DataSet(name, reference, blocks, minimum_length, strands)


def make_data_set(
    workload: str,
    scale: float,
    seed: int | None,
    block_size: int,
    minimum_length: int | None,
    strands: tuple[Strand, ...],
    reference: Path | None = None,
) -> DataSet:
    """Make a workload, of a FASTA file if one is given, and read it into memory.

    The files that are made do not stay. The seed and the minimum length are those that the workload
    declares unless they are given.
    `OptionError` is raised if there is no such workload, if it needs a FASTA file, or if the scale
    is not possible.
    """
    from mummergpu.workload.declaration import load_declaration
    from mummergpu.workload.generation import generate

    length = load_declaration(workload).minimum_length if minimum_length is None else minimum_length
    with TemporaryDirectory(prefix="mummergpu-") as folder:
        files = generate(workload, Path(folder), scale, reference, seed)
        paths = str(files.reference), [str(path) for path in files.query_paths]
        return read_data_set(workload, *paths, block_size, length, strands)
