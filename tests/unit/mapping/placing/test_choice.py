from __future__ import annotations

from math import log10

import numpy as np
import pytest
from helpers.mapped_reads import Mapped, block_of, random_bases, reference_of

from mummergpu.mapping.candidates.candidates import (
    CORE_BEGIN,
    CORE_LENGTH,
    CREDIT,
    DEAD,
    LEFT_SHIFT,
    LEFT_TAKEN,
    RECORD,
    RIGHT_SHIFT,
    RIGHT_TAKEN,
    SCORE,
    STATE,
    STRAND,
    Candidates,
)
from mummergpu.mapping.placing.choice import (
    CHOICE_NUMBERS,
    CHOSEN,
    LEAST_OF_MATE,
    QUALITY,
    SECOND,
)
from mummergpu.mapping.placing.evidence import FARTHEST, UNIT, quality_thresholds, weights_of_units
from mummergpu.mapping.placing.insert_sizes import InsertSizes
from mummergpu.mapping.placing.joint_scores import new_tops
from mummergpu.mapping.placing.mapping_quality import (
    BASES_OF_A_FAMILY,
    COPIES_OF_A_FAMILY,
    DOUBTFUL_LENGTH,
    MOST_DOUBTED_ERROR,
    MOST_ERROR,
    MOST_PAIRED_DOUBT,
    UNSUPPORTED_DOUBT,
)
from mummergpu.mapping.placing.marked_diagonals import new_marks
from mummergpu.mapping.placing.pair_sizes import PairSizes
from mummergpu.mapping.placing.templates import map_templates
from mummergpu.viterbi.tiles.scratch import new_scratch

SEED = 14
LENGTH = 50
UNPAIRED = 17
LEAST_SCORE = 30
SIZES = InsertSizes(160.0, 12.0, 110, 215)


