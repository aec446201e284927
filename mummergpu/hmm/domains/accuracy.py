"""Alignments of the highest expected accuracy of several comparisons (Kall and others 2005).

They are found from the products that `fill_backward` leaves, which are scaled here to the posterior
probabilities of matches and insertions. In place of the cells, the choices that lead to them are
kept, a bit each. A sequence has one hit here.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.hmm.domains.forward import (
    AGAIN,
    BEGIN,
    CARRY,
    END,
    ENTER,
    LEAVE,
    SCALE,
    STATES,
    Cells,
    Group,
)
from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.hmm.domains.odds import STEPS, Odds
from mummergpu.hmm.domains.quarters import Quarters, looped, number
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int32Array, Int64Array
from mummergpu.runtime.jit import inline, jit
from mummergpu.runtime.llvm import intrinsic, ir, types

_MATCH, _INSERTION, _DELETION, _BEGIN = range(4)
_STATE_BEFORE, _GOES_ON = 3, 4
"""The bits of a node's choices: the state that its match comes from, and whether its insertion
comes from another one."""
_NEVER: Final = float("-inf")


class Accuracies(NamedTuple):
    """The memory of `fill_accuracies`, besides `Cells` of one row."""

    choices: ByteArray  # (rows, registers, lanes)
    begun: ByteArray  # (rows, registers, lanes): whether the next deletion comes from a match
    weights: Float32Array  # (registers, 2, lanes): the sums of posterior probabilities of states
    outside: Float32Array  # (3, quarters): those before and after the hit and between hits
    # (2, lanes): the highest matches and deletions of a row, and the registers where they are.
    highest: Float32Array
    places: Int32Array
    # (2, quarters): the row and the node that the end follows; -1 - node for a deletion.
    ends: Int64Array
    products: Float32Array  # (quarters,): the scales of the rows so far


class _Row:
    """Writes instructions for the cells of a row, and for whether steps between them are possible.

    In HMMER's recurrence a step that is not leads to 0.
    """

    def __init__(
        self,
        vectors: Quarters,
        emitting: Any,
        deletions: Any,
        steps: Any,
        registers: Any,
        plain: Any,
    ) -> None:
        self._vectors = vectors
        self._builder = vectors.builder
        self._arrays = emitting, deletions
        self._steps = steps
        self._plain = plain
        self._deletes = self._builder.mul(registers, number(STEPS))

    def cells(self, register: Any) -> list[Any]:
        """Return the matches, insertions and deletions of a register."""
        at = self._builder.mul(register, number(2))
        emitting, deletions = self._arrays
        places = at, self._builder.add(at, number(1))
        found = [self._vectors.load(emitting, place) for place in places]
        return [*found, self._vectors.load(deletions, register)]

    def can(self, register: Any, which: int) -> Any:
        """Return whether a step of a register is possible."""
        at = self._builder.mul(register, number(STEPS))
        return self._is_positive(self._builder.add(at, number(which)))

    def can_go_on(self, register: Any) -> Any:
        """Return whether a deletion can be followed by another."""
        return self._is_positive(self._builder.add(self._deletes, register))

    def best(self, froms: list[Any], steps: list[Any]) -> Any:
        """Return the highest of some cells from which a step is possible."""
        pairs = zip(steps, froms, strict=True)
        best, *others = (self._vectors.where(step, one, 0) for step, one in pairs)
        for one in others:
            best = self._vectors.higher(best, one)
        return best

    def plain(
        self, enter: Any, before: list[Any], cells: list[Any], deletion: Any, posteriors: list[Any]
    ) -> list[Any]:
        """Return what `general` does where all steps are possible."""
        vectors, builder = self._vectors, self._builder
        best, pairs = before[0], []
        for code, one in enumerate((*before[1:], enter), 1):
            pairs.append((builder.fcmp_ordered(">", one, best), code))
            best = vectors.higher(one, best)
        goes_on = builder.fcmp_unordered("<", *cells[:2])
        insertion = vectors.higher(cells[1], cells[0])
        codes = builder.or_(vectors.coded(pairs), vectors.coded([(goes_on, _GOES_ON)]))
        match, insertion = map(builder.fadd, (best, insertion), posteriors)
        return [match, insertion, codes, match, deletion, vectors.every]

    def general(
        self,
        register: Any,
        enter: Any,
        before: list[Any],
        cells: list[Any],
        deletion: Any,
        posteriors: list[Any],
    ) -> list[Any]:
        """Return a register's matches, insertions and choices.

        Then come the deletions that its matches and those that its deletions lead to, and whether
        these can.
        """
        vectors, builder = self._vectors, self._builder
        possible = [self.can(register, which) for which in range(4)]
        match = builder.fadd(self.best([enter, *before], possible), posteriors[0])
        known, *froms = self.froms([*before, enter], [*possible[1:], possible[0]])
        pairs = []
        for code, one in enumerate(froms, 1):
            pairs.append((builder.fcmp_ordered(">", one, known), code))
            known = vectors.higher(one, known)
        own = cells[:2], [self.can(register, which) for which in (5, 6)]
        insertion = builder.fadd(self.best(*own), posteriors[1])
        goes_on = builder.fcmp_unordered("<", *self.froms(*own))
        codes = builder.or_(vectors.coded(pairs), vectors.coded([(goes_on, _GOES_ON)]))
        can = self.can_go_on(register)
        into_deletion = vectors.where(self.can(register, 4), match, 0)
        return [match, insertion, codes, into_deletion, vectors.where(can, deletion, 0), can]

    def is_plain(self, register: Any) -> Any:
        """Return whether all steps of a register are possible."""
        flag = self._builder.load(self._builder.gep(self._plain, [register]))
        return self._builder.icmp_unsigned("!=", flag, ir.Constant(flag.type, 0))

    def froms(self, froms: list[Any], steps: list[Any]) -> list[Any]:
        """Return some cells, -inf where no step from them is possible."""
        pairs = zip(steps, froms, strict=True)
        return [self._vectors.where(step, one, _NEVER) for step, one in pairs]

    def entering(self, onward: Any, passes: Any) -> Any:
        """Return the deletions that enter each lane from those before it.

        `onward` are those that leave a lane; others pass through where all steps are possible.
        """
        vectors = self._vectors
        entering = vectors.constant(_NEVER)
        for _ in range(NODES - 1):
            onward = vectors.up(onward, _NEVER)
            entering = vectors.higher(entering, onward)
            onward = vectors.where(passes, onward, 0)
        return entering

    def _is_positive(self, at: Any) -> Any:
        step = self._vectors.in_all(self._steps, at)
        return self._builder.fcmp_ordered(">", step, self._vectors.constant(0))


def _fill_row(
    typing_context: Any,
    quarters: Any,
    emitting: Any,
    deletions: Any,
    states: Any,
    sums: Any,
    products: Any,
    weights: Any,
    choices: Any,
    steps: Any,
    registers: Any,
    products_row: Any,
    choices_row: Any,
    plain: Any,
) -> Any:
    """Compute a row but for deletions that enter a lane, and add its posteriors to the weights.

    The choices, as HMMER's trace, take no step that is impossible.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Quarters(builder, quarters)
        arrays = vectors.arrays(context, signature, arguments, 1, 2, 3, 4, 5, 6)
        emitting, deletions, states, sums, products, weights = arrays
        (steps,) = vectors.places(context, signature, arguments, 8)
        registers, products_row, choices_row = arguments[9:12]
        choices = vectors.bytes_from(context, signature, arguments, 7, choices_row)
        plain = vectors.bytes_from(context, signature, arguments, 12, number(0))
        enter, scale = (vectors.spread(states, which) for which in (ENTER, SCALE))
        row = _Row(vectors, emitting, deletions, steps, registers, plain)
        cells_of, can, best_of = row.cells, row.can, row.best
        last = builder.sub(registers, number(1))

        def posterior(register: Any, which: int) -> Any:
            at = builder.add(builder.mul(register, number(2)), number(which))
            return builder.fmul(vectors.load(vectors.moved(products, products_row), at), scale)

        # The deletions of the first register follow from the last one's matches.
        before = [enter, *cells_of(builder.sub(last, number(1)))]
        final = builder.fadd(
            best_of(before, [can(last, which) for which in range(4)]), posterior(last, 0)
        )
        first_deletion = vectors.up(vectors.where(can(last, 4), final, 0), _NEVER)

        def body(register: Any, *values: Any) -> list[Any]:
            *before, deletion, passes, _ = values
            posteriors = [posterior(register, which) for which in range(2)]
            cells = cells_of(register)
            match, insertion, codes, into_deletion, onward, goes_on = vectors.either(
                row.is_plain(register),
                lambda: row.plain(enter, before, cells, deletion, posteriors),
                lambda: row.general(register, enter, before, cells, deletion, posteriors),
            )
            vectors.keep(codes, choices, register)
            for n, value in enumerate((match, insertion)):
                place = builder.add(builder.mul(register, number(2)), number(n))
                vectors.store(value, emitting, place)
                weight = builder.fadd(posteriors[n], vectors.load(weights, place))
                vectors.store(weight, weights, place)
            vectors.store(deletion, deletions, register)
            following = vectors.higher(onward, into_deletion)
            return [*cells, following, builder.and_(passes, goes_on), onward]

        firsts = [vectors.up(cell, _NEVER) for cell in cells_of(last)]
        firsts += [first_deletion, vectors.every, vectors.constant(0)]
        *_, passes, onward = looped(builder, registers, firsts, body)
        vectors.store(row.entering(onward, passes), sums, number(CARRY))
        return context.get_dummy_value()

    one = types.int64
    arrays = emitting, deletions, states, sums, products, weights, choices, steps
    return types.void(quarters, *arrays, one, one, one, plain), generate


