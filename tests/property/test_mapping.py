"""Alignments of reads and genomes, checked in plain Python: their places, CIGARs and scores."""

import random
import re

import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.mapped_reads import Mapped, block_of
from helpers.mapped_reads import random_bases as drawn_bases
from helpers.sequences import random_bases, reverse_complement

import mummergpu
from mummergpu.mapping.alignments.columns import SamFlag
from mummergpu.mapping.block_mapper import BlockMapper
from mummergpu.mapping.genomes.options import NUCMER_COSTS
from mummergpu.mapping.options import InsertSizes, MappingOptions
from mummergpu.sequence.codes import BREAK
from mummergpu.sequence.mems import MemColumns
from mummergpu.viterbi.recurrence.model import Costs

LEAST = 16
LENGTH = 70
SIZES = InsertSizes(180.0, 15.0, 120, 240)
MATCH, INSERTION, DELETION, SOFT_CLIP, HARD_CLIP = 0, 1, 2, 4, 5


def complement(read):
    return read[::-1].translate(bytes.maketrans(b"ACGTN", b"TGCAN"))


def with_edits(random, read, most):
    """A read with up to so many edits, and the score of its alignment to where it comes from."""
    letters, score = list(read), len(read) + 10
    for place in sorted(random.integers(8, len(read) - 8, random.integers(0, most + 1)))[::-1]:
        kind = random.integers(0, 4)
        if kind < 2:
            letters[place] = random.choice(list(b"ACGT"))
            score -= 5
        elif kind == 2:
            del letters[place]
            score -= 8
        else:
            letters.insert(place, random.choice(list(b"ACGT")))
            score -= 7
    return bytes(letters), score


def repeats(random):
    """Two records in which a unit recurs, exactly or with a few other bases."""
    unit = drawn_bases(random, 150)
    records = []
    for _ in range(2):
        parts = []
        for _ in range(3):
            copy = bytearray(unit)
            for place in random.integers(0, len(copy), random.integers(0, 4)):
                copy[place] = random.choice(list(b"ACGT"))
            parts += [drawn_bases(random, 120), bytes(copy)]
        records.append(b"".join(parts) + drawn_bases(random, 100))
    return records


def pairs(random, records, count):
    """The mates of templates, and the least that the best alignment of each scores."""
    reads, scores = [], []
    for _ in range(count):
        record = records[random.integers(0, len(records))]
        size = int(random.integers(140, 220))
        at = random.integers(0, len(record) - size)
        template = record[at : at + size]
        mates = [template[:LENGTH], complement(template[-LENGTH:])]
        for mate in mates if random.random() < 0.5 else mates[::-1]:
            read, score = with_edits(random, mate, 3)
            reads.append(read)
            scores.append(score)
    return reads, scores


def matches_again(random, reference):
    """What finds shorter matches of reads, but only some: a second pass skips frequent k-mers."""

    def find(block):
        kept = {}
        for strand, mems in Mapped(block, reference, 11).mems.items():
            is_kept = random.random(mems.count) < 0.3
            offsets = np.concatenate(([0], np.cumsum(is_kept)))[mems.offsets]
            columns = mems.query_starts, mems.reference_starts, mems.lengths
            kept[strand] = MemColumns(offsets, *(column[is_kept] for column in columns))
        return kept

    return find


def mapped_columns(reads, reference, paired, first=0):
    mapped = Mapped(block_of(reads, paired, first), reference, LEAST)
    mapper = BlockMapper(reference, MappingOptions(LEAST))
    sizes = mapper.pair_sizes(SIZES if paired else None)
    return mapped, mapper.map_block(mapped.block, mapped.mems, sizes)


def check_row(mapped, columns, row):
    """Compare a row with its CIGAR; return its score with the bonus of the ends."""
    read = int(columns.reads[row])
    is_reverse = bool(columns.flags[row] & SamFlag.REVERSE)
    codes = mapped.read(read, int(is_reverse))
    record = int(columns.records[row])
    first = int(mapped.reference.record_starts[record])
    length = int(mapped.reference.record_lengths[record])
    target = mapped.reference.codes[first : first + length].tolist()
    cigar = columns.cigars[columns.cigar_offsets[row] : columns.cigar_offsets[row + 1]]
    operations = [(int(packed) & 15, int(packed) >> 4) for packed in cigar]
    place, at, score, edits = 0, int(columns.positions[row]), 0, 0
    clips = (SOFT_CLIP, HARD_CLIP)
    costs = mapped.costs
    for kind, count in operations:
        assert count > 0
        if kind in clips:
            assert place in (0, len(codes) - count)
            place += count
        elif kind == MATCH:
            assert at + count <= len(target)
            pairs = zip(codes[place : place + count], target[at : at + count], strict=True)
            for base, other in pairs:
                if base == BREAK:
                    score -= costs.unknown
                else:
                    score += costs.match if base == other else -costs.mismatch
                edits += base == BREAK or base != other
            place, at = place + count, at + count
        else:
            gap = codes if kind == INSERTION else target
            end = place if kind == INSERTION else at
            # A gap is as far to the left as it can be.
            assert gap[end - 1] != gap[end + count - 1] or codes[place - 1] != target[at - 1]
            assert kind in (INSERTION, DELETION)
            score -= 6 + count
            edits += count
            place += count * (kind == INSERTION)
            at += count * (kind == DELETION)
    assert place == len(codes)
    assert score == columns.scores[row]
    assert edits == columns.edit_distances[row]
    return score + 5 * sum(kind not in clips for kind in (operations[0][0], operations[-1][0]))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("paired", [False, True], ids=["single", "paired"])
