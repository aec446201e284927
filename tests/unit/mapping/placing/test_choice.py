from math import log10

import numpy as np
import pytest
from helpers.candidate_tables import scoring_of, table_of, whole
from helpers.in_memory import reference_of
from helpers.mapped_reads import Mapped, block_of, random_bases
from helpers.uncompiled import MACHINE_CODE, Uncompiled

from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import (
    ALL_FOUND,
    DEAD,
    EXACT,
    FARTHEST,
    UNGAPPED,
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
from mummergpu.mapping.placing.pairing import Placing
from mummergpu.mapping.placing.refinement import new_tops
from mummergpu.mapping.placing.rescue import new_marks
from mummergpu.viterbi.recurrence.model import Costs
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


PAIRING = PairSizes.of_sizes(SIZES, 4).pairing(True)
PENALTIES = PAIRING.penalties[PAIRING.penalty_begin :]
RESCUED = LENGTH + 2 * 5 - LENGTH // SEED * 5
"""The most that a mate scores that no match of a seed would have found."""

plain = Uncompiled().function
generally = Uncompiled(MACHINE_CODE | {"choose_only": lambda *_: False}).function


def lone(score=LENGTH + 10, **others):
    return whole(score, LENGTH, STATE=EXACT, **others)


def is_chosen_at_once(first, other, size=160, min_score=MIN_SCORE, seeds_kept=ALL_FOUND):
    """Whether mates are so sure; then all that may compete with them changes nothing."""
    at, facing = {"diagonal": 100}, {"diagonal": 100 + size - LENGTH, "STRAND": 1}
    table = table_of([at | row for row in first], [facing | row for row in other])
    table.seeds_kept[1] = seeds_kept
    scoring = scoring_of(LENGTH, LENGTH, costs=Costs())
    limits, choices = Limits(SEED, 12, min_score), choice.new_choices(2)
    if not plain(choice.choose_only)(0, Placing(scoring, PAIRING, table), limits, choices):
        return False
    names = choice.Names(np.zeros(8, dtype=np.uint8), np.array([0, 4, 8]))
    odds = Odds(likelihoods_of_scores(), quality_thresholds())
    room = choice.PlacingRoom(new_scratch(LENGTH, 8), new_tops(), new_marks(LENGTH))
    weighed = choice.new_choices(2)
    with np.errstate(over="ignore"):
        map_all = generally(choice.map_templates)
        map_all(scoring, names, limits, PAIRING, odds, room, table, weighed)
    assert [part.tolist() for part in choices] == [part.tolist() for part in weighed]
    return True


def test_only_candidates_are_chosen_at_once_if_nothing_else_comes_into_question():
    usual = [lone()]
    assert is_chosen_at_once(usual, usual)
    assert not is_chosen_at_once(usual, usual, seeds_kept=ALL_FOUND - 1)
    assert not is_chosen_at_once(usual, [lone(), lone(20, diagonal=300)])
    assert not is_chosen_at_once(usual, [])
    for change in ({"STATE": UNGAPPED}, {"STRAND": 0}, {"RECORD": 1}):
        assert not is_chosen_at_once(usual, [lone() | change])
    # Without the bonus of both ends, a mate has ten points less.
    for score in (49, 50, 51):
        assert is_chosen_at_once(usual, [lone(score)], min_score=40) == (score >= 50)
    # Larger templates have larger penalties, the largest none: 160 is the mean.
    sizes = range(160, PAIRING.last_size + 3)
    sure = [is_chosen_at_once(usual, usual, size) for size in sizes]
    assert 1 < sure.index(False) < len(sizes) - 3 and not any(sure[sure.index(False) :])
    penalties = [int(PENALTIES[size - PAIRING.first_size]) for size in sizes[:-2]]
    assert sure[:-2] == [penalty < 4 * UNIT for penalty in penalties]
    sure = [is_chosen_at_once([lone(RESCUED + 1)], usual, size) for size in sizes[:-2]]
    assert sure == [penalty <= UNIT for penalty in penalties] and 1 < sure.index(False)


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
