"""The sums over all paths to each cell (Forward) of four comparisons, with HMMER's bits.

Sequences of a group end together: a shorter one begins at a later row than the longest. So all rows
but those in which one begins are the same for the four.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.hmm.domains.odds import STEPS, Odds
from mummergpu.hmm.domains.quarters import LANES, QUARTERS, Quarters, four_of, looped, number
from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int64Array
from mummergpu.runtime.jit import inline, jit
from mummergpu.runtime.llvm import intrinsic, types

BEGIN, ENTER, LEAVE, AGAIN, END, SCALE, CARRY = range(7)
"""The rows of a state: HMMER's N, B, E, J and C, the scale, and a deletion's last cells."""
STATES: Final = 7
SPECIALS: Final = 6
"""The rows that are kept of each row."""

RESCALED: Final = 1e4
_SERIAL: Final = 100
"""Below this number of nodes, deletions are extended through all lanes without a test."""


class Group(NamedTuple):
    """Up to four sequences of residues, for compiled functions; (4,) each.

    A quarter without a sequence has one of no residues.
    """

    codes: ByteArray  # All residues
    begins: Int64Array  # The places of the first residues
    sizes: Int64Array
    # (4, LANES): to stay outside the profile, to move into it and out of it; to come back after a
    # hit, and to end.
    chances: Float32Array


class Cells(NamedTuple):
    """The memory of a comparison of a group."""

    # Matches and insertions of each register, (rows, registers, 2, LANES): of one row, or of all.
    emitting: Float32Array
    deletions: Float32Array  # (rows, registers, LANES): likewise
    states: Float32Array  # (STATES, LANES): of the last row
    kept: Float32Array  # (rows, SPECIALS, 4): those of all rows
    lines: Int64Array  # (4,): where the emissions of each quarter's residue begin


def _fill_row(
    typing_context: Any,
    emitting: Any,
    deletions: Any,
    states: Any,
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

    The sum of the matches is left in the state LEAVE, and the deletions after the last register
    in CARRY. Of node n, with the row before as old, and chances in lower case:

        match[n] = emission[n] * (enter * bm[n] + old_match[n-1] * mm[n]
                                  + old_insert[n-1] * im[n] + old_delete[n-1] * dm[n])
        insert[n] = old_match[n] * mi[n] + old_insert[n] * ii[n]
        delete[n] = delete[n-1] * dd[n-1] + match[n-1] * md[n-1]
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Quarters(builder)
        add, multiply = builder.fadd, builder.fmul
        emitting, deletions, states = vectors.arrays(context, signature, arguments, 0, 1, 2)
        emissions, steps = vectors.places(context, signature, arguments, 4, 5)
        lines = four_of(builder, context, signature.args[3], arguments[3])
        registers, *rows = arguments[6:]
        old, new = (vectors.moved(emitting, one) for one in rows[:2])
        old_deletions, deletions = (vectors.moved(deletions, one) for one in rows[2:])
        enter = vectors.load(states, number(ENTER))
        last = builder.sub(registers, number(1))
        deletes = builder.mul(registers, number(STEPS))

        def cells_of(register: Any) -> list[Any]:
            at = builder.mul(register, number(2))
            match, insertion = (
                vectors.load(old, builder.add(at, number(n))) for n in range(2)
            )
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
        vectors.store(total, states, number(LEAVE))
        vectors.store(onward, states, number(CARRY))
        return context.get_dummy_value()

    one = types.int64
    arrays = emitting, deletions, states, lines, emissions, steps
    return types.void(*arrays, *5 * [one]), generate


fill_row = cast(Any, intrinsic(_fill_row))
"""Called with arrays of `Cells`, the emissions, the steps, the registers of a row, and where in
`emitting` and in `deletions` the last row and the new one begin."""


def _extend_deletions(
    typing_context: Any,
    deletions: Any,
    states: Any,
    steps: Any,
    registers: Any,
    row: Any,
    active: Any,
) -> Any:
    """Let deletions enter the next lane; return the lanes in which some cell changes, as bits.

    Those whose bit in `active` is 0 stay. The sum of matches (in SCALE) and deletions is left in
    LEAVE.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Quarters(builder)
        deletions, states = vectors.arrays(context, signature, arguments, 0, 1)
        (steps,) = vectors.places(context, signature, arguments, 2)
        registers, row, active = arguments[3:]
        deletions = vectors.moved(deletions, row)
        deletes = builder.mul(registers, number(STEPS))
        zero = vectors.constant(0)
        entering = vectors.up(vectors.load(states, number(CARRY)), 0)
        entering = builder.select(vectors.unpacked(active), entering, zero)

        def body(register: Any, entering: Any, total: Any, changed: Any) -> list[Any]:
            known = vectors.load(deletions, register)
            found = builder.fadd(entering, known)
            changed = builder.or_(changed, builder.fcmp_ordered(">", found, known))
            vectors.store(found, deletions, register)
            step = vectors.in_all(steps, builder.add(deletes, register))
            return [builder.fmul(entering, step), builder.fadd(found, total), changed]

        none = vectors.unpacked(number(0))
        firsts = [entering, vectors.load(states, number(SCALE)), none]
        onward, total, changed = looped(builder, registers, firsts, body)
        vectors.store(onward, states, number(CARRY))
        vectors.store(vectors.totals(total), states, number(LEAVE))
        return vectors.packed(changed)

    one = types.int64
    return one(deletions, states, steps, one, one, one), generate


