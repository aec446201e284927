"""PAF of genome alignments, against a plain formatter."""

import random
import re
from itertools import groupby

import pytest
from helpers.genome_alignments import DELETION, INSERTION, MATCH, paf_lines, random_case
from helpers.loops import each

from mummergpu.mapping.genomes.mapping_quality import MappingQualities
from mummergpu.output.genomes.sink import AlignedQueries


def plain_changes(case, row):
    """The value of cs, the slow way."""

    def kind_of(pair):
        kind, base, other = pair
        if kind != MATCH:
            return "+" if kind == INSERTION else "-"
        return ":" if base == other and base != "N" else "*"

    text = ""
    for mark, pairs in groupby(case.pairs(row), kind_of):
        found = list(pairs)
        if mark == ":":
            text += f":{len(found)}"
        elif mark == "*":
            text += "".join(f"*{base}{other}".lower() for _, base, other in found)
        else:
            text += mark + "".join(base + other for _, base, other in found).lower()
    return text


def plain_line(case, row, score, quality):
    """The line of an alignment, the slow way; none of these competes with another one."""
    pairs = list(case.pairs(row))
    length = len(case.texts[row.query])
    begin, end = row.query_start, row.query_end
    if row.strand:
        begin, end = length - end, length - begin
    errors = sum(case.counts(row)[:2])
    cigar = "".join(f"{size}{'MID'[kind]}" for kind, size in row.operations)
    return "\t".join(
        [
            *(case.names[row.query].decode(), str(length), str(begin), str(end)),
            "+-"[row.strand],
            case.reference.names[row.record].decode(),
            str(int(case.reference.record_lengths[row.record])),
            *(str(row.reference_start), str(row.reference_end)),
            *(str(len(pairs) - errors), str(len(pairs)), str(quality)),
            *(f"NM:i:{errors}", f"AS:i:{score}", "tp:A:P", f"cg:Z:{cigar}"),
            f"cs:Z:{plain_changes(case, row)}",
        ]
    )


@each("seed", range(60))
def test_lines_equal_those_of_a_plain_formatter(seed):
    case = random_case(random.Random(seed))
    qualities = MappingQualities(case.reference).of(case.columns).tolist()
    expected = [
        plain_line(case, row, score, qualities[score]) for score, row in enumerate(case.rows)
    ]
    assert paf_lines(case.reference, case.queries, with_changes=True) == expected
    without = [line[: line.index("\tcs:Z:")] for line in expected]
    assert paf_lines(case.reference, case.queries) == without


def test_the_random_alignments_have_every_kind_of_difference():
    cases = [random_case(random.Random(seed)) for seed in range(60)]
    text = "".join(plain_changes(case, row) for case in cases for row in case.rows)
    for pattern in (
        r"\*[acgt][acgt]",
        r"\*n[acgt]",
        r"\*[acgt]n",
        r"\+[acgt]{5}-",
        r"-[acgt]{5}\+",
    ):
        assert re.search(pattern, text)
    assert {row.strand for case in cases for row in case.rows} == {0, 1}
    kinds = {kind for case in cases for row in case.rows for kind, _ in row.operations}
    assert kinds == {MATCH, INSERTION, DELETION}


def test_queries_without_bases_have_no_changes():
    case = random_case(random.Random(0))
    queries = AlignedQueries.of_block(case.block, case.columns)
    with pytest.raises(ValueError, match="bases"):
        paf_lines(case.reference, queries, with_changes=True)
