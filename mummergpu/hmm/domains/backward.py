"""The sums over all paths from each cell on (Backward) of several comparisons, with HMMER's bits.

Of the cells only a row is kept. Where Forward's are at hand, its matches and insertions are
multiplied by those of this row: that is all that posterior probabilities need.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mummergpu.hmm.domains.forward import (
    AGAIN,
    BEGIN,
    END,
    ENTER,
    LEAVE,
    MOVE,
    RESCALED,
    RETURN,
    SCALE,
    STATES,
    STAY,
    STOP,
    Cells,
    Group,
    begin_cells,
    chances_of,
    specials_of,
)
from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.hmm.domains.odds import STEPS, Odds
from mummergpu.hmm.domains.quarters import Chances, Quarters, Row, looped, number, written
from mummergpu.runtime.jit import inline, jit
from mummergpu.runtime.llvm import ir

_OVERFLOWING: Final = 1e16
"""From here on Forward's scales are too small, and Backward takes its own."""

_NEGLIGIBLE: Final = 2.0**-26
"""What is smaller than this part of a number does not change it when it is added."""


def _are_in(vectors: Quarters, group: Any, rows: Any, row: Any) -> tuple[Any, Any]:
    """Return in which sequences a row is that of a residue, and in which that before the first."""
    builder, kind = vectors.builder, _wide(vectors)
    sizes = builder.load(builder.bitcast(group.sizes, kind.as_pointer()), align=8)
    left: Any = ir.Constant(kind, ir.Undefined)
    for quarter in range(vectors.quarters):
        lane = ir.Constant(ir.IntType(32), quarter)
        left = builder.insert_element(left, builder.sub(rows, row), lane)
    return builder.icmp_signed(">", sizes, left), builder.icmp_signed("==", sizes, left)


def _wide(vectors: Quarters) -> Any:
    """Return the type of an integer of 64 bits of each quarter."""
    return ir.VectorType(ir.IntType(64), vectors.quarters)


@written("void")
def collect_row(
    vectors: Quarters, cells: Any, odds: Any, group: Any, forward: Any, rows: Any, row: Any
) -> None:
    """Compute a row from the next one in place, but for what comes from this row's own cells.

    Of node n, with the next row as old:

        matched[n] = old_match[n] * emission[n]
        match[n] = old_insert[n] * mi[n] + matched[n+1] * mm[n+1]
        insert[n] = old_insert[n] * ii[n] + matched[n+1] * im[n+1]
        delete[n] = matched[n+1] * dm[n+1]
    """
    builder, registers = vectors.builder, odds.registers
    add, multiply = builder.fadd, builder.fmul
    own, chances = Row(vectors, cells, number(0)), Chances(vectors, odds)
    lines = chances.lines(group, builder.sub(row, rows))
    last = builder.sub(registers, number(1))

    def matched(register: Any) -> Any:
        return multiply(own.load(register, 0), vectors.of_each(lines, register))

    def body(turn: Any, found: Any, *values: Any) -> list[Any]:
        *into, total = values
        register = builder.sub(last, turn)
        inserted = own.load(register, 1)
        into_match, into_insertion, into_deletion = (multiply(found, one) for one in into)
        insertion = add(multiply(inserted, chances.step(register, 6)), into_insertion)
        match = add(multiply(inserted, chances.step(register, 5)), into_match)
        found = matched(register)
        for which, value in enumerate((match, insertion, into_deletion)):
            own.store(value, register, which)
        steps = [chances.step(register, which) for which in (1, 2, 3)]
        return [found, *steps, add(total, multiply(found, chances.step(register, 0)))]

    first = [matched(number(0)), *(chances.step(number(0), which) for which in (1, 2, 3))]
    firsts = [*map(vectors.down, first), vectors.constant(0)]
    enter = vectors.totals(looped(builder, registers, firsts, body)[-1])
    _special_states(vectors, cells, group, forward, (rows, row), enter)


