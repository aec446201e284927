"""The sums over all paths to each cell (Forward) of several comparisons, with HMMER's bits.

Sequences of a group end together: a shorter one begins at a later row than the longest. So all rows
but those in which one begins are the same for all.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.hmm.domains.odds import Odds
from mummergpu.hmm.domains.quarters import Chances, Quarters, Row, Specials, looped, number, written
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int64Array
from mummergpu.runtime.jit import inline, jit

BEGIN, ENTER, LEAVE, AGAIN, END, SCALE = range(6)
"""The special states of a row: HMMER's N, B, E, J and C, and the scale."""
STATES: Final = 6

STAY, MOVE, RETURN, STOP = range(4)
"""The chances of a sequence: to stay outside the profile, to move into it and out of it; to come
back after a hit, and to end."""

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
    chances: Float32Array  # (4, quarters)


class Cells(NamedTuple):
    """The memory of a comparison of a group."""

    quarters: tuple[int, ...]  # Their numbers
    # Matches and insertions of each register, (rows, registers, 2, lanes): of one row, or of all.
    emitting: Float32Array
    deletions: Float32Array  # (rows, registers, lanes): likewise
    # The floats from a row of each to the next; 0 for one row that serves for all.
    strides: tuple[int, int]
    kept: Float32Array  # (rows, STATES, quarters): the special states of all rows
    has_own_scales: Int64Array  # Which sequences Backward scales otherwise than Forward


def chances_of(vectors: Quarters, group: Any) -> Specials:
    """Write loads of the chances of a group's sequences."""
    return Specials(vectors, group.chances, STATES, number(0))


def specials_of(vectors: Quarters, cells: Any, row: Any) -> Specials:
    """Write loads and stores of the special states of a row of `Cells`."""
    return Specials(vectors, cells.kept, STATES, row)


@written("void")
def fill_row(vectors: Quarters, cells: Any, odds: Any, group: Any, rows: Any, row: Any) -> None:
    """Compute a row from the one before.

    Of node n, with the row before as old, and chances in lower case:

        match[n] = emission[n] * (enter * bm[n] + old_match[n-1] * mm[n]
                                  + old_insert[n-1] * im[n] + old_delete[n-1] * dm[n])
        insert[n] = old_match[n] * mi[n] + old_insert[n] * ii[n]
        delete[n] = delete[n-1] * dd[n-1] + match[n-1] * md[n-1]
    """
    builder, registers = vectors.builder, odds.registers
    add, multiply = builder.fadd, builder.fmul
    last_row = builder.sub(row, number(1))
    old, new = Row(vectors, cells, last_row), Row(vectors, cells, row)
    before = specials_of(vectors, cells, last_row)
    chances = Chances(vectors, odds)
    place = builder.sub(last_row, rows)
    lines = chances.lines(group, place)
    enter = vectors.spread(before.load(ENTER))
    last = builder.sub(registers, number(1))

    def match_of(register: Any, cells: list[Any]) -> Any:
        total = multiply(enter, chances.step(register, 0))
        for which, cell in enumerate(cells, 1):
            total = add(total, multiply(cell, chances.step(register, which)))
        return multiply(total, vectors.of_each(lines, register))

    def body(register: Any, *values: Any) -> list[Any]:
        *cells, deletion, total, _ = values
        match = match_of(register, cells)
        cells = old.loads(register)
        insertion = add(
            multiply(cells[0], chances.step(register, 5)),
            multiply(cells[1], chances.step(register, 6)),
        )
        for which, value in enumerate((match, insertion, deletion)):
            new.store(value, register, which)
        onward = multiply(deletion, chances.deletion(register))
        following = add(onward, multiply(match, chances.step(register, 4)))
        return [*cells, following, add(total, match), onward]

    # The deletions of the first register follow from the last one's matches.
    final = match_of(last, old.loads(builder.sub(last, number(1))))
    first_deletion = vectors.up(multiply(final, chances.step(last, 4)), 0)
    zero = vectors.constant(0)
    firsts = [vectors.up(cell, 0) for cell in old.loads(last)]
    *_, matches, onward = looped(builder, registers, [*firsts, first_deletion, zero, zero], body)
    total = _extend_deletions(vectors, odds, chances, new, onward, matches)
    _leave_row(vectors, group, before, specials_of(vectors, cells, row), vectors.totals(total))
    _scale_row(vectors, specials_of(vectors, cells, row), registers, new)


