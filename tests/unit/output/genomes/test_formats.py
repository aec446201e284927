""".delta and PAF of genome alignments, field by field."""

import random

from helpers.genome_alignments import paf_lines
from helpers.genomes import align, block_of, changed, operations_of
from helpers.in_memory import reference_of
from helpers.sequences import random_bases, reverse_complement

from mummergpu.output.genomes.delta import GenomeDelta
from mummergpu.output.genomes.sink import AlignedQueries


def made():
    some = random.Random(2)
    reference = [random_bases(some, 3000), random_bases(some, 4000)]
    queries = [
        changed(reference[1], some, 0.03, 0.01),
        random_bases(some, 200),
        reverse_complement(changed(reference[0], some, 0.02, 0.01)),
    ]
    found = align(reference, queries)
    assert found.count == 2
    return reference, queries, AlignedQueries.of_block(block_of(queries), found)


def test_a_delta_has_the_places_of_all_gaps():
    reference, queries, aligned = made()
    made_delta = GenomeDelta(reference_of(reference), "q.fa")
    assert made_delta.head().split(b"\n")[1:] == [b"NUCMER", b""]
    lines = b"".join(made_delta.format_block(aligned, aligned.alignments)).decode().splitlines()
    found = aligned.alignments
    for row in range(found.count):
        query, record = found.queries[row], found.records[row]
        sizes = len(reference[record]), len(queries[query])
        assert lines.pop(0) == f">r{record} q{query} {sizes[0]} {sizes[1]}"
        first, last = int(found.query_starts[row]) + 1, int(found.query_ends[row])
        if found.strands[row]:
            first, last = sizes[1] - first + 1, sizes[1] - last + 1
        errors = int(found.mismatches[row] + found.gap_bases[row])
        places = f"{found.reference_starts[row] + 1} {found.reference_ends[row]} {first} {last}"
        assert lines.pop(0) == f"{places} {errors} {errors} 0"
        told = []
        while (line := lines.pop(0)) != "0":
            told.append(int(line))
        columns = [kind for length, kind in operations_of(found, row) for _ in range(length)]
        expected, at = [], 0
        for number, kind in enumerate(columns, 1):
            if kind:
                expected.append((number - at) * (1 if kind == 2 else -1))
                at = number
        assert told == expected
        assert len(told) == found.gap_bases[row] > 0
    assert lines == []


def test_paf_has_a_line_for_each_alignment():
    reference, queries, aligned = made()
    found = aligned.alignments
    lines = paf_lines(reference_of(reference), aligned)
    assert len(lines) == found.count
    for row, line in enumerate(lines):
        fields = line.split("\t")
        size = len(queries[found.queries[row]])
        begin, end = int(found.query_starts[row]), int(found.query_ends[row])
        if found.strands[row]:
            begin, end = size - end, size - begin
        operations = operations_of(found, row)
        columns = sum(length for length, _ in operations)
        errors = int(found.errors[row])
        assert fields[:4] == [f"q{found.queries[row]}", str(size), str(begin), str(end)]
        assert fields[4] == "+-"[found.strands[row]]
        record = found.records[row]
        assert fields[5:7] == [f"r{record}", str(len(reference[record]))]
        places = int(found.reference_starts[row]), int(found.reference_ends[row])
        assert tuple(map(int, fields[7:9])) == places
        assert fields[9:12] == [str(columns - errors), str(columns), "60"]
        cigar = "".join(f"{length}{'MID'[kind]}" for length, kind in operations)
        tags = [f"NM:i:{errors}", f"AS:i:{found.scores[row]}", f"cg:Z:{cigar}"]
        assert [tag for tag in fields[12:] if tag[:2] in ("NM", "AS", "cg")] == tags


def test_queries_without_alignments_have_no_text():
    some = random.Random(1)
    reference, queries = [random_bases(some, 500)], [random_bases(some, 500)]
    aligned = AlignedQueries.of_block(block_of(queries), align(reference, queries))
    made = GenomeDelta(reference_of(reference), "q.fa")
    assert b"".join(made.format_block(aligned, aligned.alignments)) == b""
    assert paf_lines(reference_of(reference), aligned) == []