fill_row = cast(Any, intrinsic(_fill_row))
"""Called with the quarters and arrays of `Cells`, the products, the weights, the choices, the
steps, the registers of a row, and where the row begins in the products and the choices."""


def _enter_deletions(
    typing_context: Any,
    quarters: Any,
    emitting: Any,
    deletions: Any,
    states: Any,
    sums: Any,
    begun: Any,
    steps: Any,
    registers: Any,
    choices_row: Any,
    plain: Any,
    maxima: Any,
    places: Any,
) -> Any:
    """Complete the deletions of a row; leave the highest of all cells in the state LEAVE."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Quarters(builder, quarters)
        arrays = vectors.arrays(context, signature, arguments, 1, 2, 3, 4)
        emitting, deletions, states, sums = arrays
        (steps,) = vectors.places(context, signature, arguments, 6)
        registers, choices_row = arguments[7:9]
        begun = vectors.bytes_from(context, signature, arguments, 5, choices_row)
        plain = vectors.bytes_from(context, signature, arguments, 9, number(0))
        row = _Row(vectors, emitting, deletions, steps, registers, plain)

        def body(register: Any, entering: Any, *values: Any) -> list[Any]:
            place, highest, at, deleted, deleted_at = values
            deletion = vectors.higher(entering, vectors.load(deletions, register))
            vectors.store(deletion, deletions, register)
            match = vectors.load(emitting, builder.mul(register, number(2)))

            def general() -> list[Any]:
                steps = row.can(register, 4), row.can_go_on(register)
                froms = row.froms([match, deletion], [*steps])
                onward = vectors.where(steps[1], entering, 0)
                return [onward, builder.fcmp_ordered(">=", *froms)]

            onward, begins = vectors.either(
                row.is_plain(register),
                lambda: [entering, builder.fcmp_ordered(">=", match, deletion)],
                general,
            )
            vectors.keep(vectors.coded([(begins, 1)]), begun, register)
            # Of equal matches HMMER takes the last one, and of deletions the first.
            better = builder.fcmp_ordered(">=", match, highest)
            highest, at = builder.select(better, match, highest), builder.select(better, place, at)
            better = builder.fcmp_ordered(">", deletion, deleted)
            deleted = builder.select(better, deletion, deleted)
            deleted_at = builder.select(better, place, deleted_at)
            place = builder.add(place, vectors.code(1))
            return [onward, place, highest, at, deleted, deleted_at]

        never, none = vectors.constant(_NEVER), vectors.code(0)
        firsts = [vectors.load(sums, number(CARRY)), none, never, none, never, none]
        _, _, *found = looped(builder, registers, firsts, body)
        maxima = vectors.arrays(context, signature, arguments, 10)[0]
        places = vectors.arrays(context, signature, arguments, 11)[0]
        for which in range(2):
            vectors.store(found[2 * which], maxima, number(which))
            vectors.store_codes(found[2 * which + 1], places, which)
        vectors.pick(vectors.highest(vectors.higher(found[0], found[2])), states, LEAVE)
        return context.get_dummy_value()

    one = types.int64
    arrays = emitting, deletions, states, sums, begun, steps
    return types.void(quarters, *arrays, one, one, plain, maxima, places), generate


enter_deletions = cast(Any, intrinsic(_enter_deletions))


@inline
def begin_sequence(odds: Odds, cells: Cells, found: Accuracies, quarter: int) -> None:
    """Begin a sequence at the row before its first residue."""
    lanes = cells.sums.shape[1]
    never = np.float32(-np.inf)
    for state in (LEAVE, AGAIN, END):
        cells.states[state, quarter] = never
    cells.states[BEGIN, quarter] = cells.states[ENTER, quarter] = 0
    for which in range(3):
        found.outside[which, quarter] = 0
    for register in range(odds.registers):
        at = register * lanes + quarter * NODES
        for lane in range(at, at + NODES):
            cells.deletions[lane] = never
            own = lane + register * lanes
            cells.emitting[own] = cells.emitting[own + lanes] = never
        for lane in range(quarter * NODES, (quarter + 1) * NODES):
            found.weights[register, 0, lane] = found.weights[register, 1, lane] = 0


@inline
def last_cell(odds: Odds, found: Accuracies, best: np.float32, quarter: int) -> int:
    """Return the node of a row's highest cell as in `Accuracies.ends`, as HMMER chooses it."""
    last, node = -1, 0
    for lane in range(NODES):
        own = quarter * NODES + lane
        register = int(found.places[0, own])
        if found.highest[0, own] == best and register * NODES + lane > last:
            last, node = register * NODES + lane, lane * odds.registers + register
    if last >= 0:
        return node
    first = NODES * odds.registers
    for lane in range(NODES):
        own = quarter * NODES + lane
        register = int(found.places[1, own])
        if found.highest[1, own] == best and register * NODES + lane < first:
            first, node = register * NODES + lane, -1 - (lane * odds.registers + register)
    return node


