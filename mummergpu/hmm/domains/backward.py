"""The sums over all paths from each cell on (Backward) of several comparisons, with HMMER's bits.

Of the cells only a row is kept. Where Forward's are at hand, its matches and insertions are
multiplied by those of this row: that is all that posterior probabilities need.
"""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np

from mummergpu.hmm.domains.forward import (
    AGAIN,
    BEGIN,
    CARRY,
    END,
    ENTER,
    LEAVE,
    RESCALED,
    SCALE,
    STATES,
    Cells,
    Group,
    find_lines,
)
from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.hmm.domains.odds import STEPS, Odds
from mummergpu.hmm.domains.quarters import Quarters, looped, number, numbers_of
from mummergpu.runtime.jit import inline, jit
from mummergpu.runtime.llvm import intrinsic, types

_OVERFLOWING: Final = 1e16
"""From here on Forward's scales are too small, and Backward takes its own."""

_NEGLIGIBLE: Final = 2.0**-26
"""What is smaller than this part of a number does not change it when it is added."""


def _collect(
    typing_context: Any,
    quarters: Any,
    emitting: Any,
    deletions: Any,
    states: Any,
    lines: Any,
    emissions: Any,
    steps: Any,
    registers: Any,
) -> Any:
    """Compute a row from the next one in place, but for what comes from this row's own cells.

    The sum over all entries is left in the state ENTER. Of node n, with the next row as old:

        matched[n] = old_match[n] * emission[n]
        match[n] = old_insert[n] * mi[n] + matched[n+1] * mm[n+1]
        insert[n] = old_insert[n] * ii[n] + matched[n+1] * im[n+1]
        delete[n] = matched[n+1] * dm[n+1]
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Quarters(builder, quarters)
        add, multiply = builder.fadd, builder.fmul
        emitting, deletions, states = vectors.arrays(context, signature, arguments, 1, 2, 3)
        emissions, steps = vectors.places(context, signature, arguments, 5, 6)
        count = vectors.quarters
        lines = numbers_of(builder, context, count, signature.args[4], arguments[4])
        registers = arguments[7]
        last = builder.sub(registers, number(1))

        def step(register: Any, which: int) -> Any:
            at = builder.mul(register, number(STEPS))
            return vectors.in_all(steps, builder.add(at, number(which)))

        def matched(register: Any) -> Any:
            places = [builder.add(line, register) for line in lines]
            cell = vectors.load(emitting, builder.mul(register, number(2)))
            return multiply(cell, vectors.of_each(emissions, places))

        def body(turn: Any, found: Any, *values: Any) -> list[Any]:
            *into, total = values
            register = builder.sub(last, turn)
            at = builder.mul(register, number(2))
            after = builder.add(at, number(1))
            inserted = vectors.load(emitting, after)
            products = [multiply(found, chance) for chance in into]
            insertion = add(multiply(inserted, step(register, 6)), products[1])
            match = add(multiply(inserted, step(register, 5)), products[0])
            own = matched(register)
            vectors.store(insertion, emitting, after)
            vectors.store(match, emitting, at)
            vectors.store(products[2], deletions, register)
            chances = [step(register, which) for which in (1, 2, 3)]
            return [own, *chances, add(total, multiply(own, step(register, 0)))]

        first = [matched(number(0)), *(step(number(0), which) for which in (1, 2, 3))]
        firsts = [*map(vectors.down, first), vectors.constant(0)]
        total = looped(builder, registers, firsts, body)[-1]
        vectors.pick(vectors.totals(total), states, ENTER)
        return context.get_dummy_value()

    arrays = emitting, deletions, states, lines, emissions, steps
    return types.void(quarters, *arrays, types.int64), generate


collect = cast(Any, intrinsic(_collect))


def _begin_deletions(
    typing_context: Any,
    quarters: Any,
    deletions: Any,
    states: Any,
    sums: Any,
    steps: Any,
    registers: Any,
) -> Any:
    """Add to deletions those that go on in the same lane, and the end in the state LEAVE."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Quarters(builder, quarters)
        deletions, states, sums = vectors.arrays(context, signature, arguments, 1, 2, 3)
        (steps,) = vectors.places(context, signature, arguments, 4)
        registers = arguments[5]
        last = builder.sub(registers, number(1))
        deletes = builder.mul(registers, number(STEPS))
        leave = vectors.spread(states, LEAVE)
        first = vectors.down(builder.fadd(vectors.load(deletions, number(0)), leave))

        def body(turn: Any, following: Any, _: Any) -> list[Any]:
            register = builder.sub(last, turn)
            step = vectors.in_all(steps, builder.add(deletes, register))
            onward = builder.fmul(following, step)
            own = vectors.load(deletions, register)
            own = builder.fadd(own, builder.fadd(onward, leave))
            vectors.store(own, deletions, register)
            return [own, onward]

        onward = looped(builder, registers, [first, vectors.constant(0)], body)[-1]
        vectors.store(onward, sums, number(CARRY))
        return context.get_dummy_value()

    arrays = deletions, states, sums, steps
    return types.void(quarters, *arrays, types.int64), generate


