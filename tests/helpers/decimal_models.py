"""Slow sums of hidden Markov models in decimal numbers, whose exponents have no bounds."""

import decimal
import math
from collections import defaultdict
from decimal import Decimal
from typing import NamedTuple

import numpy as np

NONE = Decimal(0)


class DecimalSums(NamedTuple):
    """Logarithms: the score, and of each state behind each symbol from the start and to the end."""

    score: float
    forward: np.ndarray
    backward: np.ndarray

    def posteriors(self):
        """The probabilities of states; rows of an impossible sequence are not numbers."""
        with np.errstate(invalid="ignore"):
            return np.exp(self.forward + self.backward - self.score)


def decimal_sums(model, codes, states):
    """Sum over all paths of a model without loops of silent states; `states` get tables."""
    endless = {"prec": 40, "Emax": decimal.MAX_EMAX, "Emin": decimal.MIN_EMIN}
    with decimal.localcontext(decimal.Context(**endless)):
        return _sums(_Steps(model), codes, states)


class _Steps:
    """The transitions of a model that emit, and those that do not, ordered by their sources."""

    def __init__(self, model):
        self.model = model
        emission_of = {state.name: state.emission for state in model.states}
        self.emitting = []
        quiet = defaultdict(list)
        for step in model.transitions:
            emission, chance = step.emission or emission_of[step.target], Decimal(step.probability)
            if emission is None:
                quiet[step.source].append((step.target, chance))
            else:
                row = [chance * Decimal(one) for one in model.emissions[emission]]
                self.emitting.append((step.source, step.target, row))
        order = []

        def visit(name):
            if name not in order:
                for target, _ in quiet.get(name, []):
                    visit(target)
                order.append(name)

        for state in model.states:
            visit(state.name)
        self.silent = [(one, *step) for one in reversed(order) for step in quiet.get(one, [])]

    def spread(self, values):
        """Add what silent transitions lead to."""
        found = defaultdict(Decimal, values)
        for source, target, chance in self.silent:
            found[target] += found[source] * chance
        return found

    def gathered(self, values):
        """Add what silent transitions come from, from the end on."""
        found = defaultdict(Decimal, values)
        for source, target, chance in reversed(self.silent):
            found[source] += found[target] * chance
        return found


def _sums(steps, codes, states):
    end = steps.model.end
    columns = []
    values = steps.spread({steps.model.start: Decimal(1)})
    for code in codes:
        arrived = defaultdict(Decimal)
        for source, target, row in steps.emitting:
            arrived[target] += values[source] * row[code]
        columns.append(arrived)
        values = steps.spread(arrived)
    back = []
    if end is None:
        total = sum(columns[-1].values(), NONE)
        rest = defaultdict(lambda: Decimal(1))
    else:
        total, rest = values[end], steps.gathered({end: Decimal(1)})
    for code in reversed(codes):
        back.append(rest)
        left = defaultdict(Decimal)
        for source, target, row in steps.emitting:
            left[source] += row[code] * rest[target]
        rest = steps.gathered(left)
    return DecimalSums(_log(total), _logs(columns, states), _logs(back[::-1], states))


def _logs(columns, states):
    return np.array([[_log(column[state]) for column in columns] for state in states])


def _log(value):
    if not value:
        return -np.inf
    # That of a decimal number would take a while.
    places = value.adjusted()
    return math.log(float(value.scaleb(-places))) + places * math.log(10)
