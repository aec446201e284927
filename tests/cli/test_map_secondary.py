"""Secondary alignments of the command ``map``: the other places of reads of a repeat."""

from collections import defaultdict

import numpy as np
import pytest
from helpers.loops import each
from helpers.repeat_reads import (
    PAIRS,
    REVERSE,
    edits_and_score,
    is_secondary,
    read_of,
    reads,
    records,
    rows_of,
    span_of,
    tags_of,
    write_repeats,
)
from helpers.sequences import reverse_complement
from numpy.lib.stride_tricks import sliding_window_view

LEAST_SCORE = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("secondary")
    write_repeats(made)
    return made


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


@each("words", ["1.fq 2.fq", "1.fq 2.fq --single"])
def test_the_other_rows_stay_as_they_are(words):
    assert [row for row in rows_of(f"{words} -a") if not is_secondary(row)] == rows_of(words)


def test_every_secondary_row_tells_the_truth():
    sequences, bases_of = records(), reads()
    by_read = defaultdict(list)
    for row in rows_of("1.fq 2.fq -N all"):
        by_read[read_of(row)].append(row)
    count = 0
    for read, rows in by_read.items():
        # The primary row comes first, and then the best.
        assert [is_secondary(row) for row in rows] == sorted(is_secondary(row) for row in rows)
        secondary = [row for row in rows if is_secondary(row)]
        scores = []
        for row in secondary:
            count += 1
            tags = tags_of(row)
            bases = bases_of[read]
            bases = reverse_complement(bases) if int(row[1]) & REVERSE else bases
            found = edits_and_score(row, bases, sequences[row[2]])
            assert found == (int(tags["NM"]), int(tags["AS"])), row
            assert found[1] >= LEAST_SCORE
            assert row[4] == "0" and row[9:11] == ["*", "*"]
            assert set(tags) <= {"NM", "MD", "MC", "MQ", "AS", "XS", "RG"}
            scores.append(found[1])
        places = [(row[2], int(row[1]) & REVERSE, *span_of(row)) for row in rows if row[2] != "*"]
        for number, (record, strand, begin, end) in enumerate(places):
            for other in places[:number]:
                if other[:2] == (record, strand):
                    shared = min(end, other[3]) - max(begin, other[2])
                    assert shared <= 0.95 * min(end - begin, other[3] - other[2])
    assert count > 5 * PAIRS


def test_all_places_are_listed():
    """Those with up to four bases that differ, and no gap: all of them have a long match."""
    sequences = records()
    listed = defaultdict(list)
    for row in rows_of("1.fq 2.fq -a --single"):
        listed[row[0], row[9] if row[9] != "*" else None].append(row)
    by_name = defaultdict(list)
    for (name, _), rows in listed.items():
        by_name[name] += rows
    count = 0
    for (name, _), bases in reads().items():
        rows = by_name[name]
        for record, sequence in sequences.items():
            for strand, oriented in ((0, bases), (REVERSE, reverse_complement(bases))):
                windows = sliding_window_view(np.frombuffer(sequence.encode(), "S1"), len(bases))
                differing = (windows != np.frombuffer(oriented.encode(), "S1")).sum(axis=1)
                for begin in np.flatnonzero(differing <= 4).tolist():
                    count += 1
                    assert any(
                        row[2] == record
                        and int(row[1]) & REVERSE == strand
                        and min(span_of(row)[1], begin + len(bases)) - max(span_of(row)[0], begin)
                        > 0.95 * (len(bases) - 8)
                        for row in rows
                    ), (name, record, strand, begin)
    assert count > 3 * PAIRS


def test_a_user_may_ask_for_the_best_few():
    rows = rows_of("1.fq 2.fq -a")
    for most in (0, 1, 3):
        kept = defaultdict(int)
        expected = []
        for row in rows:
            if is_secondary(row):
                kept[read_of(row)] += 1
            if not is_secondary(row) or kept[read_of(row)] <= most:
                expected.append(row)
        assert rows_of(f"1.fq 2.fq -N {most}") == expected == rows_of(f"1.fq 2.fq -aN {most}")
