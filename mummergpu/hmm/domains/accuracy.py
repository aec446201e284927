"""Alignments of the highest expected accuracy of several comparisons (Kall and others 2005).

They are found from the products that `fill_backward` leaves, which are scaled here to the posterior
probabilities of matches and insertions. In place of the cells, the choices that lead to them are
kept, in a byte. A sequence has one hit here.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.hmm.domains.forward import (
    AGAIN,
    BEGIN,
    END,
    ENTER,
    LEAVE,
    SCALE,
    STAY,
    Cells,
    Group,
    chances_of,
    specials_of,
)
from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.hmm.domains.odds import Odds
from mummergpu.hmm.domains.quarters import Chances, Quarters, Row, Specials, looped, number, written
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int32Array, Int64Array
from mummergpu.runtime.jit import inline, jit
from mummergpu.runtime.llvm import ir

_MATCH, _INSERTION, _DELETION, _BEGIN = range(4)
_STATE_BEFORE, _GOES_ON, _BEGINS = 3, 4, 8
"""The bits of a node's choices: the state that its match comes from, whether its insertion comes
from another one, and whether the next node's deletion comes from its match."""
_NEVER: Final = float("-inf")


class Accuracies(NamedTuple):
    """The memory of `fill_accuracies`, besides `Cells` of one row."""

    choices: ByteArray  # (rows, registers, lanes)
    weights: Float32Array  # (registers, 2, lanes): the sums of posterior probabilities of states
    outside: Float32Array  # (3, quarters): those before and after the hit and between hits
    # Of the row that the end follows, (2, lanes): its highest matches and deletions, and the
    # registers where they are.
    highest: Float32Array
    places: Int32Array
    last_rows: Int64Array  # (quarters,): this row
    products: Float32Array  # (quarters,): the scales of the rows so far
    null2: Float32Array  # (29, quarters): the odds of each code, as `expected_odds` finds them
    meant: ByteArray  # As in `proteins.meanings`


class Alignment(NamedTuple):
    """A group, and all that is computed to align its sequences."""

    group: Group
    forward: Cells  # With all rows
    backward: Cells
    cells: Cells
    found: Accuracies


class _Steps:
    """Writes what cells of a row follow from, and whether steps between them are possible.

    In HMMER's recurrence a step that is not leads to 0.
    """

    def __init__(self, vectors: Quarters, odds: Any) -> None:
        self._vectors = vectors
        self._builder = vectors.builder
        self._chances = Chances(vectors, odds)
        self._plain = odds.plain

    def can(self, register: Any, which: int) -> Any:
        """Return whether a step of a register is possible."""
        return self._is_positive(self._chances.step(register, which))

    def can_go_on(self, register: Any) -> Any:
        """Return whether a deletion can be followed by another."""
        return self._is_positive(self._chances.deletion(register))

    def _is_positive(self, chances: Any) -> Any:
        return self._builder.fcmp_ordered(">", chances, self._vectors.constant(0))

    def is_plain(self, register: Any) -> Any:
        """Return whether all steps of a register are possible."""
        flag = self._builder.load(self._builder.gep(self._plain, [register]))
        return self._builder.icmp_unsigned("!=", flag, ir.Constant(flag.type, 0))

    def best(self, froms: list[Any], steps: list[Any]) -> Any:
        """Return the highest of some cells from which a step is possible."""
        pairs = zip(steps, froms, strict=True)
        best, *others = (self._vectors.where(step, one, 0) for step, one in pairs)
        for one in others:
            best = self._vectors.higher(best, one)
        return best

    def froms(self, froms: list[Any], steps: list[Any]) -> list[Any]:
        """Return some cells, -inf where no step from them is possible."""
        pairs = zip(steps, froms, strict=True)
        return [self._vectors.where(step, one, _NEVER) for step, one in pairs]

    def choices(self, froms: list[Any], insertions: list[Any]) -> tuple[Any, Any]:
        """Return the highest cell that a match may come from, and the choices of both states."""
        best, *others = froms
        pairs = []
        for code, one in enumerate(others, 1):
            pairs.append((self._builder.fcmp_ordered(">", one, best), code))
            best = self._vectors.higher(one, best)
        goes_on = self._builder.fcmp_unordered("<", *insertions)
        codes = self._vectors.coded(pairs), self._vectors.coded([(goes_on, _GOES_ON)])
        return best, self._builder.or_(*codes)

    def plain(self, enter: Any, before: list[Any], cells: list[Any], deletion: Any) -> list[Any]:
        """Return what `general` does where all steps are possible."""
        vectors = self._vectors
        match, codes = self.choices([*before, enter], cells[:2])
        insertion = vectors.higher(cells[1], cells[0])
        return [match, insertion, codes, vectors.code(-1), deletion, vectors.code(-1)]

    def general(
        self, register: Any, enter: Any, before: list[Any], cells: list[Any], deletion: Any
    ) -> list[Any]:
        """Return the cells that a register's matches and insertions follow, and its choices.

        Then come a mask of the matches that lead to deletions, the deletions that the register's
        own lead to, and a mask of those that can.
        """
        vectors = self._vectors
        possible = [self.can(register, which) for which in range(4)]
        match = self.best([enter, *before], possible)
        froms = self.froms([*before, enter], [*possible[1:], possible[0]])
        own = cells[:2], [self.can(register, which) for which in (5, 6)]
        _, codes = self.choices(froms, self.froms(*own))
        can = self.can_go_on(register)
        leads = vectors.mask(self.can(register, 4)), vectors.where(can, deletion, 0)
        return [match, self.best(*own), codes, *leads, vectors.mask(can)]

    def entering(self, onward: Any, passes: Any) -> Any:
        """Return the deletions that enter each lane from those before it.

        `onward` are those that leave a lane; others pass through where all steps are possible.
        """
        vectors = self._vectors
        entering = vectors.constant(_NEVER)
        for _ in range(NODES - 1):
            onward = vectors.up(onward, _NEVER)
            entering = vectors.higher(entering, onward)
            onward = vectors.masked(passes, onward)
        return entering


