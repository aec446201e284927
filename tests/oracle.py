"""Maximal exact matches by definition: slow, short, and written from nothing else."""

from __future__ import annotations

COMPLEMENT = str.maketrans("ACGT", "TGCA")
Row = tuple[int, int, int, int]
"""Record, 0-based start in the record, 0-based start in the query, length."""


def normalised(sequence: str) -> str:
    return "".join(base if base in "ACGT" else "N" for base in sequence.upper())


def reverse_complement(sequence: str) -> str:
    return normalised(sequence)[::-1].translate(COMPLEMENT)


def brute_force_mems(records: list[str], query: str, minimum_length: int) -> list[Row]:
    """Return all MEMs of one strand, by query start, then record, then position."""
    query = normalised(query)
    rows = []
    for number, record in enumerate(map(normalised, records)):
        # Along each diagonal, maximal runs of equal letters that are bases.
        for shift in range(-len(query) + 1, len(record)):
            start = max(0, -shift)
            end = min(len(query), len(record) - shift)
            length = 0
            for position in range(start, end + 1):
                equal = position < end and query[position] == record[position + shift] != "N"
                if equal:
                    length += 1
                    continue
                if length >= minimum_length:
                    first = position - length
                    rows.append((number, first + shift, first, length))
                length = 0
    return sorted(rows, key=lambda row: (row[2], row[0], row[1]))


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