begin_deletions = cast(Any, intrinsic(_begin_deletions))


def _extend_deletions(
    typing_context: Any,
    quarters: Any,
    deletions: Any,
    states: Any,
    sums: Any,
    steps: Any,
    registers: Any,
) -> Any:
    """Let deletions go on in the next lane; return whether no more can change.

    Each is at least the state LEAVE, and what is added only falls from node to node. So it ends
    where all of that is too small to change even LEAVE.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Quarters(builder, quarters)
        deletions, states, sums = vectors.arrays(context, signature, arguments, 1, 2, 3)
        (steps,) = vectors.places(context, signature, arguments, 4)
        registers = arguments[5]
        last = builder.sub(registers, number(1))
        deletes = builder.mul(registers, number(STEPS))
        bound = builder.fmul(vectors.spread(states, LEAVE), vectors.constant(_NEGLIGIBLE))
        first = vectors.down(vectors.load(sums, number(CARRY)))

        def body(turn: Any, following: Any, _: Any) -> list[Any]:
            register = builder.sub(last, turn)
            step = vectors.in_all(steps, builder.add(deletes, register))
            onward = builder.fmul(following, step)
            own = builder.fadd(vectors.load(deletions, register), onward)
            vectors.store(own, deletions, register)
            larger = vectors.packed(builder.fcmp_ordered(">", onward, bound))
            ends = builder.icmp_unsigned("==", larger, number(0))
            return [onward, ends, ends]

        ends = looped(builder, registers, [first, vectors.no], body, stops=True)
        vectors.store(ends[0], sums, number(CARRY))
        return ends[1]

    arrays = deletions, states, sums, steps
    return types.boolean(quarters, *arrays, types.int64), generate


extend_deletions = cast(Any, intrinsic(_extend_deletions))


def _closing(multiplies: bool) -> Any:
    """Return a function that completes a row, and that multiplies Forward's row by it."""

    def _close_row(
        typing_context: Any,
        quarters: Any,
        emitting: Any,
        deletions: Any,
        states: Any,
        steps: Any,
        registers: Any,
        forward: Any,
        row: Any,
    ) -> Any:
        """Complete the matches of a row, and scale it by the state SCALE."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            vectors = Quarters(builder, quarters)
            arrays = vectors.arrays(context, signature, arguments, 1, 2, 3, 6)
            emitting, deletions, states, forward = arrays
            (steps,) = vectors.places(context, signature, arguments, 4)
            registers, row = arguments[5], arguments[7]
            forward = vectors.moved(forward, row)
            last = builder.sub(registers, number(1))
            leave = vectors.spread(states, LEAVE)
            factor = builder.fdiv(vectors.constant(1), vectors.spread(states, SCALE))

            def body(turn: Any, following: Any) -> list[Any]:
                register = builder.sub(last, turn)
                at = builder.mul(register, number(STEPS))
                step = vectors.in_all(steps, builder.add(at, number(4)))
                at = builder.mul(register, number(2))
                places = at, builder.add(at, number(1))
                match, insertion = (vectors.load(emitting, place) for place in places)
                match = builder.fadd(match, leave)
                match = builder.fadd(match, builder.fmul(following, step))
                for cell, place in zip((match, insertion), places, strict=True):
                    scaled = builder.fmul(cell, factor)
                    vectors.store(scaled, emitting, place)
                    if multiplies:
                        product = builder.fmul(vectors.load(forward, place), scaled)
                        vectors.store(product, forward, place)
                return [vectors.load(deletions, register)]

            first = vectors.down(vectors.load(deletions, number(0)))
            looped(builder, registers, [first], body)
            return context.get_dummy_value()

        one = types.int64
        arrays = emitting, deletions, states, steps
        return types.void(quarters, *arrays, one, forward, one), generate

    return _close_row


_close_row = _closing(False)
_close_product = _closing(True)
close_row = cast(Any, intrinsic(_close_row))
close_product = cast(Any, intrinsic(_close_product))
"""Both are called with the quarters and arrays of `Cells`, the steps, the registers of a row,
Forward's emitting cells, and where the row begins in them."""