extend_deletions = cast(Any, intrinsic(_extend_deletions))


@inline
def fill_deletions(odds: Odds, cells: Cells, row: int) -> None:
    """Extend deletions through all lanes, each sequence as long as HMMER does."""
    for lane in range(LANES):
        cells.states[SCALE, lane] = cells.states[LEAVE, lane]
    active = (1 << LANES) - 1
    for _ in range(NODES - 1):
        changed = extend_deletions(
            cells.deletions, cells.states, odds.steps, odds.registers, row, active
        )
        if odds.nodes >= _SERIAL:
            active = 0
            for quarter in range(QUARTERS):
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
    for lane in range(LANES):
        stay, move = chances[0, lane], chances[1, lane]
        left = states[LEAVE, lane]
        before = states[BEGIN, lane] * stay
        end = states[END, lane] * stay + left * chances[3, lane]
        again = states[AGAIN, lane] * stay + left * chances[2, lane]
        enter = again * move + before * move
        is_large = left > np.float32(RESCALED)
        is_scaled |= is_large
        scale = left if is_large else np.float32(1)
        states[BEGIN, lane], states[END, lane] = before / scale, end / scale
        states[AGAIN, lane], states[ENTER, lane] = again / scale, enter / scale
        states[LEAVE, lane] = np.float32(1) if is_large else left
        states[SCALE, lane] = scale
    if is_scaled:
        for register in range(odds.registers):
            for lane in range(LANES):
                factor = np.float32(1) / states[SCALE, lane]
                at = register * LANES + lane
                cells.deletions[deletion_row + at] *= factor
                at += register * LANES
                cells.emitting[row + at] *= factor
                cells.emitting[row + at + LANES] *= factor


@inline
def keep_states(cells: Cells, row: int) -> None:
    """Keep the special states of a row."""
    for state in range(SPECIALS):
        for quarter in range(QUARTERS):
            cells.kept[row, state, quarter] = cells.states[state, quarter * NODES]


@inline
def begin_sequences(odds: Odds, group: Group, cells: Cells, rows: int, row: int) -> None:
    """Begin the sequences whose row before the first residue is row number `row` of `rows`."""
    width = odds.registers * LANES
    emitting = (2 * width * row) % cells.emitting.size
    deletions = (width * row) % cells.deletions.size
    for quarter in range(QUARTERS):
        if rows - group.sizes[quarter] != row:
            continue
        for lane in range(quarter * NODES, (quarter + 1) * NODES):
            for state in range(STATES):
                cells.states[state, lane] = 0
            cells.states[BEGIN, lane] = cells.states[SCALE, lane] = 1
            cells.states[ENTER, lane] = group.chances[1, lane]
            for at in range(lane, width, LANES):
                cells.deletions[deletions + at] = 0
            for at in range(lane, 2 * width, LANES):
                cells.emitting[emitting + at] = 0


@jit
def fill_forward(odds: Odds, group: Group, cells: Cells, rows: int) -> None:
    """Compute the cells of a group whose longest sequence has `rows` residues.

    Arrays of one row serve for all rows.
    """
    width = odds.registers * LANES
    emitting_size, deletions_size = cells.emitting.size, cells.deletions.size
    emissions = odds.emissions
    begin_sequences(odds, group, cells, rows, 0)
    keep_states(cells, 0)
    for row in range(1, rows + 1):
        for quarter in range(QUARTERS):
            # Residues of a shorter sequence that come before its begin do not matter.
            at = group.begins[quarter] + max(0, group.sizes[quarter] - rows + row - 1)
            code = np.int64(group.codes[at]) if group.sizes[quarter] else np.int64(0)
            cells.lines[quarter] = code * odds.registers
        new = (2 * width * row) % emitting_size
        new_deletions = (width * row) % deletions_size
        fill_row(
            cells.emitting,
            cells.deletions,
            cells.states,
            cells.lines,
            emissions,
            odds.steps,
            odds.registers,
            (2 * width * (row - 1)) % emitting_size,
            new,
            (width * (row - 1)) % deletions_size,
            new_deletions,
        )
        fill_deletions(odds, cells, new_deletions)
        leave_row(odds, group, cells, new, new_deletions)
        begin_sequences(odds, group, cells, rows, row)
        keep_states(cells, row)
