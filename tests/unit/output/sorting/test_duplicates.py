"""Duplicates: those of a plain search, and those of samtools."""

import random
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import takewhile

import numpy as np
from helpers.alignment_tools import GROUP, bwa_alignments, picard_marked, samtools
from helpers.alignments import COMPLEMENT, aligned_reads
from helpers.in_memory import named_records
from helpers.made_alignments import random_alignments
from helpers.written_alignments import rows_of, write_bam, write_sorted
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.output.options import SortOptions
from mummergpu.output.sorting.duplicates import DuplicateFinder, Templates
from mummergpu.output.sorting.row_tables import axis_of


def end_of(row):
    """Where a read begins in sequencing, clipped bases included, and whether it is reverse."""
    cigar = row.cigartuples[::-1] if row.is_reverse else row.cigartuples
    clipped = sum(size for _, size in takewhile(lambda part: part[0] in (4, 5), cigar))
    if row.is_reverse:
        return row.reference_id, row.reference_end - 1 + clipped, True
    return row.reference_id, row.reference_start - clipped, False


def plain_duplicates(rows):
    """Return the numbers of the rows to flag, in the order of the reads."""
    templates = defaultdict(list)
    for number, row in enumerate(rows):
        if not row.flag & 0x904:
            templates[row.query_name].append(number)
    pairs = defaultdict(list)
    fragments = defaultdict(list)
    ends = set()
    for numbers in templates.values():
        own = sorted(end_of(rows[number]) for number in numbers)
        if len(own) == 2:
            pairs[tuple(own)].append(numbers)
            ends.update(own)
        else:
            fragments[own[0]].append(numbers)

    def score(numbers):
        qualities = [rows[number].query_qualities or [] for number in numbers]
        return sum(one for own in qualities for one in own if one >= 15)

    found = set()
    for group in pairs.values():
        best = max(group, key=score)
        found.update(number for numbers in group if numbers is not best for number in numbers)
    for end, group in fragments.items():
        best = max(group, key=score)
        for numbers in group:
            if end in ends or numbers is not best:
                found.update(numbers)
    return found


@settings(max_examples=50)
@given(st.integers(), st.integers(1, 60), st.booleans())
def test_duplicates_are_those_of_a_plain_search(tmp_path, seed, templates, by_coordinate):
    made = random.Random(seed)
    reference = named_records([(b"r", b"ACGT" * 10), (b"s", b"CATG" * 10)])
    case = random_alignments(made, reference, templates, 6)
    write_bam(tmp_path / "plain.bam", reference, [case])
    options = SortOptions(by_coordinate, True, made.choice([1, 1 << 30]), str(tmp_path))
    write_sorted(tmp_path / "x.bam", reference, [case], options)
    plain = rows_of(tmp_path / "plain.bam")
    for number in plain_duplicates(plain):
        plain[number].flag |= 1024
    found = rows_of(tmp_path / "x.bam")
    assert sorted(row.to_string() for row in found) == sorted(row.to_string() for row in plain)


@cache
def many_templates():
    """Templates at few places, so that most of them have a duplicate."""
    made = random.Random(8)
    reference = named_records([(b"r", b"ACGT" * 40), (b"s", b"CATG" * 10)])
    return reference, random_alignments(made, reference, 1500, 30)


def test_threads_change_nothing(tmp_path):
    reference, case = many_templates()
    write_bam(tmp_path / "plain.bam", reference, [case])
    plain = rows_of(tmp_path / "plain.bam")
    expected = plain_duplicates(plain)
    assert len(expected) > 500
    for by_coordinate in (False, True):
        files = []
        for threads in (1, 2, 7):
            options = SortOptions(by_coordinate, True, threads=threads)
            write_sorted(tmp_path / "x.bam", reference, [case], options)
            files.append((tmp_path / "x.bam").read_bytes())
        assert files[0] == files[1] == files[2]
        if not by_coordinate:
            rows = rows_of(tmp_path / "x.bam")
            assert {number for number, row in enumerate(rows) if row.flag & 1024} == expected


def part_of(templates, begin, end):
    return Templates._make(array[begin:end] for array in templates)


def test_blocks_and_the_order_of_the_work_change_nothing():
    reference, case = many_templates()
    found = []

    def backwards(function, values):
        return [function(value) for value in reversed(values)][::-1]

    with ThreadPoolExecutor(3) as pool:
        for size in (1, 7, 300, 10_000):
            for map_function in (map, pool.map, backwards):
                finder = DuplicateFinder(axis_of(reference))
                templates = finder.templates_of(case.reads, case.columns)
                for begin in range(0, templates[0].size, size):
                    # The numbers of the rows are those of all of them already.
                    finder.add(part_of(templates, begin, begin + size), 0)
                marks = np.zeros(case.columns.row_count, dtype=np.uint8)
                finder.mark(marks, map_function)
                found.append(marks.tobytes())
    assert len(set(found)) == 1 and found[0].count(1) > 500


def deep_reads(made, record):
    """Return two files of reads from few places, in every orientation, some with a clipped end."""
    files = [b"", b""]
    for number in range(12_000):
        place = made.randrange(2500)
        reads = [record[place : place + 60], record[place + 90 : place + made.randint(150, 153)]]
        if made.random() < 0.3:
            reads[0] = reads[0].translate(COMPLEMENT)[::-1]
        if made.random() < 0.7:
            reads[1] = reads[1].translate(COMPLEMENT)[::-1]
        if made.random() < 0.05:
            reads[1] = bytes(made.choices(b"ACGT", k=60))
        if made.random() < 0.1:
            reads[0] = bytes(made.choices(b"ACGT", k=12)) + reads[0][12:]
        made.shuffle(reads)
        for file, read in enumerate(reads):
            quality = bytes(33 + made.randint(2, 40) for _ in read)
            files[file] += b"@q%d\n%b\n+\n%b\n" % (number, read, quality)
    return files


def test_pairs_of_every_orientation(tmp_path):
    """Picard, and samtools where it measures from the start of each read, find the same."""
    made = random.Random(3)
    record = bytes(made.choices(b"ACGT", k=3000))
    (tmp_path / "r.fa").write_bytes(b">r\n" + record + b"\n")
    for number, text in enumerate(deep_reads(made, record)):
        (tmp_path / f"{number}.fq").write_bytes(text)
    reads = tmp_path / "0.fq", tmp_path / "1.fq"
    (tmp_path / "in.sam").write_bytes(bwa_alignments(tmp_path / "r.fa", *reads))
    case = aligned_reads(tmp_path / "in.sam")
    reference = named_records([(b"r", record)])
    write_bam(tmp_path / "plain.bam", reference, [case], GROUP)
    write_sorted(tmp_path / "x.bam", reference, [case], SortOptions(True, True), GROUP)
    samtools("fixmate", "-m", tmp_path / "plain.bam", tmp_path / "fixed.bam")
    samtools("sort", "-o", tmp_path / "sorted.bam", tmp_path / "fixed.bam")
    samtools("markdup", "-m", "s", tmp_path / "sorted.bam", tmp_path / "marked.bam")
    found = marked_in(tmp_path / "x.bam")
    assert len(found) > 1000
    for path_of in (
        lambda: tmp_path / "marked.bam",
        lambda: picard_marked(tmp_path / "sorted.bam"),
    ):
        expected = marked_in(path_of())
        # Of templates that are equally good, another one is kept.
        assert len(found) == len(expected) and len(found - expected) <= len(found) // 50


def marked_in(path):
    return {(row.query_name, row.flag & 0xC0) for row in rows_of(path) if row.flag & 1024}
