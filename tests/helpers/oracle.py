"""Maximal exact matches by definition: slow, short, and written from nothing else."""

import numpy as np

COMPLEMENT = str.maketrans("ACGT", "TGCA")


def normalised(sequence):
    return "".join(base if base in "ACGT" else "N" for base in sequence.upper().replace("U", "T"))


def reverse_complement(sequence):
    return normalised(sequence)[::-1].translate(COMPLEMENT)


def maximal_matches(query, record, unknown, minimum_length):
    """Return all MEMs of two sequences: the starts in the query and the record, and the length."""
    equal = np.zeros((query.size + 2, record.size + 2), dtype=bool)
    equal[1:-1, 1:-1] = (query[:, None] == record) & (query != unknown)[:, None]
    # Runs of equal bases lie on diagonals, and begin where the pair before is not equal.
    before, here = equal[:-1, :-1], equal[1:, 1:]
    begins, ends = np.argwhere(here & ~before), np.argwhere(before & ~here)
    begins, ends = (
        places[np.lexsort((places[:, 0], places[:, 1] - places[:, 0]))] for places in (begins, ends)
    )
    rows = np.column_stack((begins, ends[:, 0] - begins[:, 0]))
    return sorted(map(tuple, rows[rows[:, 2] >= minimum_length].tolist()))


def brute_force_mems(records, query, minimum_length):
    """Return all MEMs of one strand, by query start, then record, then position."""
    texts = [np.frombuffer(text.encode(), np.uint8) for text in map(normalised, [query, *records])]
    rows = [
        (number, start, place, length)
        for number, record in enumerate(texts[1:])
        for place, start, length in maximal_matches(texts[0], record, ord("N"), minimum_length)
    ]
    return sorted(rows, key=lambda row: (row[2], row[0], row[1]))


def occurrences(text, piece):
    """Return how often a piece occurs in a text, overlaps counted."""
    return sum(text.startswith(piece, place) for place in range(len(text)))


def unique_in_reference(records, query, rows):
    """Keep the rows whose bases occur once in the whole reference."""
    query = normalised(query)
    texts = [normalised(record) for record in records]
    return [
        row
        for row in rows
        if sum(occurrences(text, query[row[2] : row[2] + row[3]]) for text in texts) == 1
    ]


def unique_in_both(records, query, rows):
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
    records,
    queries,
    minimum_length,
    uniqueness="maxmatch",
    strands="forward",
    forward_coordinates=False,
    four_columns=False,
    show_query_lengths=False,
    show_sequences=False,
):
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
