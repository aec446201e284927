"""The paths of alignments, and the counts and sums of what became of the reads."""

import json
import random
import re
from functools import reduce
from operator import add

import numpy as np
import pytest
from helpers.alignment_tools import samtools
from helpers.in_memory import reference_of
from helpers.made_alignments import random_alignments, random_reference
from helpers.mapped_reads import Mapped, block_of, random_bases
from helpers.uncompiled import Uncompiled
from helpers.written_alignments import rows_of, write_bam

from mummergpu.mapping.alignments.paths import (
    add_operations,
    differences_of_score,
    measure_path,
)
from mummergpu.mapping.alignments.summary import MAX_INSERT, empty_summary, summary_of
from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import aligned_part
from mummergpu.sequence.codes import encode
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.operations import append_operation

plain = Uncompiled().function


def made_case(seed):
    made = random.Random(seed)
    reference = random_reference(made)
    case = random_alignments(made, reference, 300)
    for row in range(case.columns.row_count):
        flag = int(case.columns.flags[row])
        if flag & 0x90D == 1 and made.random() < 0.8:
            case.columns.flags[row] |= 2
    return reference, case


def test_counts_are_those_of_samtools(tmp_path):
    reference, case = made_case(3)
    write_bam(tmp_path / "x.bam", reference, [case])
    text = samtools("flagstat", tmp_path / "x.bam").decode()

    def count(label):
        return int(re.search(rf"^(\d+) \+ 0 {label}", text, re.MULTILINE)[1])

    found = summary_of(case.columns).as_dict()
    assert found["reads"] == count("primary$") and found["mapped"] == count("primary mapped")
    assert found["paired"] == count("paired in sequencing")
    assert found["properly_paired"] == count("properly paired") > 0
    assert found["mapped_with_mate"] == count("with itself and mate mapped") > 0
    assert found["singletons"] == count("singletons") > 0
    assert found["mate_on_other_record"] == count(r"with mate mapped to a different chr$") > 0
    assert found["secondary"] == count("secondary") > 0
    assert found["supplementary"] == count("supplementary") > 0


def test_distributions_are_those_of_the_rows(tmp_path):
    reference, case = made_case(4)
    write_bam(tmp_path / "x.bam", reference, [case])
    rows = [row for row in rows_of(tmp_path / "x.bam") if not row.flag & 0x900]
    found = summary_of(case.columns)
    qualities = [row.mapping_quality for row in rows if not row.is_unmapped]
    assert found.qualities.tolist() == [qualities.count(one) for one in range(256)]
    sizes = sorted(abs(row.template_length) for row in rows if row.flag & 0x46 == 0x42)
    counted = [min(size, MAX_INSERT) for size in sizes]
    assert sum(found.inserts) == len(sizes) > 10
    assert found.inserts.nonzero()[0].tolist() == sorted(set(counted))
    assert found.insert_quantile(0.5) == counted[(len(counted) + 1) // 2 - 1]
    text = found.as_dict()["insert_size"]
    short = [size for size in sizes if size < MAX_INSERT]
    assert text["mean"] == sum(short) / len(short)
    assert text["longer"] == len(sizes) - len(short) > 0


def test_blocks_add_up():
    _, case = made_case(5)
    names = [
        case.reads.names[begin:end].tobytes()
        for begin, end in zip(case.reads.name_offsets, case.reads.name_offsets[1:], strict=False)
    ]
    borders = [n for n in range(1, len(names)) if names[n] != names[n - 1]][::25]
    parts = case.parts([0, *borders, len(names)])
    total = reduce(add, (summary_of(part.columns) for part in parts), empty_summary())
    assert total.as_dict() == summary_of(case.columns).as_dict()
    assert json.loads(json.dumps(total.as_dict())) == total.as_dict()


def test_no_reads_have_no_insert_size():
    found = empty_summary().as_dict()
    assert found["reads"] == 0 and found["insert_size"]["mean"] is None
    assert found["insert_size"]["quartiles"] == [None, None, None]


def test_a_quantile_is_the_size_that_enough_pairs_do_not_exceed():
    summary = empty_summary()
    for size, count in ((100, 1), (200, 2), (MAX_INSERT, 1)):
        summary.inserts[size] = count
    # Of four pairs, one is not larger than 100; a little more than a quarter are two.
    found = [summary.insert_quantile(share) for share in (0.25, 0.26, 0.5, 0.75, 0.76)]
    assert found == [100, 200, 200, 200, MAX_INSERT]


MATCH, INSERTION, DELETION, CLIP = 0, 1, 2, 4


def packed(operations):
    return np.array([length << 4 | kind for kind, length in operations], dtype=np.uint32)


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([(MATCH, 5), (MATCH, 3), (INSERTION, 2)], [(MATCH, 8), (INSERTION, 2)]),
        ([(CLIP, 0), (MATCH, 5), (CLIP, 0)], [(MATCH, 5)]),
        ([(MATCH, 1), (DELETION, 0), (MATCH, 1)], [(MATCH, 2)]),
        (
            [(INSERTION, 1), (DELETION, 1), (INSERTION, 1)],
            [(INSERTION, 1), (DELETION, 1), (INSERTION, 1)],
        ),
    ],
)
def test_operations_of_one_kind_are_joined(operations, expected):
    # What is before the CIGAR is of another read, and must not grow.
    cigars = packed([(MATCH, 9)] + [(MATCH, 0)] * 4)
    end = 1
    for kind, length in operations:
        end = append_operation(cigars, 1, end, kind, length)
    assert cigars[:end].tolist() == packed([(MATCH, 9), *expected]).tolist()
    for is_reversed in (False, True):
        flank = packed(operations[::-1] if is_reversed else operations)
        end = add_operations(cigars, 1, 1, flank, len(operations), is_reversed)
        assert cigars[:end].tolist() == packed([(MATCH, 9), *expected]).tolist()


