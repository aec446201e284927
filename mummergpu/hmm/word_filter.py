"""HMMER's second filter: Viterbi in words of 16 bits, many nodes at a time.

Nodes are striped as in `byte_filters`. Deletions of several nodes are computed only where they can
matter (M. Farrar's lazy evaluation, with HMMER's bound).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.hmm.proteins import CODES, ProteinBlock
from mummergpu.hmm.tables import STEP_ROWS, WORD_BASE, WORD_LEAVE, WORD_NEVER, WordTables
from mummergpu.runtime.arrays import Int16Array, Int64Array
from mummergpu.runtime.jit import jit
from mummergpu.runtime.llvm import intrinsic, ir, types
from mummergpu.runtime.vectors import Vectors, join_turns

LANES: Final = 32

OVERFLOW: Final = 40_000
"""The result for a score that does not fit a word: the sequence passes."""


class StripedWords(NamedTuple):
    """The words of a profile, striped, for compiled functions."""

    emissions: Int16Array  # (29, registers * LANES): by code
    # For each register the first seven rows of `WordTables`, then the last row of all.
    transitions: Int16Array
    registers: int
    delete_bound: int  # As in `WordTables`


def striped_words(tables: WordTables) -> StripedWords:
    """Return the striped words of a profile for `score_viterbi`."""
    registers = -(-tables.emissions.shape[1] // LANES)
    emissions = np.empty((CODES, registers * LANES), dtype=np.int16)
    transitions = np.empty(STEP_ROWS * registers * LANES, dtype=np.int16)
    _stripe(tables, registers, emissions, transitions)
    return StripedWords(emissions, transitions, registers, tables.delete_bound)


@jit
def _stripe(
    tables: WordTables, registers: int, emissions: Int16Array, transitions: Int16Array
) -> None:
    nodes, last = tables.emissions.shape[1], STEP_ROWS - 1
    for lane in range(LANES):
        for register in range(registers):
            node, place = lane * registers + register, register * LANES + lane
            for code in range(CODES):
                word = tables.emissions[code, node] if node < nodes else WORD_NEVER
                emissions[code, place] = word
            for row in range(STEP_ROWS):
                word = tables.transitions[row, node] if node < nodes else WORD_NEVER
                line = register * last + row if row < last else registers * last + register
                transitions[line * LANES + lane] = word


def _fill_row(
    typing_context: Any,
    cells: Any,
    emissions: Any,
    line: Any,
    transitions: Any,
    registers: Any,
    begin: Any,
) -> Any:
    """Compute the next row in place; return the best match and the best step to a deletion.

    Each register's cells are its matches, insertions and deletions, one after another. Of node n,
    with the cells of the row before as old, and the logarithms of transitions in lower case:

        match[n] = emission[n] + max(begin + bm[n], old_match[n-1] + mm[n],
                                     old_insert[n-1] + im[n], old_delete[n-1] + dm[n])
        insert[n] = max(old_match[n] + mi[n], old_insert[n] + ii[n])
        delete[n] = match[n-1] + md[n-1]

    Node n-1 is in the register before, in the same lane; for the first register, in the last one
    and the lane before. Deletions of several nodes are left to `extend_deletions`.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(builder, 16, LANES)
        cells, emissions, transitions = vectors.arrays(context, signature, arguments, 0, 1, 3)
        _, _, line, _, registers, begin = arguments
        number = ir.IntType(64)
        one, never = ir.Constant(number, 1), vectors.constant(WORD_NEVER)
        begins = vectors.splat(begin)
        # The nodes before those of the first register are in the last one, a lane earlier.
        last = builder.mul(builder.sub(registers, one), ir.Constant(number, 3))
        firsts = [
            vectors.shifted_up(
                vectors.load(cells, builder.add(last, ir.Constant(number, state))), never
            )
            for state in range(3)
        ]
        # A loop over the registers, which carries the old cells of the register before, the
        # deletions that its matches begin, and the best values of each lane.
        origin = builder.block
        body, end = builder.append_basic_block("words"), builder.append_basic_block("filled")
        builder.branch(body)
        builder.position_at_end(body)
        register = builder.phi(number)
        states = [builder.phi(vectors.kind) for _ in range(3)]
        deletes, best, best_delete = (builder.phi(vectors.kind) for _ in range(3))
        steps = [
            vectors.load(
                transitions,
                builder.add(builder.mul(register, ir.Constant(number, 7)), ir.Constant(number, n)),
            )
            for n in range(7)
        ]
        places = [
            builder.add(builder.mul(register, ir.Constant(number, 3)), ir.Constant(number, n))
            for n in range(3)
        ]
        old = [vectors.load(cells, place) for place in places]
        match = vectors.call("sadd.sat", begins, steps[0])
        for state, step in zip(states, steps[1:4], strict=True):
            match = vectors.call("smax", match, vectors.call("sadd.sat", state, step))
        match = vectors.call(
            "sadd.sat", match, vectors.load(emissions, builder.add(line, register))
        )
        deleting = vectors.call("sadd.sat", match, steps[4])
        inserts = vectors.call(
            "smax",
            vectors.call("sadd.sat", old[0], steps[5]),
            vectors.call("sadd.sat", old[1], steps[6]),
        )
        for value, place in zip((match, inserts, deletes), places, strict=True):
            vectors.store(value, cells, place)
        higher = vectors.call("smax", best, match)
        higher_delete = vectors.call("smax", best_delete, deleting)
        following = builder.add(register, one)
        join_turns(
            (
                (register, ir.Constant(number, 0), following),
                *zip(states, firsts, old, strict=True),
                (deletes, never, deleting),
                (best, never, higher),
                (best_delete, never, higher_delete),
            ),
            origin,
            body,
        )
        builder.cbranch(builder.icmp_signed("<", following, registers), body, end)
        # The last register's matches begin deletions at the nodes of the first one.
        builder.position_at_end(end)
        vectors.store(vectors.shifted_up(deleting, never), cells, ir.Constant(number, 2))
        found = [vectors.reduce("smax", value, signed=True) for value in (higher, higher_delete)]
        return context.make_tuple(builder, signature.return_type, found)

    one = types.int64
    pair = types.UniTuple(one, 2)
    return pair(cells, emissions, one, transitions, one, one), generate