def test_rows_say_what_their_cigars_say(seed, paired):
    random = np.random.default_rng(seed)
    records = repeats(random)
    reads, least = pairs(random, records, 20)
    # One read from nowhere, and one of two places.
    reads += [drawn_bases(random, LENGTH), records[0][20:60] + records[1][20:60]]
    least += [0, 45]
    mapped, columns = mapped_columns(reads, reference_of(records), paired)
    seen = []
    assert (columns.flags & SamFlag.UNMAPPED > 0).sum() == 1
    assert (columns.flags & SamFlag.SUPPLEMENTARY > 0).sum() == 1
    for row in range(columns.row_count):
        flags = int(columns.flags[row])
        if flags & SamFlag.UNMAPPED:
            seen.append(int(columns.reads[row]))
            assert columns.qualities[row] == 0
            assert columns.cigar_offsets[row] == columns.cigar_offsets[row + 1]
            continue
        score = check_row(mapped, columns, row)
        if not flags & SamFlag.SUPPLEMENTARY:
            read = int(columns.reads[row])
            seen.append(read)
            if not paired:
                # No read scores less than where it comes from: up to three edits leave a match.
                assert score >= least[read]
    assert seen == list(range(len(reads)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("paired", [False, True], ids=["single", "paired"])
def test_blocks_do_not_matter(seed, paired):
    random = np.random.default_rng(seed)
    records = repeats(random)
    reads, _ = pairs(random, records, 8)
    reference = reference_of(records)
    _, whole = mapped_columns(reads, reference, paired)
    step = 2 if paired else 1
    row = 0
    for at in range(0, len(reads), step):
        _, part = mapped_columns(reads[at : at + step], reference, paired, at)
        rows = slice(row, row + part.row_count)
        row += part.row_count
        assert (part.reads + at == whole.reads[rows]).all()
        for name in (
            *("flags", "records", "positions", "qualities", "template_lengths"),
            *("scores", "second_scores", "edit_distances"),
        ):
            assert (getattr(part, name) == getattr(whole, name)[rows]).all(), name
        begin, end = whole.cigar_offsets[rows.start], whole.cigar_offsets[rows.stop]
        assert (part.cigars == whole.cigars[begin:end]).all()
    assert row == whole.row_count


def test_an_exact_repeat_has_no_quality_but_a_unique_mate_gives_it_one():
    random = np.random.default_rng(9)
    unit, flanks = drawn_bases(random, 100), [drawn_bases(random, 200) for _ in range(3)]
    record = flanks[0] + unit + flanks[1] + unit + flanks[2]
    reads = [unit[:LENGTH], complement(flanks[1][30 : 30 + LENGTH])]
    reference = reference_of([record])
    _, single = mapped_columns(reads, reference, False)
    assert single.qualities[0] == 0
    assert single.qualities[1] > 30
    _, paired = mapped_columns(reads, reference, True)
    assert paired.positions.tolist() == [200, 330]
    assert (paired.flags & SamFlag.PROPER_PAIR).all()
    assert (paired.qualities > 30).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("paired", [False, True], ids=["single", "paired"])
def test_a_second_pass_and_a_mate_take_nothing_from_a_read(seed, paired):
    """Its mate has no place, or one with so many edits that the first pass does not find it."""
    random = np.random.default_rng(seed)
    records = repeats(random)
    reference, options = reference_of(records), MappingOptions(LEAST)
    reads, _ = pairs(random, records, 20)
    for mate in range(1, len(reads), 2):
        reads[mate] = with_edits(random, reads[mate], 14)[0]
        if mate % 4 == 1:
            reads[mate] = drawn_bases(random, LENGTH)
    alone, mapped = (Mapped(block_of(reads, both), reference, LEAST) for both in (False, paired))
    first = BlockMapper(reference, options)
    single, _ = first.map_once(alone.block, alone.mems, first.pair_sizes(None))
    both = BlockMapper(reference, options, matches_again(random, reference))
    sizes = first.pair_sizes(SIZES if paired else None)
    columns = both.map_block(mapped.block, mapped.mems, sizes)
    before, after = best_scores(single), best_scores(columns)
    proper = {int(read) for read in columns.reads[(columns.flags & SamFlag.PROPER_PAIR) != 0]}
    assert len(proper) < len(reads)
    for read, score in before.items():
        # A pair may prefer a place that is worse by what an unpaired one costs, and four bonuses.
        assert after[read] >= score - (17 + 20 if read in proper else 0)


def best_scores(columns):
    """The score of each read's primary alignment."""
    rows = np.flatnonzero((columns.flags & (SamFlag.SUPPLEMENTARY | SamFlag.SECONDARY)) == 0)
    return {int(columns.reads[row]): int(columns.scores[row]) for row in rows}


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
