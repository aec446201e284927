from math import log10

import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.mapped_reads import Mapped, block_of, random_bases
from helpers.uncompiled import MACHINE_CODE, Uncompiled

from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import (
    DEAD,
    FARTHEST,
    UNIT,
    likelihoods_of_scores,
    quality_thresholds,
)
from mummergpu.mapping.options import InsertSizes, Limits
from mummergpu.mapping.placing import choice
from mummergpu.mapping.placing.insert_size import PairSizes
from mummergpu.mapping.placing.mapping_quality import (
    DOUBTFUL_LENGTH,
    MAX_DOUBTED_ERROR,
    MAX_ERROR,
    MAX_PAIRED_DOUBT,
    REPEAT_BASES,
    REPEAT_COPIES,
    UNSUPPORTED_DOUBT,
    Odds,
)
from mummergpu.mapping.placing.refinement import new_tops
from mummergpu.mapping.placing.rescue import new_marks
from mummergpu.viterbi.tiles.band import new_scratch

SEED = 14
LENGTH = 50
UNPAIRED = 17
MIN_SCORE = 30
SIZES = InsertSizes(160.0, 12.0, 110, 215)


def kin(worse):
    """How many copies of a family placements are that are so many units worse than the best."""
    return sum(
        2 ** (-(max(0, score_fixed) // 4) / 32) for score_fixed in worse if score_fixed <= FARTHEST
    )


class Enumeration:
    """All placements of one template from a table of candidates, in plain Python."""

    def __init__(self, table, mates, sizes):
        self.table, self.sizes, self.mates = table, sizes, mates
        self.numbers = table.numbers.astype(int)
        self.alive = [
            [row for row in self._rows(mate) if self.numbers[row, column.STATE] != DEAD]
            for mate in range(mates)
        ]
        least = min(MIN_SCORE, choice.MIN_SCORE_OF_MATE)
        self.eligible = [
            [row for row in rows if self.reported(row) >= least] for rows in self.alive
        ]

    def _rows(self, mate):
        first = int(self.table.offsets[mate])
        return range(first, first + int(self.table.counts[mate]))

    def reported(self, row):
        numbers = self.numbers[row]
        behind = (
            numbers[column.SEED_BEGIN]
            + numbers[column.SEED_BASES]
            + numbers[column.RIGHT_QUERY_BASES]
        )
        ends = int(numbers[column.SEED_BEGIN] == numbers[column.LEFT_QUERY_BASES]) + int(
            behind == LENGTH
        )
        return int(numbers[column.SCORE]) - 5 * ends

    def score_fixed(self, row):
        return int(self.numbers[row, column.SCORE] * UNIT + self.numbers[row, column.CREDIT])

    def proper_units(self, row, other):
        """The joint score of a proper pair, if the two form one."""
        one, two = self.numbers[row], self.numbers[other]
        if one[column.STRAND] == two[column.STRAND] or one[column.RECORD] != two[column.RECORD]:
            return None
        forward, reverse = (row, other) if one[column.STRAND] == 0 else (other, row)
        begin = self.table.diagonals[forward] + self.numbers[forward, column.LEFT_SHIFT]
        end = self.table.diagonals[reverse] + self.numbers[reverse, column.RIGHT_SHIFT] + LENGTH
        pairing = self.sizes.pairing(True)
        place = int(end - begin) - pairing.first_size
        if not 0 <= place <= pairing.last_size - pairing.first_size:
            return None
        return (
            self.score_fixed(row)
            + self.score_fixed(other)
            - int(pairing.penalties[pairing.penalty_begin + place])
        )

    def check(self, choices):
        bests = [max(map(self.score_fixed, rows), default=None) for rows in self.eligible]
        if None in bests or self.mates == 1:
            for mate, best in enumerate(bests):
                self._check_single(mate, best, choices)
            return
        unpaired = sum(bests) - UNPAIRED * UNIT
        proper = {
            (row, other): score_fixed
            for row in self.alive[0]
            for other in self.alive[1]
            if (score_fixed := self.proper_units(row, other)) is not None
        }
        allowed = [
            score_fixed
            for (row, other), score_fixed in proper.items()
            if row in self.eligible[0] and other in self.eligible[1]
        ]
        pair_score = max([unpaired, *allowed])
        is_proper = pair_score in allowed
        if not is_proper and min(map(self.reported, choices.candidates.tolist())) < MIN_SCORE:
            return
        chosen = tuple(choices.candidates.tolist())
        assert (proper.get(chosen) == pair_score) == is_proper
        if is_proper:
            assert proper[chosen] == pair_score
        else:
            assert [self.score_fixed(row) for row in chosen] == bests
        weights = {}
        for row in self.alive[0]:
            for other in self.alive[1]:
                score_fixed = self.score_fixed(row) + self.score_fixed(other) - UNPAIRED * UNIT
                weights[row, other] = 2 ** ((score_fixed - pair_score) / 32)
                if (row, other) in proper:
                    weights[row, other] += min(1, 2 ** ((proper[row, other] - pair_score) / 32))
        total = sum(weights.values())
        for mate in range(2):
            others = sum(w for rows, w in weights.items() if rows[mate] != chosen[mate])
            if is_proper:
                worse = [pair_score - u for rows, u in proper.items() if rows[mate] != chosen[mate]]
            else:
                rest = [row for row in self.alive[mate] if row != chosen[mate]]
                worse = [bests[mate] - self.score_fixed(row) for row in rest]
            self._check_quality(mate, others / total, is_proper, kin(worse), choices)

    def _check_single(self, mate, best, choices):
        chosen = int(choices.candidates[mate])
        if chosen < 0:
            top = [row for row in self.eligible[mate] if self.score_fixed(row) == best]
            assert not top or min(map(self.reported, top)) < MIN_SCORE
            assert choices.qualities[mate] == 0
            return
        assert self.score_fixed(chosen) == best
        worse = [best - self.score_fixed(row) for row in self.alive[mate] if row != chosen]
        others = sum(min(1, 2 ** (-score_fixed / 32)) for score_fixed in worse)
        self._check_quality(mate, others / (1 + others), False, kin(worse), choices)

    def _check_quality(self, mate, error, is_proper, copies, choices):
        chosen, quality = choices.candidates[mate], choices.qualities[mate]
        if is_proper:
            lacking = (copies / REPEAT_COPIES) ** 2
            doubted = error * min(MAX_PAIRED_DOUBT, 1 + (DOUBTFUL_LENGTH / LENGTH) ** 2) + lacking
        else:
            lacking = (copies * LENGTH / REPEAT_BASES) ** 2
            doubted = error * UNSUPPORTED_DOUBT + lacking
        if error + lacking > MAX_ERROR or doubted > MAX_DOUBTED_ERROR:
            assert quality == 0
        else:
            expected = 60.0 if doubted < 1e-6 else max(1.0, -10 * log10(doubted))
            assert expected - 1.001 <= quality <= expected + 0.001
        rest = [self.reported(row) for row in self.alive[mate] if row != chosen]
        assert choices.second_scores[mate] == max([0, *rest])


def chosen(mapped, sizes):
    table = mapped.candidates()
    choices = choice.new_choices(mapped.block.query_count)
    scratch = new_scratch(LENGTH, mapped.costs.max_gap)
    choice.map_templates(
        mapped.scoring,
        choice.Names(mapped.block.names, mapped.block.name_offsets),
        Limits(SEED, 1000, MIN_SCORE),
        sizes.pairing(mapped.block.paired),
        Odds(likelihoods_of_scores(), quality_thresholds()),
        choice.PlacingRoom(scratch, new_tops(), new_marks(LENGTH)),
        table,
        choices,
    )
    return table, choices


@pytest.mark.parametrize("seed", range(25))
def test_the_best_placement_of_all_is_chosen(seed):
    random = np.random.default_rng(seed)
    unit = random_bases(random, 250)
    records = []
    for _ in range(2):
        copies = [bytearray(unit) for _ in range(2)]
        for copy in copies:
            for place in random.integers(0, len(copy), random.integers(0, 8)):
                copy[place] = random.choice(list(b"ACGT"))
        records.append(random_bases(random, 60).join(map(bytes, copies)))
    at, size = int(random.integers(0, 30)), int(random.integers(110, 215))
    template = unit[at : at + size]
    complement = template[::-1].translate(bytes.maketrans(b"ACGT", b"TGCA"))
    reads = [bytearray(template[:LENGTH]), bytearray(complement[:LENGTH])]
    for read in reads:
        for place in random.integers(0, LENGTH, random.integers(0, 5)):
            read[place] = random.choice(list(b"ACGT"))
    if seed % 5 == 0:
        reads[1] = bytearray(random_bases(random, LENGTH))
    if seed % 5 == 1:
        # Of the same strand: no pair of placements is proper.
        reads[1] = bytearray(template[-LENGTH:])
    reference = reference_of(records)
    block = block_of([bytes(read) for read in reads], paired=True)
    sizes = PairSizes.of_sizes(SIZES, UNPAIRED)
    table, choices = chosen(Mapped(block, reference, SEED), sizes)
    Enumeration(table, 2, sizes).check(choices)
    single = block_of([bytes(reads[0])])
    no_sizes = PairSizes.of_sizes(None, UNPAIRED)
    table, choices = chosen(Mapped(single, reference, SEED), no_sizes)
    Enumeration(table, 1, no_sizes).check(choices)


def plain_choices(mapped, sizes, map_templates):
    """What plain Python chooses: places by diagonal and strand, qualities and second scores."""
    table = mapped.candidates()
    choices = choice.new_choices(mapped.block.query_count)
    with np.errstate(over="ignore"):
        map_templates(
            mapped.scoring,
            choice.Names(mapped.block.names, mapped.block.name_offsets),
            Limits(SEED, 12, MIN_SCORE),
            sizes.pairing(mapped.block.paired),
            Odds(likelihoods_of_scores(), quality_thresholds()),
            choice.PlacingRoom(new_scratch(LENGTH, 8), new_tops(), new_marks(LENGTH)),
            table,
            choices,
        )
    rows = choices.candidates.tolist()
    places = [row if row < 0 else (table.diagonals[row], table.numbers[row, 0]) for row in rows]
    return places, choices.qualities.tolist(), choices.second_scores.tolist()


def pair_near_the_borders(random, case, records):
    """Mates with few differences; some on one strand, some on two records."""
    text, other = records[case % 2], records[1 - case % 2]
    at, size = int(random.integers(0, 100)), int(random.integers(105, 220))
    complement = bytes.maketrans(b"ACGT", b"TGCA")
    reads = [text[at:][:LENGTH], text[: at + size][-LENGTH:][::-1].translate(complement)]
    if case % 9 < 2:
        reads[1] = [text[at + size :], other[at:]][case % 9][:LENGTH]
    changed = [bytearray(read) for read in reads]
    for read in changed:
        for place in random.choice(30, random.integers(0, 4), replace=False):
            read[place] = read[place].to_bytes().translate(complement)[0]
    return list(map(bytes, changed))


@pytest.mark.parametrize("unpaired", [4, 9, 17])
def test_only_candidates_are_chosen_as_if_all_were_weighed(unpaired):
    random = np.random.default_rng(unpaired)
    records = [random_bases(random, 400), random_bases(random, 400)]
    sizes, used = PairSizes.of_sizes(SIZES, unpaired), []
    only = Uncompiled().function(choice.choose_only)
    # A gap takes machine code, and is found in both ways.
    instead = MACHINE_CODE | {"refine": lambda *_: False}
    ways = [
        Uncompiled(instead | {"choose_only": way}).function(choice.map_templates)
        for way in (lambda *given: used.append(only(*given)) or used[-1], lambda *_: False)
    ]
    for case in range(90):
        reads = pair_near_the_borders(random, case, records)
        for block in (block_of(reads, paired=True), block_of(reads)):
            mapped = Mapped(block, reference_of(records), SEED)
            one, other = (plain_choices(mapped, sizes, way) for way in ways)
            assert one == other
    assert 0.1 < np.mean(used) < 0.9


@pytest.mark.parametrize(
    ("name", "expected"),
    [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)],
)
def test_names_are_hashed_by_fnv(name, expected):
    letters = np.frombuffer(b"before" + name + b"after", dtype=np.uint8).copy()
    names = choice.Names(letters, np.array([6, 6 + len(name)], dtype=np.int64))
    assert int(choice.hash_of_name(names, 0)) == expected


def test_each_of_a_few_equals_is_chosen_about_as_often():
    places = [(17, 0), (17, 1), (90_000_000_000, 0), (-4, 1)]
    chosen = [0] * len(places)
    for name in range(400):
        ranks = [int(choice.mix(np.uint64(name * 0x9E3779B1), *place)) for place in places]
        assert len(set(ranks)) == len(places)
        chosen[ranks.index(max(ranks))] += 1
    assert min(chosen) > 60