fill_row = cast(Any, intrinsic(_fill_row))
"""Called with the cells, `StripedWords.emissions`, the register where the code's line begins in
them, the transitions, the registers of a row, and the begin state's word."""


def _extend_deletions(typing_context: Any, cells: Any, transitions: Any, registers: Any) -> Any:
    """Extend deletions from node to node; return whether a lane's end changes another lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(builder, 16, LANES)
        cells, transitions = vectors.arrays(context, signature, arguments, 0, 1)
        registers = arguments[2]
        number = ir.IntType(64)
        one, never = ir.Constant(number, 1), vectors.constant(WORD_NEVER)
        steps = builder.gep(transitions, [builder.mul(registers, ir.Constant(number, 7))])
        origin = builder.block
        body, end = builder.append_basic_block("deletions"), builder.append_basic_block("extended")
        builder.branch(body)
        builder.position_at_end(body)
        register, carried = builder.phi(number), builder.phi(vectors.kind)
        place = builder.add(builder.mul(register, ir.Constant(number, 3)), ir.Constant(number, 2))
        deletion = vectors.call("smax", carried, vectors.load(cells, place))
        vectors.store(deletion, cells, place)
        onward = vectors.call("sadd.sat", deletion, vectors.load(steps, register))
        following = builder.add(register, one)
        join_turns(
            ((register, ir.Constant(number, 0), following), (carried, never, onward)), origin, body
        )
        builder.cbranch(builder.icmp_signed("<", following, registers), body, end)
        builder.position_at_end(end)
        first = ir.Constant(number, 2)
        known, moved = vectors.load(cells, first), vectors.shifted_up(onward, never)
        better = builder.icmp_signed(">", moved, known)
        vectors.store(vectors.call("smax", known, moved), cells, first)
        bits = ir.IntType(LANES)
        return builder.icmp_unsigned("!=", builder.bitcast(better, bits), ir.Constant(bits, 0))

    return types.boolean(cells, transitions, types.int64), generate


extend_deletions = cast(Any, intrinsic(_extend_deletions))
"""Called with the cells, the transitions and the registers of a row."""


def row_cells(words: StripedWords) -> Int16Array:
    """Return memory for the three states of each register of a row."""
    return np.empty(3 * words.registers * LANES, dtype=np.int16)


@jit
def score_viterbi(
    block: ProteinBlock,
    words: StripedWords,
    moves: Int64Array,
    cells: Int16Array,
    sequences: Int64Array,
    scores: Int64Array,
) -> None:
    """Compute the word with which each sequence's best path leaves the profile, or `OVERFLOW`.

    `moves` are `tables.word_moves`; `cells` are `row_cells`.
    """
    for candidate in range(sequences.size):
        begin = block.offsets[sequences[candidate]]
        length = block.offsets[sequences[candidate] + 1] - begin
        move = moves[length]
        cells[:] = WORD_NEVER
        exit_score = WORD_NEVER
        entry = WORD_BASE + move
        for place in range(begin, begin + length):
            line = np.int64(block.codes[place]) * words.registers
            best, deleting = fill_row(
                cells, words.emissions, line, words.transitions, words.registers, entry
            )
            if best >= 32767:
                exit_score = OVERFLOW
                break
            exit_score = max(exit_score, best - WORD_LEAVE)
            entry = max(exit_score, WORD_BASE) + move
            if deleting + words.delete_bound > entry:
                while extend_deletions(cells, words.transitions, words.registers):
                    pass
        scores[candidate] = exit_score