def _special_states(
    vectors: Quarters, cells: Any, group: Any, forward: Any, place: tuple[Any, Any], enter: Any
) -> None:
    """Write how the special states of a row follow, not yet scaled, and their scale.

    Before a sequence's first residue there are only its begin and its entry, which `first_entry`
    has added up and left in its state; before that row all are 0.
    """
    rows, row = place
    builder, numbers = vectors.builder, vectors.numbers
    add, multiply, select = builder.fadd, builder.fmul, builder.select
    states, after = (specials_of(vectors, cells, builder.add(row, number(n))) for n in range(2))
    chances = chances_of(vectors, group)
    are_in, are_first = _are_in(vectors, group, rows, row)
    zero, one = numbers.constant(0), numbers.constant(1)
    enter = select(are_in, enter, select(are_first, states.load(ENTER), zero))
    begin = select(builder.or_(are_in, are_first), after.load(BEGIN), zero)
    stay, move = chances.load(STAY), chances.load(MOVE)
    entering = multiply(enter, move)
    begin = add(entering, multiply(begin, stay))
    again = select(are_in, add(entering, multiply(after.load(AGAIN), stay)), zero)
    end = select(are_in, multiply(after.load(END), stay), zero)
    leave = add(multiply(end, chances.load(STOP)), multiply(again, chances.load(RETURN)))
    overflows = builder.fcmp_ordered(">", enter, numbers.constant(_OVERFLOWING))
    overflows = builder.zext(builder.and_(are_in, overflows), _wide(vectors))
    place_of_own = builder.bitcast(cells.has_own_scales, _wide(vectors).as_pointer())
    own = builder.or_(builder.load(place_of_own, align=8), overflows)
    builder.store(own, place_of_own, align=8)
    has_own = builder.trunc(own, are_in.type)
    is_large = builder.fcmp_ordered(">", enter, numbers.constant(RESCALED))
    scale = specials_of(vectors, forward, row).load(SCALE)
    scale = select(builder.and_(are_in, has_own), select(is_large, enter, one), scale)
    for state, value in enumerate((begin, enter, leave, again, end, scale)):
        states.store(value, state)


@written("void")
def close_row(
    vectors: Quarters, cells: Any, odds: Any, group: Any, forward: Any, rows: Any, row: Any
) -> None:
    """Complete a row after `collect_row`, and scale it.

    Its matches and insertions are multiplied into Forward's, if all rows of these are kept.
    """
    builder, numbers = vectors.builder, vectors.numbers
    own, chances = Row(vectors, cells, number(0)), Chances(vectors, odds)
    states = specials_of(vectors, cells, row)
    leave, scale = vectors.spread(states.load(LEAVE)), states.load(SCALE)
    last = builder.sub(odds.registers, number(1))
    _follow_deletions(vectors, odds.registers, chances, own, leave)
    one, zero = numbers.constant(1), numbers.constant(0)
    are_in, _ = _are_in(vectors, group, rows, row)
    factor = vectors.spread(builder.select(are_in, builder.fdiv(one, scale), zero))

    def close(target: Row | None) -> None:
        def body(turn: Any, following: Any) -> list[Any]:
            register = builder.sub(last, turn)
            match = builder.fadd(own.load(register, 0), leave)
            match = builder.fadd(match, builder.fmul(following, chances.step(register, 4)))
            for which, cell in enumerate((match, own.load(register, 1))):
                scaled = builder.fmul(cell, factor)
                own.store(scaled, register, which)
                if target is not None:
                    product = builder.fmul(target.load(register, which), scaled)
                    target.store(product, register, which)
            return [own.load(register, 2)]

        looped(builder, odds.registers, [vectors.down(own.load(number(0), 2))], body)

    stride = builder.extract_value(forward.strides, 0)
    with builder.if_else(builder.icmp_signed("!=", stride, number(0))) as (then, otherwise):
        with then:
            close(Row(vectors, forward, row))
        with otherwise:
            close(None)
    is_large = builder.fcmp_ordered(">", scale, one)
    with builder.if_then(vectors.any_of(is_large), likely=False):
        divisor = builder.select(is_large, scale, one)
        for state in range(SCALE):
            states.store(builder.fdiv(states.load(state), divisor), state)


