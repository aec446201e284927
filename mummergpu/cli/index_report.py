"""Reports of ``mummergpu index`` on an index file: its content, and whether it is damaged."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from mummergpu.index.format import CIRCULAR_SECTION, FORMAT_VERSION, IndexHeader, read_header
from mummergpu.input.bytes.files import reading


def described(path: str) -> Iterator[str]:
    """Yield a description of an index file, one line for each fact."""
    with reading(path), open(path, "rb", buffering=0) as file:
        header = read_header(file, path)
        size = os.fstat(file.fileno()).st_size
    facts = {
        "file": path,
        "format version": f"{FORMAT_VERSION}, written by {header.program}",
        "bytes": f"{size:,}, {size / max(1, header.bases):.2f} a base",
        "reference": header.reference_path,
        "records": f"{header.records:,}" + _circular(header),
        "bases": f"{header.bases:,}",
        "digest": header.digest,
        "search": header.search,
        "least length": f"{header.minimum_length}, which it was made for",
        "pages": f"{len(header.pages):,} of at most {header.page_size:,} bases",
        **(_facts_of_trees(header) if header.search == "tree" else _facts_of_tables(header)),
    }
    width = max(map(len, facts)) + 2
    for name, value in facts.items():
        yield f"{name:<{width}}{value}"


def _circular(header: IndexHeader) -> str:
    """Return how many records are circular, if any."""
    counts = [one.count for one in header.sections if one.name == CIRCULAR_SECTION]
    return f", {counts[0]:,} of them circular" if counts else ""


def _facts_of_tables(header: IndexHeader) -> dict[str, str]:
    sampling = header.sampling
    return {
        "k-mers": f"of {sampling.kmer_length} bases, {sampling.describe_places()}; "
        f"for -l {sampling.shortest_match} and more",
    }


def _facts_of_trees(header: IndexHeader) -> dict[str, str]:
    return {
        "overlap": f"{header.search_length - 1} bases",
        "policy": header.policy,
        "address bits": str(header.address_bits),
        "nodes": f"{sum(page.node_count for page in header.pages):,}",
    }


def described_as_json(path: str) -> str:
    """Return a description of an index file as one JSON object.

    It always has all the keys that ``docs/reference/index-files.md`` names; a fact that this kind
    of index does not have is null. Bytes of names that are not UTF-8 become lone surrogates
    (Python's ``surrogateescape``).
    """
    from mummergpu.index.file import IndexFile

    index = IndexFile(path)
    header, reference = index.header, index.original
    circular = index.circular.tolist()
    has_trees = header.search == "tree"
    facts: dict[str, Any] = {
        "file": path,
        "format_version": FORMAT_VERSION,
        "program": header.program,
        "bytes": index.byte_count,
        "reference": header.reference_path,
        "digest": header.digest,
        "bases": header.bases,
        "search": header.search,
        "minimum_length": header.minimum_length,
        "kmer_length": None if has_trees else header.kmer_length,
        "reference_step": None if has_trees else header.reference_step,
        "is_picked": None if has_trees else header.is_picked,
        "page_count": len(header.pages),
        "page_size": header.page_size,
        "overlap": header.search_length - 1 if has_trees else None,
        "policy": header.policy if has_trees else None,
        "address_bits": header.address_bits if has_trees else None,
        "node_count": sum(page.node_count for page in header.pages) if has_trees else None,
        "record_count": header.records,
        "records": [
            {
                "name": name.decode("utf-8", "surrogateescape"),
                "length": length,
                "is_circular": number in circular,
            }
            for number, (name, length) in enumerate(
                zip(reference.names, reference.record_lengths.tolist(), strict=True)
            )
        ],
    }
    return json.dumps(facts)


def checked(path: str, reference_path: str | None, threads: int) -> str:
    """Read an index file completely, and return the message that it is undamaged.

    `reference_path` is a FASTA file that must have the same records, or None.
    """
    from concurrent.futures import ThreadPoolExecutor

    from mummergpu.index.file import IndexFile
    from mummergpu.index.verification import require_reference, verify
    from mummergpu.input.reference import read_reference

    index = IndexFile(path)
    with ThreadPoolExecutor(threads) as executor:
        verify(index, executor.map)
        if reference_path is None:
            return f"{path} is as it was written"
        require_reference(index, read_reference(reference_path), executor.map)
    return f"{path} is as it was written, and is of {reference_path}"
