"""The sums over all paths to each cell (Forward) of several comparisons, with HMMER's bits.

Sequences of a group end together: a shorter one begins at a later row than the longest. So all rows
but those in which one begins are the same for all.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.hmm.domains.odds import STEPS, Odds
from mummergpu.hmm.domains.quarters import Quarters, looped, number, numbers_of
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int64Array
from mummergpu.runtime.jit import inline, jit
from mummergpu.runtime.llvm import intrinsic, types

BEGIN, ENTER, LEAVE, AGAIN, END, SCALE = range(6)
"""The rows of states: HMMER's N, B, E, J and C, and the scale."""
STATES: Final = 6
MATCHES, CARRY = range(2)
"""The rows of sums: of the matches of each lane, and the deletions after the last register."""
SUMS: Final = 2

RESCALED: Final = 1e4
_SERIAL: Final = 100
"""Below this number of nodes, deletions are extended through all lanes without a test."""


class Group(NamedTuple):
    """Sequences side by side, for compiled functions; arrays of a number for each quarter.

    A quarter without a sequence has one of no residues.
    """

    codes: ByteArray  # All residues
    begins: Int64Array  # The places of the first residues
    sizes: Int64Array
    # (4, quarters): to stay outside the profile, to move into it and out of it; to come back after
    # a hit, and to end.
    chances: Float32Array


class Cells(NamedTuple):
    """The memory of a comparison of a group."""

    quarters: tuple[int, ...]  # Their numbers
    # Matches and insertions of each register, (rows, registers, 2, lanes): of one row, or of all.
    emitting: Float32Array
    deletions: Float32Array  # (rows, registers, lanes): likewise
    # The floats from a row of each to the next; 0 for one row that serves for all.
    strides: tuple[int, int]
    states: Float32Array  # (STATES, quarters): of the last row
    sums: Float32Array  # (SUMS, lanes)
    kept: Float32Array  # (rows, STATES, quarters): the states of all rows
    has_own_scales: Int64Array  # Which sequences Backward scales otherwise than Forward
    lines: Int64Array  # Where the emissions of each quarter's residue begin