@written("void")
def fill_row(vectors: Quarters, cells: Any, odds: Any, alignment: Any, row: Any) -> None:
    """Compute a row from the one before, in place, and add its posteriors to the weights.

    The choices, as HMMER's trace, take no step that is impossible.
    """
    builder, registers, found = vectors.builder, odds.registers, alignment.found
    own, products = Row(vectors, cells, number(0)), Row(vectors, alignment.forward, row)
    before = specials_of(vectors, cells, builder.sub(row, number(1)))
    states, ahead = (specials_of(vectors, one, row) for one in (cells, alignment.forward))
    scales = vectors.numbers.load(vectors.row_of(found.products), number(0))
    states.store(builder.fmul(scales, ahead.load(SCALE)), SCALE)
    scale, enter = vectors.spread(states.load(SCALE)), vectors.spread(before.load(ENTER))
    weights = vectors.registers(found.weights)
    choices = vectors.bytes_at(found.choices, builder.mul(row, registers))
    steps = _Steps(vectors, odds)
    last = builder.sub(registers, number(1))

    def posterior(register: Any, which: int) -> Any:
        return builder.fmul(products.load(register, which), scale)

    # The deletions of the first register follow from the last one's matches.
    froms = [enter, *own.loads(builder.sub(last, number(1)))]
    final = steps.best(froms, [steps.can(last, which) for which in range(4)])
    final = builder.fadd(final, posterior(last, 0))
    first_deletion = vectors.up(vectors.where(steps.can(last, 4), final, 0), _NEVER)

    def body(register: Any, *values: Any) -> list[Any]:
        *froms, deletion, passes, _ = values
        cells = own.loads(register)
        match, insertion, codes, leads, onward, goes_on = vectors.either(
            steps.is_plain(register),
            lambda: steps.plain(enter, froms, cells, deletion),
            lambda: steps.general(register, enter, froms, cells, deletion),
        )
        builder.store(vectors.to_bytes(codes), builder.gep(choices, [register]), align=1)
        posteriors = [posterior(register, which) for which in range(2)]
        match, insertion = map(builder.fadd, (match, insertion), posteriors)
        for which, value in enumerate((match, insertion, deletion)):
            own.store(value, register, which)
        for which, value in enumerate(posteriors):
            at = builder.add(builder.mul(register, number(2)), number(which))
            vectors.store(builder.fadd(value, vectors.load(weights, at)), weights, at)
        following = vectors.higher(onward, vectors.masked(leads, match))
        return [*cells, following, builder.and_(passes, goes_on), onward]

    firsts = [vectors.up(cell, _NEVER) for cell in own.loads(last)]
    firsts += [first_deletion, vectors.code(-1), vectors.constant(0)]
    *_, passes, onward = looped(builder, registers, firsts, body)
    entering = steps.entering(onward, passes)
    highest = _enter_deletions(vectors, registers, steps, own, choices, entering)
    leave = vectors.within(vectors.higher(highest[0], highest[2]), vectors.higher)
    states.store(vectors.first(leave), LEAVE)
    _add_posteriors(vectors, before, states, alignment, row)
    _leave_row(vectors, states, found, row, highest)