def kin(worse: list[int]) -> float:
    """How many copies of a family placements are that are so many units worse than the best."""
    return sum(2 ** (-(max(0, units) // 4) / 32) for units in worse if units <= FARTHEST)


class Enumeration:
    """All placements of one template from a table of candidates, in plain Python."""

    def __init__(self, table: Candidates, mates: int, sizes: PairSizes) -> None:
        self.table, self.sizes, self.mates = table, sizes, mates
        self.numbers = table.numbers.astype(int)
        self.alive = [
            [row for row in self._rows(mate) if self.numbers[row, STATE] != DEAD]
            for mate in range(mates)
        ]
        least = min(LEAST_SCORE, LEAST_OF_MATE)
        self.eligible = [
            [row for row in rows if self.reported(row) >= least] for rows in self.alive
        ]

    def _rows(self, mate: int) -> range:
        first = int(self.table.offsets[mate])
        return range(first, first + int(self.table.counts[mate]))

    def reported(self, row: int) -> int:
        numbers = self.numbers[row]
        behind = numbers[CORE_BEGIN] + numbers[CORE_LENGTH] + numbers[RIGHT_TAKEN]
        ends = int(numbers[CORE_BEGIN] == numbers[LEFT_TAKEN]) + int(behind == LENGTH)
        return int(numbers[SCORE]) - 5 * ends

    def units(self, row: int) -> int:
        return int(self.numbers[row, SCORE] * UNIT + self.numbers[row, CREDIT])

    def proper_units(self, row: int, other: int) -> int | None:
        """The joint score of a proper pair, if the two form one."""
        one, two = self.numbers[row], self.numbers[other]
        if one[STRAND] == two[STRAND] or one[RECORD] != two[RECORD]:
            return None
        forward, reverse = (row, other) if one[STRAND] == 0 else (other, row)
        begin = self.table.diagonals[forward] + self.numbers[forward, LEFT_SHIFT]
        end = self.table.diagonals[reverse] + self.numbers[reverse, RIGHT_SHIFT] + LENGTH
        place = int(end - begin) - self.sizes.first
        if not 0 <= place < self.sizes.penalties.size:
            return None
        return self.units(row) + self.units(other) - int(self.sizes.penalties[place])

    def check(self, choices: np.ndarray) -> None:
        bests = [max(map(self.units, rows), default=None) for rows in self.eligible]
        if None in bests or self.mates == 1:
            for mate, best in enumerate(bests):
                self._check_single(mate, best, choices[mate])
            return
        unpaired = sum(bests) - UNPAIRED * UNIT
        proper = {
            (row, other): units
            for row in self.alive[0]
            for other in self.alive[1]
            if (units := self.proper_units(row, other)) is not None
        }
        allowed = [
            units
            for (row, other), units in proper.items()
            if row in self.eligible[0] and other in self.eligible[1]
        ]
        joint = max([unpaired, *allowed])
        is_proper = joint in allowed
        if not is_proper and min(map(self.reported, choices[:, CHOSEN].tolist())) < LEAST_SCORE:
            return
        chosen = tuple(choices[:, CHOSEN].tolist())
        assert (proper.get(chosen) == joint) == is_proper
        if is_proper:
            assert proper[chosen] == joint
        else:
            assert [self.units(row) for row in chosen] == bests
        weights = {}
        for row in self.alive[0]:
            for other in self.alive[1]:
                units = self.units(row) + self.units(other) - UNPAIRED * UNIT
                weights[row, other] = 2 ** ((units - joint) / 32)
                if (row, other) in proper:
                    weights[row, other] += min(1, 2 ** ((proper[row, other] - joint) / 32))
        total = sum(weights.values())
        for mate in range(2):
            others = sum(w for rows, w in weights.items() if rows[mate] != chosen[mate])
            if is_proper:
                worse = [joint - u for rows, u in proper.items() if rows[mate] != chosen[mate]]
            else:
                rest = [row for row in self.alive[mate] if row != chosen[mate]]
                worse = [bests[mate] - self.units(row) for row in rest]
            self._check_quality(mate, others / total, is_proper, kin(worse), choices[mate])

    def _check_single(self, mate: int, best: int | None, choice: np.ndarray) -> None:
        if choice[CHOSEN] < 0:
            top = [row for row in self.eligible[mate] if self.units(row) == best]
            assert not top or min(map(self.reported, top)) < LEAST_SCORE
            assert choice[QUALITY] == 0
            return
        assert self.units(choice[CHOSEN]) == best
        worse = [best - self.units(row) for row in self.alive[mate] if row != choice[CHOSEN]]
        others = sum(min(1, 2 ** (-units / 32)) for units in worse)
        self._check_quality(mate, others / (1 + others), False, kin(worse), choice)

    def _check_quality(
        self, mate: int, error: float, is_proper: bool, copies: float, choice: np.ndarray
    ) -> None:
        if is_proper:
            lacking = (copies / COPIES_OF_A_FAMILY) ** 2
            doubted = error * min(MOST_PAIRED_DOUBT, 1 + (DOUBTFUL_LENGTH / LENGTH) ** 2) + lacking
        else:
            lacking = (copies * LENGTH / BASES_OF_A_FAMILY) ** 2
            doubted = error * UNSUPPORTED_DOUBT + lacking
        if error + lacking > MOST_ERROR or doubted > MOST_DOUBTED_ERROR:
            assert choice[QUALITY] == 0
        else:
            expected = 60.0 if doubted < 1e-6 else max(1.0, -10 * log10(doubted))
            assert expected - 1.001 <= choice[QUALITY] <= expected + 0.001
        rest = [self.reported(row) for row in self.alive[mate] if row != choice[CHOSEN]]
        assert choice[SECOND] == max([0, *rest])


def chosen(mapped: Mapped, sizes: PairSizes) -> tuple[Candidates, np.ndarray]:
    table = mapped.candidates()
    count = mapped.block.query_count
    choices = np.empty((count, CHOICE_NUMBERS), dtype=np.int32)
    map_templates(
        2 if mapped.block.paired else 1,
        mapped.reads,
        (mapped.block.names, mapped.block.name_offsets),
        mapped.target,
        mapped.costs.as_tuple(),
        mapped.qualities,
        (SEED, 1000, LEAST_SCORE),
        (sizes.first, sizes.last, UNPAIRED, *sizes.proper, sizes.penalties),
        (weights_of_units(), quality_thresholds()),
        new_scratch(LENGTH, mapped.costs.most_gap),
        new_tops(),
        new_marks(LENGTH),
        table.arrays,
        choices,
    )
    return table, choices


@pytest.mark.parametrize("seed", range(25))
def test_the_best_placement_of_all_is_chosen(seed: int) -> None:
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
    reference = reference_of(*records)
    block = block_of([bytes(read) for read in reads], paired=True)
    sizes = PairSizes.of_sizes(SIZES, UNPAIRED)
    table, choices = chosen(Mapped(block, reference, SEED), sizes)
    Enumeration(table, 2, sizes).check(choices)
    single = block_of([bytes(reads[0])])
    no_sizes = PairSizes.of_sizes(None, UNPAIRED)
    table, choices = chosen(Mapped(single, reference, SEED), no_sizes)
    Enumeration(table, 1, no_sizes).check(choices)