def _fill_row(
    typing_context: Any,
    quarters: Any,
    emitting: Any,
    deletions: Any,
    states: Any,
    sums: Any,
    lines: Any,
    emissions: Any,
    steps: Any,
    registers: Any,
    last_row: Any,
    row: Any,
    last_deletions: Any,
    new_deletions: Any,
) -> Any:
    """Compute matches, insertions, and deletions without those that enter a lane but the first.

    Sums are left in `Cells.sums`. Of node n, with the row before as old, and chances in lower case:

        match[n] = emission[n] * (enter * bm[n] + old_match[n-1] * mm[n]
                                  + old_insert[n-1] * im[n] + old_delete[n-1] * dm[n])
        insert[n] = old_match[n] * mi[n] + old_insert[n] * ii[n]
        delete[n] = delete[n-1] * dd[n-1] + match[n-1] * md[n-1]
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Quarters(builder, quarters)
        add, multiply = builder.fadd, builder.fmul
        arrays = vectors.arrays(context, signature, arguments, 1, 2, 3, 4)
        emitting, deletions, states, sums = arrays
        emissions, steps = vectors.places(context, signature, arguments, 6, 7)
        count = vectors.quarters
        lines = numbers_of(builder, context, count, signature.args[5], arguments[5])
        registers, *rows = arguments[8:]
        old, new = (vectors.moved(emitting, one) for one in rows[:2])
        old_deletions, deletions = (vectors.moved(deletions, one) for one in rows[2:])
        enter = vectors.spread(states, ENTER)
        last = builder.sub(registers, number(1))
        deletes = builder.mul(registers, number(STEPS))

        def cells_of(register: Any) -> list[Any]:
            at = builder.mul(register, number(2))
            match, insertion = (vectors.load(old, builder.add(at, number(n))) for n in range(2))
            return [match, insertion, vectors.load(old_deletions, register)]

        def step(register: Any, which: int) -> Any:
            at = builder.mul(register, number(STEPS))
            return vectors.in_all(steps, builder.add(at, number(which)))

        def match_of(register: Any, before: list[Any]) -> Any:
            total = multiply(enter, step(register, 0))
            for which, cell in enumerate(before, 1):
                total = add(total, multiply(cell, step(register, which)))
            places = [builder.add(line, register) for line in lines]
            return multiply(total, vectors.of_each(emissions, places))

        # The deletions of the first register follow from the last one's matches.
        final = match_of(last, cells_of(builder.sub(last, number(1))))
        first_deletion = vectors.up(multiply(final, step(last, 4)), 0)

        def body(register: Any, *values: Any) -> list[Any]:
            *before, deletion, total, _ = values
            match = match_of(register, before)
            cells = cells_of(register)
            insertion = add(
                multiply(cells[0], step(register, 5)), multiply(cells[1], step(register, 6))
            )
            at = builder.mul(register, number(2))
            vectors.store(match, new, at)
            vectors.store(insertion, new, builder.add(at, number(1)))
            vectors.store(deletion, deletions, register)
            onward = multiply(deletion, vectors.in_all(steps, builder.add(deletes, register)))
            following = add(onward, multiply(match, step(register, 4)))
            return [*cells, following, add(total, match), onward]

        zero = vectors.constant(0)
        before = [vectors.up(cell, 0) for cell in cells_of(last)]
        *_, total, onward = looped(builder, registers, [*before, first_deletion, zero, zero], body)
        vectors.store(total, sums, number(MATCHES))
        vectors.store(onward, sums, number(CARRY))
        return context.get_dummy_value()

    one = types.int64
    arrays = emitting, deletions, states, sums, lines, emissions, steps
    return types.void(quarters, *arrays, *5 * [one]), generate


fill_row = cast(Any, intrinsic(_fill_row))
"""Called with the quarters and arrays of `Cells`, the emissions, the steps, the registers of a row,
and where in `emitting` and in `deletions` the last row and the new one begin."""


def _extend_deletions(
    typing_context: Any,
    quarters: Any,
    deletions: Any,
    states: Any,
    sums: Any,
    steps: Any,
    registers: Any,
    row: Any,
    active: Any,
) -> Any:
    """Let deletions enter the next lane; return the lanes in which some cell changes, as bits.

    Those whose bit in `active` is 0 stay. The sum of matches and deletions is left in the state
    LEAVE.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Quarters(builder, quarters)
        deletions, states, sums = vectors.arrays(context, signature, arguments, 1, 2, 3)
        (steps,) = vectors.places(context, signature, arguments, 4)
        registers, row, active = arguments[5:]
        deletions = vectors.moved(deletions, row)
        deletes = builder.mul(registers, number(STEPS))
        zero = vectors.constant(0)
        entering = vectors.up(vectors.load(sums, number(CARRY)), 0)
        entering = builder.select(vectors.unpacked(active), entering, zero)

        def body(register: Any, entering: Any, total: Any, changed: Any) -> list[Any]:
            known = vectors.load(deletions, register)
            found = builder.fadd(entering, known)
            changed = builder.or_(changed, builder.fcmp_ordered(">", found, known))
            vectors.store(found, deletions, register)
            step = vectors.in_all(steps, builder.add(deletes, register))
            return [builder.fmul(entering, step), builder.fadd(found, total), changed]

        none = vectors.unpacked(number(0))
        firsts = [entering, vectors.load(sums, number(MATCHES)), none]
        onward, total, changed = looped(builder, registers, firsts, body)
        vectors.store(onward, sums, number(CARRY))
        vectors.pick(vectors.totals(total), states, LEAVE)
        return vectors.packed(changed)

    one = types.int64
    return one(quarters, deletions, states, sums, steps, one, one, one), generate


extend_deletions = cast(Any, intrinsic(_extend_deletions))


@inline
def find_lines(odds: Odds, group: Group, cells: Cells, place: int) -> None:
    """Find the emissions of the residues at a place from the ends of all sequences, below 0."""
    for quarter in range(len(cells.quarters)):
        # Residues of a shorter sequence that come before its begin do not matter.
        at = group.begins[quarter] + max(0, group.sizes[quarter] + place)
        code = np.int64(group.codes[at]) if group.sizes[quarter] else np.int64(0)
        cells.lines[quarter] = code * odds.registers