def _follow_deletions(
    vectors: Quarters, registers: Any, chances: Chances, row: Row, leave: Any
) -> None:
    """Write how deletions of a row go on, in the same lane and then in the next ones.

    Each is at least `leave`, and what is added only falls from node to node. So it ends where all
    of that is too small to change even `leave`.
    """
    builder = vectors.builder
    last = builder.sub(registers, number(1))

    def begin(turn: Any, following: Any, _: Any) -> list[Any]:
        register = builder.sub(last, turn)
        onward = builder.fmul(following, chances.deletion(register))
        own = builder.fadd(row.load(register, 2), builder.fadd(onward, leave))
        row.store(own, register, 2)
        return [own, onward]

    bound = builder.fmul(leave, vectors.constant(_NEGLIGIBLE))

    def extend(_: Any, onward: Any) -> list[Any]:
        def body(turn: Any, following: Any, _: Any) -> list[Any]:
            register = builder.sub(last, turn)
            onward = builder.fmul(following, chances.deletion(register))
            row.store(builder.fadd(row.load(register, 2), onward), register, 2)
            ends = builder.not_(vectors.any_of(builder.fcmp_ordered(">", onward, bound)))
            return [onward, ends, ends]

        firsts = [vectors.down(onward), ir.Constant(ir.IntType(1), 0)]
        return looped(builder, registers, firsts, body, stops=True)

    first = vectors.down(builder.fadd(row.load(number(0), 2), leave))
    onward = looped(builder, registers, [first, vectors.constant(0)], begin)[-1]
    looped(builder, number(NODES - 1), [onward], extend, stops=True)


@inline
def lane_entry(odds: Odds, group: Group, cells: Cells, quarter: int, lane: int) -> np.float32:
    """Return the sum over the entries of a sequence's first residue in a lane of its quarter."""
    emissions = odds.emissions[np.int64(group.codes[group.begins[quarter]])]
    total = np.float32(0)
    for register in range(odds.registers):
        at = 2 * NODES * len(cells.quarters) * register + quarter * NODES + lane
        total += cells.emitting[at] * emissions[register, lane] * odds.steps[register * STEPS, lane]
    return total


@inline
def first_entry(odds: Odds, group: Group, cells: Cells, quarter: int) -> np.float32:
    """Return the sum over the entries of a sequence's first residue, added up the other way."""
    total = np.float32(0)
    for lane in range(0, NODES, 2):
        one = lane_entry(odds, group, cells, quarter, lane)
        total += one + lane_entry(odds, group, cells, quarter, lane + 1)
    return total


@jit
def fill_backward(odds: Odds, group: Group, forward: Cells, cells: Cells, rows: int) -> None:
    """Compute the rows of a group from the last to the first, after `fill_forward`.

    If `forward` has kept all of its rows, they are multiplied by these.
    """
    begin_cells(odds, cells)
    kept = cells.kept
    for quarter in range(len(cells.quarters)):
        move = group.chances[MOVE, quarter]
        for state in range(STATES):
            kept[rows, state, quarter] = 0
        kept[rows, END, quarter] = move
        kept[rows, LEAVE, quarter] = move * group.chances[STOP, quarter]
        kept[rows, SCALE, quarter] = forward.kept[rows, SCALE, quarter]
        cells.has_own_scales[quarter] = 0
    for row in range(rows, -1, -1):
        if row < rows:
            for quarter in range(len(cells.quarters)):
                if row == rows - group.sizes[quarter]:
                    kept[row, ENTER, quarter] = first_entry(odds, group, cells, quarter)
            collect_row(cells, odds, group, forward, rows, row)
        if row:
            close_row(cells, odds, group, forward, rows, row)