def _enter_deletions(
    vectors: Quarters, registers: Any, steps: _Steps, row: Row, choices: Any, entering: Any
) -> list[Any]:
    """Write how deletions of a row are completed; return its highest cells and their registers."""
    builder = vectors.builder

    def body(register: Any, entering: Any, *values: Any) -> list[Any]:
        place, highest, at, deleted, deleted_at = values
        deletion = vectors.higher(entering, row.load(register, 2))
        row.store(deletion, register, 2)
        match = row.load(register, 0)

        def general() -> list[Any]:
            possible = steps.can(register, 4), steps.can_go_on(register)
            froms = steps.froms([match, deletion], [*possible])
            onward = vectors.where(possible[1], entering, 0)
            return [onward, vectors.mask(builder.fcmp_ordered(">=", *froms))]

        onward, begins = vectors.either(
            steps.is_plain(register),
            lambda: [entering, vectors.mask(builder.fcmp_ordered(">=", match, deletion))],
            general,
        )
        begins = vectors.to_bytes(builder.and_(begins, vectors.code(_BEGINS)))
        own = builder.gep(choices, [register])
        builder.store(builder.or_(builder.load(own, align=1), begins), own, align=1)
        # Of equal matches HMMER takes the last one, and of deletions the first.
        better = builder.fcmp_ordered(">=", match, highest)
        highest, at = builder.select(better, match, highest), builder.select(better, place, at)
        better = builder.fcmp_ordered(">", deletion, deleted)
        deleted = builder.select(better, deletion, deleted)
        deleted_at = builder.select(better, place, deleted_at)
        place = builder.add(place, vectors.code(1))
        return [onward, place, highest, at, deleted, deleted_at]

    never, none = vectors.constant(_NEVER), vectors.code(0)
    firsts = [entering, none, never, none, never, none]
    return looped(builder, registers, firsts, body)[2:]


def _add_posteriors(
    vectors: Quarters, before: Specials, states: Specials, alignment: Any, row: Any
) -> None:
    """Write how the special states outside the profile grow by the posteriors of a row."""
    builder, numbers, found = vectors.builder, vectors.numbers, alignment.found
    products = vectors.row_of(found.products)
    scales, outside = numbers.load(products, number(0)), vectors.row_of(found.outside)
    last = specials_of(vectors, alignment.forward, builder.sub(row, number(1)))
    ahead, back = (
        specials_of(vectors, one, row) for one in (alignment.forward, alignment.backward)
    )
    stay = chances_of(vectors, alignment.group).load(STAY)
    for which, state in enumerate((BEGIN, AGAIN, END)):
        posterior = builder.fmul(builder.fmul(last.load(state), back.load(state)), stay)
        posterior = builder.fmul(posterior, scales)
        grown = builder.fadd(numbers.load(outside, number(which)), posterior)
        numbers.store(grown, outside, number(which))
        states.store(builder.fadd(before.load(state), posterior), state)
    flags = ir.VectorType(ir.IntType(64), vectors.quarters)
    own = builder.load(
        builder.bitcast(alignment.backward.has_own_scales, flags.as_pointer()), align=8
    )
    has_own = builder.icmp_signed("!=", own, ir.Constant(flags, [0] * vectors.quarters))
    with builder.if_then(vectors.any_of(has_own), likely=False):
        ratio = builder.fdiv(ahead.load(SCALE), back.load(SCALE))
        scaled = builder.select(has_own, builder.fmul(scales, ratio), scales)
        numbers.store(scaled, products, number(0))


