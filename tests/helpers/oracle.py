"""Maximal exact matches by definition: slow, short, and written from nothing else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

COMPLEMENT = str.maketrans("ACGT", "TGCA")
Row = tuple[int, int, int, int]
"""Record, 0-based start in the record, 0-based start in the query, length."""


def normalised(sequence: str) -> str:
    letters = sequence.upper().replace("U", "T")
    return "".join(base if base in "ACGT" else "N" for base in letters)


def reverse_complement(sequence: str) -> str:
    return normalised(sequence)[::-1].translate(COMPLEMENT)


def brute_force_mems(records: list[str], query: str, minimum_length: int) -> list[Row]:
    """Return all MEMs of one strand, by query start, then record, then position."""
    rows: list[Row] = []
    for number, record in enumerate(map(normalised, records)):
        starts, ends = _diagonal_runs(_letters(normalised(query)), _letters(record))
        lengths = ends[:, 0] - starts[:, 0]
        long = lengths >= minimum_length
        for (place, start), length in zip(
            starts[long].tolist(), lengths[long].tolist(), strict=True
        ):
            rows.append((number, start, place, length))
    return sorted(rows, key=lambda row: (row[2], row[0], row[1]))


def _letters(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)


def _diagonal_runs(
    query: NDArray[np.uint8], record: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where maximal runs of equal bases begin and end in both, by diagonal.

    A run begins where a pair of bases is equal and the pair before both is not, and ends where
    that is the other way round; no pair at the rim is equal.
    """
    equal = np.zeros((query.size + 2, record.size + 2), dtype=bool)
    equal[1:-1, 1:-1] = (query[:, None] == record) & (query != ord("N"))[:, None]
    before, here = equal[:-1, :-1], equal[1:, 1:]
    starts, ends = np.argwhere(here & ~before), np.argwhere(before & ~here)

    def by_diagonal(places: NDArray[np.int64]) -> NDArray[np.int64]:
        return places[np.lexsort((places[:, 0], places[:, 1] - places[:, 0]))]

    return by_diagonal(starts), by_diagonal(ends)


def occurrences(text: str, piece: str) -> int:
    """Return how often a piece occurs in a text, overlaps counted."""
    return sum(text.startswith(piece, place) for place in range(len(text)))


def unique_in_reference(records: list[str], query: str, rows: list[Row]) -> list[Row]:
    """Keep the rows whose bases occur once in the whole reference."""
    query = normalised(query)
    texts = [normalised(record) for record in records]
    return [
        row
        for row in rows
        if sum(occurrences(text, query[row[2] : row[2] + row[3]]) for text in texts) == 1
    ]


def unique_in_both(records: list[str], query: str, rows: list[Row]) -> list[Row]:
    """Keep the rows whose bases occur once in the reference and once in the query."""
    query = normalised(query)
    return [
        row
        for row in unique_in_reference(records, query, rows)
        if occurrences(query, query[row[2] : row[2] + row[3]]) == 1
    ]


FILTERS = {
    "maxmatch": lambda records, query, rows: rows,
    "mumreference": unique_in_reference,
    "mum": unique_in_both,
}


def mummer_text(
    records: list[str],
    queries: list[str],
    minimum_length: int,
    uniqueness: str = "maxmatch",
    strands: str = "forward",
    forward_coordinates: bool = False,
    four_columns: bool = False,
    show_query_lengths: bool = False,
    show_sequences: bool = False,
) -> str:
    """Return what MUMmer prints, in our order; records are named r0, r1, queries q0, q1.

    `strands` is ``forward``, ``reverse`` or ``both``.
    """
    named = four_columns or len(records) > 1
    width = len(f"r{len(records) - 1}")
    lines = []
    for number, query in enumerate(queries):
        for strand in ("forward", "reverse"):
            if strands not in (strand, "both"):
                continue
            header = f"> q{number}" + (" Reverse" if strand == "reverse" else "")
            lines.append(header + (f"  Len = {len(query)}" if show_query_lengths else ""))
            turned = reverse_complement(query) if strand == "reverse" else normalised(query)
            rows = brute_force_mems(records, turned, minimum_length)
            for record, start, place, length in FILTERS[uniqueness](records, turned, rows):
                flipped = forward_coordinates and strand == "reverse"
                column = len(query) - place if flipped else place + 1
                name = f"  {f'r{record}':<{width}}  " if named else ""
                lines.append(f"{name}{start + 1:8d}  {column:8d}  {length:8d}")
                if show_sequences:
                    lines.append(turned[place : place + length].lower())
    return "".join(f"{line}\n" for line in lines)