@inline
def scale_states(group: Group, forward: Cells, cells: Cells, rows: int, row: int) -> None:
    """Compute the special states of a row, not yet scaled, and their scale."""
    states, chances = cells.states, group.chances
    for quarter in range(len(cells.quarters)):
        stay, move = chances[0, quarter], chances[1, quarter]
        if row == rows:
            for state in range(STATES):
                states[state, quarter] = 0
            states[END, quarter] = move
            states[LEAVE, quarter] = move * chances[3, quarter]
        else:
            enter = states[ENTER, quarter]
            states[END, quarter] *= stay
            states[AGAIN, quarter] = enter * move + states[AGAIN, quarter] * stay
            states[BEGIN, quarter] = enter * move + states[BEGIN, quarter] * stay
            states[LEAVE, quarter] = (
                states[END, quarter] * chances[3, quarter]
                + states[AGAIN, quarter] * chances[2, quarter]
            )
        scale = forward.kept[row, SCALE, quarter]
        is_in = row > rows - group.sizes[quarter]
        if is_in and states[ENTER, quarter] > np.float32(_OVERFLOWING):
            cells.has_own_scales[quarter] = 1
        if cells.has_own_scales[quarter]:
            is_large = states[ENTER, quarter] > np.float32(RESCALED)
            scale = states[ENTER, quarter] if is_large else np.float32(1)
        states[SCALE, quarter] = scale


@inline
def first_entry(odds: Odds, cells: Cells, quarter: int) -> np.float32:
    """Return the sum over the entries of a sequence's first residue, added up the other way."""
    lanes = cells.sums.shape[1]
    emissions = odds.emissions[cells.lines[quarter] // odds.registers]
    for lane in range(NODES):
        total = np.float32(0)
        for register in range(odds.registers):
            cell = cells.emitting[2 * register * lanes + quarter * NODES + lane]
            total += cell * emissions[register, lane] * odds.steps[register * STEPS, lane]
        cells.sums[0, lane] = total
    parts = cells.sums[0]
    return np.float32((parts[0] + parts[1]) + (parts[2] + parts[3]))


@inline
def collect_row(odds: Odds, group: Group, cells: Cells, rows: int, row: int) -> None:
    """Compute what `collect` does for a row; in a sequence's first row the sum is `first_entry`."""
    find_lines(odds, group, cells, row - rows)
    entries = cells.kept[row, ENTER]
    for quarter in range(len(cells.quarters)):
        if row == rows - group.sizes[quarter]:
            entries[quarter] = first_entry(odds, cells, quarter)
    collect(
        cells.quarters,
        cells.emitting,
        cells.deletions,
        cells.states,
        cells.lines,
        odds.emissions,
        odds.steps,
        odds.registers,
    )
    for quarter in range(len(cells.quarters)):
        if row == rows - group.sizes[quarter]:
            cells.states[ENTER, quarter] = entries[quarter]


@inline
def keep_first_row(group: Group, cells: Cells, rows: int, row: int) -> None:
    """Keep the row before the first residue of the sequences that begin there."""
    for quarter in range(len(cells.quarters)):
        if row == rows - group.sizes[quarter]:
            for state in range(STATES):
                cells.kept[row, state, quarter] = 0
            cells.kept[row, BEGIN, quarter] = cells.states[BEGIN, quarter]
            cells.kept[row, ENTER, quarter] = cells.states[ENTER, quarter]
            cells.kept[row, SCALE, quarter] = 1


@inline
def keep_row(group: Group, cells: Cells, rows: int, row: int) -> None:
    """Scale the special states of a row, and keep them."""
    for quarter in range(len(cells.quarters)):
        if cells.states[SCALE, quarter] > 1:
            for state in range(SCALE):
                cells.states[state, quarter] /= cells.states[SCALE, quarter]
        if row > rows - group.sizes[quarter]:
            for state in range(STATES):
                cells.kept[row, state, quarter] = cells.states[state, quarter]


@inline
def begin_rows(odds: Odds, cells: Cells) -> None:
    """Begin after the last residue, where there are no cells."""
    for cell in range(2 * odds.registers * cells.sums.shape[1]):
        cells.emitting[cell] = 0
    for cell in range(odds.registers * cells.sums.shape[1]):
        cells.deletions[cell] = 0
    for quarter in range(len(cells.quarters)):
        cells.has_own_scales[quarter] = 0


@jit
def fill_backward(
    odds: Odds, group: Group, forward: Cells, cells: Cells, rows: int, multiplies: bool
) -> None:
    """Compute the rows of a group from the last to the first, after `fill_forward`.

    `multiplies` has the cells of `forward`, all of which it must have kept, multiplied.
    """
    begin_rows(odds, cells)
    deletions = cells.quarters, cells.deletions, cells.states, cells.sums
    own = cells.quarters, cells.emitting, cells.deletions, cells.states
    for row in range(rows, -1, -1):
        if row < rows:
            collect_row(odds, group, cells, rows, row)
        scale_states(group, forward, cells, rows, row)
        keep_first_row(group, cells, rows, row)
        if row == 0:
            break
        begin_deletions(*deletions, odds.steps, odds.registers)
        for _ in range(NODES - 1):
            if extend_deletions(*deletions, odds.steps, odds.registers):
                break
        at = forward.strides[0] * row
        if multiplies:
            close_product(*own, odds.steps, odds.registers, forward.emitting, at)
        else:
            close_row(*own, odds.steps, odds.registers, forward.emitting, at)
        keep_row(group, cells, rows, row)