@inline
def fill_deletions(odds: Odds, cells: Cells, row: int) -> None:
    """Extend deletions through all lanes, each sequence as long as HMMER does."""
    active = (1 << cells.sums.shape[1]) - 1
    for _ in range(NODES - 1):
        changed = extend_deletions(
            cells.quarters,
            cells.deletions,
            cells.states,
            cells.sums,
            odds.steps,
            odds.registers,
            row,
            active,
        )
        if odds.nodes >= _SERIAL:
            active = 0
            for quarter in range(len(cells.quarters)):
                own = np.int64(15) << (NODES * quarter)
                if changed & own:
                    active |= own
            if not active:
                break


@inline
def leave_row(odds: Odds, group: Group, cells: Cells, row: int, deletion_row: int) -> None:
    """Compute the special states of a row; scale the sequences whose sum is large."""
    states, chances = cells.states, group.chances
    is_scaled = False
    for quarter in range(len(cells.quarters)):
        stay, move = chances[0, quarter], chances[1, quarter]
        left = states[LEAVE, quarter]
        states[BEGIN, quarter] *= stay
        states[END, quarter] = states[END, quarter] * stay + left * chances[3, quarter]
        states[AGAIN, quarter] = states[AGAIN, quarter] * stay + left * chances[2, quarter]
        states[ENTER, quarter] = states[AGAIN, quarter] * move + states[BEGIN, quarter] * move
        states[SCALE, quarter] = 1
        if left > np.float32(RESCALED):
            is_scaled = True
            states[SCALE, quarter] = left
            for state in range(SCALE):
                states[state, quarter] /= left
            states[LEAVE, quarter] = 1
    if is_scaled:
        lanes = cells.sums.shape[1]
        for quarter in range(len(cells.quarters)):
            factor = np.float32(1) / states[SCALE, quarter]
            for register in range(odds.registers):
                at = register * lanes + quarter * NODES
                for lane in range(at, at + NODES):
                    cells.deletions[deletion_row + lane] *= factor
                at += register * lanes
                for lane in range(row + at, row + at + NODES):
                    cells.emitting[lane] *= factor
                    cells.emitting[lane + lanes] *= factor


@inline
def keep_states(cells: Cells, row: int) -> None:
    """Keep the special states of a row."""
    for state in range(STATES):
        for quarter in range(len(cells.quarters)):
            cells.kept[row, state, quarter] = cells.states[state, quarter]


@inline
def begin_sequence(odds: Odds, group: Group, cells: Cells, quarter: int, row: int) -> None:
    """Begin a sequence at the row before its first residue."""
    lanes = cells.sums.shape[1]
    for state in range(STATES):
        cells.states[state, quarter] = 0
    cells.states[BEGIN, quarter] = cells.states[SCALE, quarter] = 1
    cells.states[ENTER, quarter] = group.chances[1, quarter]
    emitting, deletions = row * cells.strides[0], row * cells.strides[1]
    for register in range(odds.registers):
        at = register * lanes + quarter * NODES
        for lane in range(at, at + NODES):
            cells.deletions[deletions + lane] = 0
        at += emitting + register * lanes
        for lane in range(at, at + NODES):
            cells.emitting[lane] = cells.emitting[lane + lanes] = 0


@jit
def fill_forward(odds: Odds, group: Group, cells: Cells, rows: int) -> None:
    """Compute the cells of a group whose longest sequence has `rows` residues."""
    stride, deletions_stride = cells.strides
    emissions = odds.emissions
    following = 0
    for row in range(rows + 1):
        if row:
            find_lines(odds, group, cells, row - rows - 1)
            fill_row(
                cells.quarters,
                cells.emitting,
                cells.deletions,
                cells.states,
                cells.sums,
                cells.lines,
                emissions,
                odds.steps,
                odds.registers,
                stride * (row - 1),
                stride * row,
                deletions_stride * (row - 1),
                deletions_stride * row,
            )
            fill_deletions(odds, cells, deletions_stride * row)
            leave_row(odds, group, cells, stride * row, deletions_stride * row)
        if row == following:
            following = rows + 1
            for quarter in range(len(cells.quarters)):
                begin = rows - group.sizes[quarter]
                if begin == row:
                    begin_sequence(odds, group, cells, quarter, row)
                elif begin > row:
                    following = min(following, begin)
        keep_states(cells, row)