def test_the_score_of_a_candidate_says_how_many_bases_differ():
    random = np.random.default_rng(5)
    reference = random_bases(random, 300, b"ACGTN" + b"ACGT" * 20)
    reads = []
    for length in (40, 70, 100):
        for at in range(-3, 230, 9):
            read = bytearray(random_bases(random, length) + reference)[length + at :][:length]
            for place in random.integers(0, len(read), random.integers(0, 6)):
                read[place] = random.choice(list(b"ACGT"))
            reads.append(bytes(read).replace(b"N", b"A"))
    for costs in (Costs(), Costs(match=3, mismatch=1, end_bonus=0), Costs(mismatch=0)):
        mapped = Mapped(block_of(reads), reference_of([reference]), 12, costs=costs)
        table, differing = mapped.candidates(), set()
        for number, first in enumerate(table.offsets[:-1].tolist()):
            for row in range(first, first + int(table.counts[number])):
                read = mapped.read(number, int(table.numbers[row, column.STRAND]))
                begin, end = plain(aligned_part)(table, row)
                at = int(table.diagonals[row])
                there = mapped.reference.codes[at + begin : at + end]
                differ = int(np.count_nonzero(np.array(read[begin:end]) != there))
                found = plain(differences_of_score)(table, row, len(read), costs)
                assert found == differ
                differing.add(differ)
        assert len(differing) > 4


@pytest.mark.parametrize(
    ("read", "reference", "operations", "edits"),
    [
        (b"ACGTACGT", b"ACGTACGT", [(MATCH, 8)], 0),
        (b"ACGTACGT", b"ACCTACGA", [(MATCH, 8)], 2),
        # An unknown base is a difference, whatever it lies on.
        (b"ACNTNCGT", b"ACGTNCGT", [(MATCH, 8)], 2),
        (b"ACGTTTACGT", b"ACGTACGA", [(MATCH, 4), (INSERTION, 2), (MATCH, 4)], 3),
        (b"ACGTACGT", b"ACGTTTTACGT", [(MATCH, 4), (DELETION, 3), (MATCH, 4)], 3),
    ],
)
def test_edits_are_counted_along_the_path(read, reference, operations, edits):
    codes, others = encode(b"T" + read), encode(b"GG" + reference)
    found = measure_path(codes, 1, others, 2, packed(operations), 0, len(operations))
    assert found == (2 + len(reference), edits)
