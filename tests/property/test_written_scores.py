"""The scores of rows, computed again from what is written: its CIGAR, its bases and the record."""

import random
import re

import pytest
from helpers.sequences import random_bases, reverse_complement

import mummergpu
from mummergpu.mapping.genomes.options import NUCMER_COSTS
from mummergpu.viterbi.recurrence.model import Costs

LETTERS = "ACGTNRYSWKMBDHVacgtn"


def score_of(cigar, query, reference, costs):
    """The score of operations that begin with the first bases of both, but for soft clips."""
    score = at = place = 0
    for text, kind in re.findall(r"(\d+)([MIDSH])", cigar):
        length = int(text)
        if kind == "M":
            for base, other in zip(
                query[at : at + length], reference[place : place + length], strict=True
            ):
                if base not in "ACGT":
                    score -= costs.unknown
                else:
                    score += costs.match if base == other else -costs.mismatch
        elif kind == "I":
            score -= costs.insertion_open + length * costs.insertion_extend
        elif kind == "D":
            score -= costs.deletion_open + length * costs.deletion_extend
        at += length if kind in "MIS" else 0
        place += length if kind in "MD" else 0
    assert at == len(query)
    return score


def altered(chance, bases, share):
    """The bases with other letters of all kinds, and with gaps, often side by side."""
    parts = []
    at = 0
    while at < len(bases):
        if chance.random() > share:
            parts.append(bases[at])
            at += 1
            continue
        for _ in range(chance.randrange(1, 4)):
            draw = chance.random()
            if draw < 0.5:
                parts.append(chance.choice(LETTERS))
                at += 1
            elif draw < 0.75:
                parts.append(chance.choice([random_bases(chance, 1), bases[at : at + 3]]))
            else:
                at += chance.randrange(1, 5)
    return "".join(parts)


def made_reference(chance):
    """Records with short repeats and letters of all kinds, and a tandem repeat."""
    records = {}
    for name in ("one", "two"):
        unit = random_bases(chance, chance.randrange(2, 9))
        text = random_bases(chance, 700) + unit * (90 // len(unit)) + random_bases(chance, 700)
        records[name] = altered(chance, text, 0.004)
    return records


def made_queries(chance, records, length, count):
    for number in range(count):
        text = chance.choice(list(records.values()))
        at = chance.randrange(len(text) - length)
        bases = altered(chance, text[at : at + length], chance.choice([0.01, 0.03, 0.06]))
        bases = bases.replace("n", "N") if chance.random() < 0.5 else bases.upper()
        yield f"q{number}", bases if chance.random() < 0.5 else reverse_complement(bases)


@pytest.mark.parametrize("seed", range(4))
def test_reads_score_what_their_rows_do(seed):
    chance = random.Random(seed)
    records = made_reference(chance)
    reads = list(made_queries(chance, records, 150, 300))
    index = mummergpu.Index.build(list(records.items()), min_length=12)
    found = index.map(reads, backend="cpu", threads=1, max_secondary=3)
    bases = dict(reads)
    gapped = 0
    for row in found:
        if row.reference is None or row.flag & 4:
            continue
        read = bases[row.name].upper()
        read = reverse_complement(read) if row.reverse else read
        clips = re.search(r"^(?:(\d+)H)?.*?(?:(\d+)H)?$", row.cigar)
        assert clips
        read = read[int(clips[1] or 0) : len(read) - int(clips[2] or 0)]
        target = records[row.reference].upper()[row.position :]
        assert row.score == score_of(row.cigar, read, target, Costs()), row
        gapped += "I" in row.cigar or "D" in row.cigar
    assert gapped > 100


@pytest.mark.parametrize("seed", range(4))
def test_genomes_score_what_their_rows_do(seed):
    chance = random.Random(seed)
    records = made_reference(chance)
    queries = list(made_queries(chance, records, 600, 60))
    index = mummergpu.Index.build(list(records.items()), min_length=12)
    found = index.align(queries, backend="cpu", threads=1, mode="all", min_cluster=30)
    bases = dict(queries)
    for row in found:
        query = bases[row.query][row.query_start : row.query_end].upper()
        query = reverse_complement(query) if row.reverse else query
        target = records[row.reference].upper()[row.reference_start : row.reference_end]
        assert row.score == score_of(row.cigar, query, target, NUCMER_COSTS), row
    assert len(found) >= 60