def _extend_deletions(
    vectors: Quarters, odds: Any, chances: Chances, row: Row, onward: Any, matches: Any
) -> Any:
    """Write how deletions enter the next lanes; return the sum of matches and deletions.

    HMMER does so up to three times: for a profile of `_SERIAL` nodes as long as some cell grows,
    which is decided for each quarter here.
    """
    builder = vectors.builder
    is_serial = builder.icmp_signed("<", odds.nodes, number(_SERIAL))
    every = vectors.code(-1)

    def extend(_: Any, onward: Any, active: Any, __: Any) -> list[Any]:
        def body(register: Any, entering: Any, total: Any, changed: Any) -> list[Any]:
            known = row.load(register, 2)
            found = builder.fadd(entering, known)
            row.store(found, register, 2)
            changed = builder.or_(changed, vectors.mask(builder.fcmp_ordered(">", found, known)))
            entering = builder.fmul(entering, chances.deletion(register))
            return [entering, builder.fadd(found, total), changed]

        # Where a quarter is done, 0 enters, which changes nothing.
        entering = vectors.masked(active, vectors.up(onward, 0))
        firsts = [entering, matches, vectors.code(0)]
        onward, total, changed = looped(builder, odds.registers, firsts, body)
        active = builder.select(is_serial, every, vectors.within(changed, builder.or_))
        ends = builder.not_(vectors.any_of(vectors.truths(active)))
        return [onward, active, total, ends]

    firsts = [onward, every, matches]
    return looped(builder, number(NODES - 1), firsts, extend, stops=True)[2]


def _leave_row(
    vectors: Quarters, group: Any, before: Specials, states: Specials, left: Any
) -> None:
    """Write how the special states of a row follow, not yet scaled."""
    add, multiply = vectors.builder.fadd, vectors.builder.fmul
    chances = chances_of(vectors, group)
    stay, move = chances.load(STAY), chances.load(MOVE)
    begin = multiply(before.load(BEGIN), stay)
    end = add(multiply(before.load(END), stay), multiply(left, chances.load(STOP)))
    again = add(multiply(before.load(AGAIN), stay), multiply(left, chances.load(RETURN)))
    enter = add(multiply(again, move), multiply(begin, move))
    for state, value in enumerate((begin, enter, left, again, end, vectors.numbers.constant(1))):
        states.store(value, state)


def _scale_row(vectors: Quarters, states: Specials, registers: Any, row: Row) -> None:
    """Write how a row is divided by a large sum."""
    builder, one = vectors.builder, vectors.numbers.constant(1)
    left = states.load(LEAVE)
    is_large = builder.fcmp_ordered(">", left, vectors.numbers.constant(RESCALED))
    with builder.if_then(vectors.any_of(is_large), likely=False):
        scale = builder.select(is_large, left, one)
        states.store(scale, SCALE)
        for state in range(SCALE):
            states.store(builder.fdiv(states.load(state), scale), state)
        factor = vectors.spread(builder.fdiv(one, scale))

        def body(register: Any) -> list[Any]:
            for which in range(3):
                row.store(builder.fmul(row.load(register, which), factor), register, which)
            return []

        looped(builder, registers, [], body)


@inline
def begin_cells(odds: Odds, cells: Cells) -> None:
    """Begin before all residues, where there are no paths."""
    width = odds.registers * NODES * len(cells.quarters)
    for cell in range(2 * width):
        cells.emitting[cell] = 0
    for cell in range(width):
        cells.deletions[cell] = 0
    for quarter in range(len(cells.quarters)):
        for state in range(SCALE):
            cells.kept[0, state, quarter] = 0
        cells.kept[0, SCALE, quarter] = 1


@jit
def fill_forward(odds: Odds, group: Group, cells: Cells, rows: int) -> None:
    """Compute the cells of a group whose longest sequence has `rows` residues."""
    begin_cells(odds, cells)
    for row in range(rows + 1):
        if row:
            fill_row(cells, odds, group, rows, row)
        for quarter in range(len(cells.quarters)):
            # Until a sequence begins, all its states are 0, and so are its cells.
            if row == rows - group.sizes[quarter]:
                cells.kept[row, BEGIN, quarter] = 1
                cells.kept[row, ENTER, quarter] = group.chances[MOVE, quarter]