@inline
def leave_row(
    odds: Odds,
    group: Group,
    forward: Cells,
    backward: Cells,
    cells: Cells,
    found: Accuracies,
    row: int,
    quarter: int,
) -> None:
    """Compute the special states of a row."""
    states, outside = cells.states, found.outside
    stay = group.chances[0, quarter]
    chances = outside[:, quarter]
    for which, state in enumerate((BEGIN, AGAIN, END)):
        posterior = (
            forward.kept[row - 1, state, quarter]
            * backward.kept[row, state, quarter]
            * stay
            * found.products[quarter]
        )
        chances[which] += posterior
        states[state, quarter] += posterior
    if not states[END, quarter] > states[LEAVE, quarter]:
        states[END, quarter] = states[LEAVE, quarter]
        found.ends[0, quarter] = row
        found.ends[1, quarter] = last_cell(odds, found, states[LEAVE, quarter], quarter)
    again = states[AGAIN, quarter]
    states[AGAIN, quarter] = again if again > np.float32(0) else np.float32(0)
    begin, again = states[BEGIN, quarter], states[AGAIN, quarter]
    states[ENTER, quarter] = begin if begin > again else again
    if backward.has_own_scales[quarter]:
        found.products[quarter] *= (
            forward.kept[row, SCALE, quarter] / backward.kept[row, SCALE, quarter]
        )