def _leave_row(
    vectors: Quarters, states: Specials, found: Any, row: Any, highest: list[Any]
) -> None:
    """Write how the other special states follow, and keep the row if the end follows it."""
    builder, numbers = vectors.builder, vectors.numbers
    begin, again, end, leave = map(states.load, (BEGIN, AGAIN, END, LEAVE))
    zero = numbers.constant(0)
    again = builder.select(builder.fcmp_ordered(">", again, zero), again, zero)
    enter = builder.select(builder.fcmp_ordered(">", begin, again), begin, again)
    states.store(again, AGAIN)
    states.store(enter, ENTER)
    is_better = builder.fcmp_unordered("<=", end, leave)
    with builder.if_then(vectors.any_of(is_better)):
        states.store(builder.select(is_better, leave, end), END)
        lanes = builder.fcmp_unordered("<=", vectors.spread(end), vectors.spread(leave))
        values = vectors.registers(found.highest)
        for which in range(2):
            value, place = highest[2 * which : 2 * which + 2]
            value = builder.select(lanes, value, vectors.load(values, number(which)))
            vectors.store(value, values, number(which))
            place = builder.select(lanes, place, vectors.load_codes(found.places, which))
            vectors.store_codes(place, found.places, which)
        for quarter in range(vectors.quarters):
            is_own = builder.extract_element(is_better, ir.Constant(ir.IntType(32), quarter))
            last = builder.gep(found.last_rows, [number(quarter)])
            builder.store(builder.select(is_own, row, builder.load(last)), last)


@inline
def begin_sequence(odds: Odds, cells: Cells, found: Accuracies, row: int, quarter: int) -> None:
    """Begin a sequence at the row before its first residue."""
    lanes = NODES * len(cells.quarters)
    never = np.float32(-np.inf)
    for state in (LEAVE, AGAIN, END):
        cells.kept[row, state, quarter] = never
    cells.kept[row, BEGIN, quarter] = cells.kept[row, ENTER, quarter] = 0
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


@jit
def fill_accuracies(odds: Odds, alignment: Alignment, rows: int) -> None:
    """Find the choices of the best alignments, after `fill_backward` with products.

    The expected numbers of residues that are aligned right are left in the state END.
    """
    cells, found = alignment.cells, alignment.found
    for quarter in range(len(cells.quarters)):
        begin_sequence(odds, cells, found, 0, quarter)
        found.products[quarter] = 0
    for row in range(rows + 1):
        if row:
            fill_row(cells, odds, alignment, row)
        for quarter in range(len(cells.quarters)):
            if row == rows - alignment.group.sizes[quarter] and row < rows:
                begin_sequence(odds, cells, found, row, quarter)
                first = alignment.backward.kept[row, BEGIN, quarter]
                found.products[quarter] = np.float32(1) / first


@inline
def last_cell(odds: Odds, found: Accuracies, quarter: int) -> int:
    """Return the node that the end follows, or -1 - node for a deletion, as HMMER chooses it."""
    best = np.float32(-np.inf)
    for lane in range(quarter * NODES, (quarter + 1) * NODES):
        best = max(best, found.highest[0, lane], found.highest[1, lane])
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


@jit
def trace_alignment(
    odds: Odds, alignment: Alignment, quarter: int, begin: int, ends: Int64Array
) -> bool:
    """Find where the alignment of a sequence begins and ends, after `fill_accuracies`.

    `begin` is the row before the sequence's first residue. `ends` receives the first and the last
    aligned node and residue, from 1 on. Return whether the alignment comes from the begin.
    """
    found = alignment.found
    row, node, state = found.last_rows[quarter], last_cell(odds, found, quarter), _MATCH
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
            if node >= 0 and found.choices[row, register, lane] & _BEGINS:
                state = _MATCH
    kept = alignment.cells.kept
    return bool(kept[row, BEGIN, quarter] > kept[row, AGAIN, quarter])
