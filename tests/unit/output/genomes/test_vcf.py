"""VCF of genome alignments: the rows make the query of the reference, and nobody moves them."""

import random
from dataclasses import replace

import pytest
from helpers.alignment_tools import output_of
from helpers.alignments import bases_of
from helpers.genome_alignments import (
    DELETION,
    INSERTION,
    MATCH,
    GenomeCase,
    MadeAlignment,
    random_case,
)
from helpers.in_memory import named_records
from helpers.loops import each
from helpers.requirements import program_of

from mummergpu.errors import InputError
from mummergpu.output.genomes.vcf import GenomeVcf

BASES = b"ACGT"
FEW_BASES = b"AC"
"""So few that gaps have many places."""


def vcf_of(case):
    made = GenomeVcf(case.reference, ("folder/sample 1.fa.gz",))
    pieces = [made.head(), *made.format_block(case.queries, case.queries.alignments), *made.tail()]
    return b"".join(pieces).decode()


def rows_of(text):
    return [line.split("\t") for line in text.splitlines() if line[0] != "#"]


def changed(bases, rows):
    """A record in which each REF is replaced by its ALT."""
    events = []
    for _, position, _, before, after, *_ in rows:
        at = int(position) - 1
        assert bases[at : at + len(before)] == before and before != after
        if len(before) == 1 < len(after) or len(after) == 1 < len(before):
            # The base before is not part of the difference, and may have a row of its own.
            if before[0] == after[0]:
                at, before, after = at + 1, before[1:], after[1:]
            elif before[-1] == after[-1]:
                before, after = before[:-1], after[:-1]
        events.append((at, at + len(before), after))
    made, end = "", 0
    for begin, stop, after in sorted(events):
        assert begin >= end, "differences overlap"
        made += bases[end:begin] + after
        end = stop
    return made + bases[end:]


def rows_alone(case, row):
    return rows_of(vcf_of(replace(case, rows=[row])))


@each("seed, letters", [(seed, letters) for seed in range(60) for letters in (BASES, FEW_BASES)])
def test_the_rows_of_an_alignment_make_the_query_of_the_reference(seed, letters):
    case = random_case(random.Random(seed), letters)
    for row in case.rows:
        bases = bases_of(case.reference, row.record).decode()
        expected = bases[: row.reference_start] + case.aligned_text(row).decode()
        expected += bases[row.reference_end :]
        assert changed(bases, rows_alone(case, row)) == expected


@each("seed", range(60))
def test_rows_are_those_of_all_alignments_once_and_sorted(seed):
    case = random_case(random.Random(seed), FEW_BASES)
    rows = rows_of(vcf_of(case))
    keys = [(case.reference.names.index(row[0].encode()), int(row[1])) for row in rows]
    assert keys == sorted(keys)
    changes = [tuple(row[:5]) for row in rows]
    assert len(set(changes)) == len(changes)
    alone = [row for one in case.rows for row in rows_alone(case, one)]
    assert set(changes) == {tuple(row[:5]) for row in alone}
    # Of several alignments with a difference, the row tells of the first.
    firsts = {tuple(row[:5]): row[7] for row in reversed(alone)}
    assert {tuple(row[:5]): row[7] for row in rows} == firsts


@each("seed", range(40))
def test_a_filter_tells_which_places_have_several_alignments(seed):
    case = random_case(random.Random(seed))
    text = vcf_of(case)
    names = [name.decode() for name in case.names]
    extents = [(row, case.forward_range(row)) for row in case.rows]
    for name, position, _, _, _, _, told, info, *_ in rows_of(text):
        record, at = case.reference.names.index(name.encode()), int(position) - 1
        values = dict(part.split("=") for part in info.split(";"))
        query, query_at = names.index(values["QNAME"]), int(values["QSTART"]) - 1
        on_reference = sum(
            row.record == record and row.reference_start <= at < row.reference_end
            for row, _ in extents
        )
        on_query = sum(
            row.query == query and begin <= query_at < end for row, (begin, end) in extents
        )
        assert told == ("ambiguous" if max(on_reference, on_query) > 1 else "PASS")


@each("seed, letters", [(seed, letters) for seed in range(12) for letters in (b"ACGTN", FEW_BASES)])
def test_bcftools_norm_changes_nothing(seed, letters, tmp_path_factory):
    program = program_of("bcftools")
    folder = tmp_path_factory.mktemp("norm")
    case = random_case(random.Random(seed), letters)
    case.write_reference(folder / "r.fa")
    text = vcf_of(case)
    (folder / "x.vcf").write_text(text)
    found = output_of(program, "norm", "-f", folder / "r.fa", "-c", "e", folder / "x.vcf").decode()
    assert rows_of(found) == rows_of(text)


@pytest.mark.parametrize(
    ("reference", "query", "operations", "expected"),
    [
        # A gap leaves its alignment, up to the start of the record.
        (b"CACACAGT", b"CACAGT", [(MATCH, 1), (INSERTION, 2), (MATCH, 3)], "1 C CAC"),
        (b"TCACACGT", b"ACGT", [(MATCH, 1), (DELETION, 2), (MATCH, 3)], "1 TCA T"),
        # A pair that differed is equal after the gap has moved over it.
        (b"ACGTCAG", b"ACGAGTCAG", [(MATCH, 4), (INSERTION, 2), (MATCH, 3)], "2 C CGA"),
        # Two gaps without an equal base between them are one row.
        (b"AACCTT", b"AAGTT", [(MATCH, 2), (INSERTION, 1), (DELETION, 2), (MATCH, 2)], "3 CC G"),
    ],
)
def test_gaps_are_moved_and_joined(reference, query, operations, expected):
    aligned = sum(size for kind, size in operations if kind != INSERTION)
    row = MadeAlignment(0, 0, 0, 0, len(reference) - aligned, operations)
    case = GenomeCase(named_records([(b"r", reference)]), [b"q"], [query], [row])
    rows = rows_of(vcf_of(case))
    assert [" ".join((row[1], row[3], row[4])) for row in rows] == [expected]


def test_the_header_has_records_and_the_sample():
    reference = named_records([(b"one", b"ACGT"), (b"none", b""), (b"two", b"AC")])
    lines = GenomeVcf(reference, ("folder/a b.fa.gz", "c.fa")).head().decode().splitlines()
    assert lines[0] == "##fileformat=VCFv4.2"
    contigs = [line for line in lines if line.startswith("##contig")]
    assert contigs == ["##contig=<ID=one,length=4>", "##contig=<ID=two,length=2>"]
    assert lines[-1].split("\t")[8:] == ["FORMAT", "a_b"]


def test_names_that_vcf_has_no_room_for():
    reference = named_records([(b"r", b"ACGTACGT")])
    row = MadeAlignment(0, 0, 0, 0, 0, [(MATCH, 8)])
    ((*_, info, _, _),) = rows_of(
        vcf_of(GenomeCase(reference, [b"a;b=c,d%"], [b"ACGTTCGT"], [row]))
    )
    assert info == "QNAME=a%3Bb%3Dc%2Cd%25;QSTART=5;QSTRAND=+"
    with pytest.raises(InputError, match="VCF needs records of different names"):
        GenomeVcf(named_records([(b"a", b"AC"), (b"a", b"AC")]), ("q.fa",))