@jit
def fill_accuracies(
    odds: Odds,
    group: Group,
    forward: Cells,
    backward: Cells,
    cells: Cells,
    found: Accuracies,
    rows: int,
) -> None:
    """Find the choices of the best alignments, after `fill_backward` with products.

    The expected numbers of residues that are aligned right are left in the state END.
    """
    for row in range(rows + 1):
        at = odds.registers * cells.sums.shape[1] * row
        if row:
            for quarter in range(len(cells.quarters)):
                scale = found.products[quarter] * forward.kept[row, SCALE, quarter]
                is_in = row > rows - group.sizes[quarter]
                cells.states[SCALE, quarter] = scale if is_in else np.float32(0)
            fill_row(
                cells.quarters,
                cells.emitting,
                cells.deletions,
                cells.states,
                cells.sums,
                forward.emitting,
                found.weights,
                found.choices,
                odds.steps,
                odds.registers,
                forward.strides[0] * row,
                at,
                odds.plain,
            )
            enter_deletions(
                cells.quarters,
                cells.emitting,
                cells.deletions,
                cells.states,
                cells.sums,
                found.begun,
                odds.steps,
                odds.registers,
                at,
                odds.plain,
                found.highest,
                found.places,
            )
        for quarter in range(len(cells.quarters)):
            begin = rows - group.sizes[quarter]
            if row == begin and row < rows:
                begin_sequence(odds, cells, found, quarter)
                found.products[quarter] = np.float32(1) / backward.kept[row, BEGIN, quarter]
            if row > begin:
                leave_row(odds, group, forward, backward, cells, found, row, quarter)
            for state in range(STATES):
                cells.kept[row, state, quarter] = cells.states[state, quarter]


@jit
def trace_alignment(
    odds: Odds, cells: Cells, found: Accuracies, quarter: int, begin: int, ends: Int64Array
) -> bool:
    """Find where the alignment of a sequence begins and ends, after `fill_accuracies`.

    `begin` is the row before the sequence's first residue. `ends` receives the first and the last
    aligned node and residue, from 1 on. Return whether the alignment comes from the begin.
    """
    row, node, state = found.ends[0, quarter], found.ends[1, quarter], _MATCH
    if node < 0:
        node, state = -1 - node, _DELETION
    ends[2] = 0
    while state != _BEGIN:
        if node < 0 or row <= begin:
            return False
        lane, register = quarter * NODES + node // odds.registers, node % odds.registers
        if state == _MATCH:
            if not ends[2]:
                ends[2], ends[3] = node + 1, row - begin
            ends[0], ends[1] = node + 1, row - begin
            state = int(found.choices[row, register, lane]) & _STATE_BEFORE
            row, node = row - 1, node - 1
        elif state == _INSERTION:
            if not found.choices[row, register, lane] & _GOES_ON:
                state = _MATCH
            row -= 1
        else:
            node -= 1
            lane, register = quarter * NODES + node // odds.registers, node % odds.registers
            if node >= 0 and found.begun[row, register, lane]:
                state = _MATCH
    return bool(cells.kept[row, BEGIN, quarter] > cells.kept[row, AGAIN, quarter])
