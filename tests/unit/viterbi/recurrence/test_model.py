"""The description of the recurrence, and what programs are made of it."""

import re

import pytest

from mummergpu.errors import OptionError
from mummergpu.viterbi.recurrence.cuda_source import recurrence_source
from mummergpu.viterbi.recurrence.lanes import LANES, MOST_REGISTERS
from mummergpu.viterbi.recurrence.model import (
    DELETION,
    INSERTION,
    LARGEST_COST,
    LARGEST_MATCH,
    MATCH,
    MOST_BASES,
    PAIRWISE,
    STATE_BITS,
    Costs,
    Model,
    Transition,
    bit_count,
    departures,
    source_table,
)
from mummergpu.viterbi.tiles.band import new_scratch


class Numbers:
    """Arithmetic on plain integers, each cost being 1."""

    def subtract(self, score, costs):
        return score - len(costs)

    def exceeds(self, score, other):
        return score > other

    def choose(self, truth, score, other):
        return score if truth else other


def test_a_departure_has_the_best_score_and_says_where_it_comes_from():
    found = departures(PAIRWISE, {MATCH: 5, INSERTION: 7, DELETION: 7}, Numbers())
    assert [each.target for each in found] == [MATCH, INSERTION, DELETION]
    # A deletion is preferred to an insertion.
    assert (found[0].score, found[0].bits) == (7, (True, False))
    assert (found[1].score, found[1].bits) == (6, (True,))
    found = departures(PAIRWISE, {MATCH: 5, INSERTION: 4, DELETION: 5}, Numbers())
    assert [(each.score, any(each.bits)) for each in found] == [(5, False), (3, False), (4, True)]


@pytest.mark.parametrize("bits", range(1 << 4))
def test_the_table_of_sources_reads_the_bits(bits):
    assert bit_count(PAIRWISE) == 4
    from_deletion, from_insertion, extends_insertion, extends_deletion = (
        bits >> bit & 1 for bit in range(4)
    )
    expected = {
        MATCH: INSERTION if from_insertion else DELETION if from_deletion else MATCH,
        INSERTION: INSERTION if extends_insertion else MATCH,
        DELETION: DELETION if extends_deletion else MATCH,
    }
    for target, source in expected.items():
        number = source_table(PAIRWISE, target) >> STATE_BITS * bits & ((1 << STATE_BITS) - 1)
        assert PAIRWISE.states[number] == source


def test_the_kernels_have_the_costs_in_the_order_of_the_tuple():
    inside = re.search(r"struct Costs \{(.*?)\};", recurrence_source(PAIRWISE), re.DOTALL)
    assert re.findall(r"int (\w+);", inside[1]) == list(Costs._fields)


def test_another_model_gives_another_recurrence():
    joined = Transition(DELETION, INSERTION, ("insertion_open", "insertion_extend"))
    other = Model(PAIRWISE.states, (*PAIRWISE.transitions, joined))
    assert recurrence_source(other) != recurrence_source(PAIRWISE)
    assert departures(other, {MATCH: 0, INSERTION: 0, DELETION: 9}, Numbers())[1].score == 7


@pytest.mark.parametrize("name", list(Costs._fields))
def test_costs_that_programs_cannot_compute_with_are_refused(name):
    Costs(**{name: 20}).check()
    for value in (-1, LARGEST_COST + 1):
        with pytest.raises(OptionError, match=f"{name}: {value} is not between"):
            Costs(**{name: value}).check()


def test_an_extension_costs_something():
    for name in ("match", "insertion_extend", "deletion_extend"):
        with pytest.raises(OptionError):
            Costs(**{name: 0}).check()


def test_the_widest_band_covers_the_longest_gap():
    assert LANES * MOST_REGISTERS > LARGEST_COST


def test_the_longest_tile_scores_what_16_bits_hold():
    assert MOST_BASES * LARGEST_MATCH + LARGEST_COST < 1 << 15
    with pytest.raises(OptionError):
        Costs(match=LARGEST_MATCH + 1).check()
    new_scratch(MOST_BASES, 100)
    with pytest.raises(ValueError, match="is longer than 1500"):
        new_scratch(MOST_BASES + 1, 100)
